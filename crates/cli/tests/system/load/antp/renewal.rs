//! Static m3 packets for longer than the 60 s that a C1 lives, in real time; in virtual time the generator's own tests
//! have them.
//!
//! It lasts a minute, and nearly all of that is sleep: three m3 a second from the load, one from the test.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_proto::antp::client::{Check, KeyExchange, Negotiated, Negotiation, Offer, Progress};
use authentick_proto::antp::kem;
use authentick_proto::antp::state::PENDING_SECONDS;
use authentick_report::load::{Cause, Operation};
use authentick_wire::antp::{ErrorCode, Suite};
use authentick_wire::limits::DATAGRAM_SIZE_MAX;

use super::server::{AntpServer, vector};
use super::{arguments, failures, load, only};

/// Longer than a C1 lives, and than two renewals take.
const LOAD_SECONDS: u32 = PENDING_SECONDS + 5;

/// Who sends one m3 again and again and never renews it.
struct Stubborn {
    socket: UdpSocket,
    entropy: Entropy,
    fixed: KeyExchange,
    /// Between these the server has made C1.
    issued: [Instant; 2],
}

impl Stubborn {
    fn new(server: &AntpServer) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut entropy = Entropy::from_system().unwrap();
        let begun = Instant::now();
        let negotiated = negotiate(&socket, &mut entropy);
        let issued = [begun, Instant::now()];
        let public = PublicKey::from_spki(kem(Suite::P256).unwrap(), &vector("p256.public")).unwrap();
        let made = negotiated.exchange(&public, &mut entropy, &mut [0; DATAGRAM_SIZE_MAX]);
        Stubborn { socket, entropy, fixed: made.unwrap().0, issued }
    }

    /// Sends its m3 once more. Whether m4 came; `false`: the error that C1 does not open.
    fn is_answered(&mut self) -> bool {
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let (mut exchange, size) = self.fixed.again(&mut self.entropy, &mut out);
        let before = Instant::now();
        let end = exchange.receive(&ask(&self.socket, &out[..size]));
        // C1 has the whole second in which it was made, and opens to the end of the sixtieth after that.
        let [least, most] = [before - self.issued[1], self.issued[0].elapsed()].map(|age| age.as_secs_f64());
        let life = f64::from(PENDING_SECONDS);
        match end {
            Ok(_) => assert!(least <= life + 1.0, "a C1 of {least} s was opened"),
            Err(Check::Server(ErrorCode::EXPIRED)) => {
                assert!(most >= life, "a C1 of {most} s was not opened");
            }
            Err(check) => panic!("{check:?} after {most} s"),
        }
        end.is_ok()
    }
}

fn negotiate(socket: &UdpSocket, entropy: &mut Entropy) -> Negotiated {
    let mut negotiation = Negotiation::new(Offer::p256());
    loop {
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let size = negotiation.request(entropy, &mut out);
        if let Progress::Done(negotiated) = negotiation.receive(&ask(socket, &out[..size])).unwrap() {
            return negotiated;
        }
    }
}

fn ask(socket: &UdpSocket, request: &[u8]) -> Vec<u8> {
    let mut response = [0; DATAGRAM_SIZE_MAX];
    socket.send(request).unwrap();
    let size = socket.recv(&mut response).unwrap();
    response[..size].to_vec()
}

#[test]
fn static_m3_is_renewed_in_time_and_one_that_is_not_fails_beside_it() {
    let server = AntpServer::start(&[Suite::P256]);
    let seconds = LOAD_SECONDS.to_string();
    let more = ["--replay", "--rate", "3", "--clients", "2", "--step-seconds", &seconds, "--timeout", "5"];
    let all = arguments("antp-exchange", &server, server.address.port(), &more);
    let running = thread::spawn(move || load(&all));
    let mut stubborn = Stubborn::new(&server);
    let mut answered = Vec::new();
    while !running.is_finished() {
        answered.push(stubborn.is_answered());
        thread::sleep(Duration::from_secs(1));
    }
    assert!(!stubborn.is_answered(), "the load was over before a C1 was");
    // First all are answered, then none.
    assert!(answered.is_sorted_by(|before, after| before >= after), "{answered:?}");
    assert!(answered.iter().filter(|answered| **answered).count() >= 20, "{answered:?}");

    let record = running.join().unwrap();
    let step = only(&record);
    let tally = &step.tally;
    assert!(record.parameters.antp.as_ref().unwrap().replay && step.seconds >= f64::from(LOAD_SECONDS));
    assert_eq!((failures(tally), tally.answered), ([].into(), tally.sent));
    // A machine that others use may have been late once or twice. None was without a C1.
    assert!(tally.sent > 150 && tally.count_of(Cause::NoCookie) == 0, "{tally:?}");
    // After half of a C1's life, and after another half, for each client.
    let renewals = step.accompanying.as_ref().unwrap();
    assert_eq!((renewals.operation, renewals.sent, renewals.answered), (Operation::Negotiation, 4, 4));
    // One for each C1 of the load, that of its first run, and the one that is never renewed.
    assert_eq!(server.distinct_exchanges(), 2 * 3 + 1 + 1);
}
