//! Rate limits while others send requests from a client's address: what the client loses, and what is reflected to it.

use super::mac::{every_key, mac_request};
use super::*;
use crate::symmetric::{Allowed, SymmetricKey};

/// A request a second for each prefix and each key, eight at once.
const RATE: Rate = Rate { interval_us: 1_000_000, burst: 8, prefix_v4: 32, prefix_v6: 64 };
/// Requests of the victim, one every two seconds.
const REQUEST_COUNT: u32 = 200;
const PERIOD_SECONDS: u32 = 2;

/// What an attacker sends from the victim's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    /// Plain requests.
    Plain,
    /// The victim's last requests, again.
    Replays,
    /// The same with a wrong tag.
    WrongTags,
    /// Requests with cookies, or a key, of its own.
    OwnKey,
}

const ATTACKS: [Attack; 4] = [Attack::Plain, Attack::Replays, Attack::WrongTags, Attack::OwnKey];

/// Two clients of a scheme, whose requests come from one address.
trait Pair {
    /// A fresh request of the victim, or of the attacker.
    fn request(&mut self, is_victim: bool) -> Vec<u8>;
    const OUTCOME: Outcome;
}

struct NtsPair {
    sessions: [NtsSession; 2],
    cookies: [Vec<u8>; 2],
    entropy: Entropy,
}

impl NtsPair {
    fn new(server: &mut Server) -> Self {
        let mut sessions = [0xC2, 0xA1].map(|octet| server.session_of(octet, Algorithm::SivCmac256, 1));
        let cookies = sessions.each_mut().map(|session| session.jar.take().unwrap().to_vec());
        NtsPair { sessions, cookies, entropy: Entropy::from_seed(11) }
    }
}

impl Pair for NtsPair {
    const OUTCOME: Outcome = Outcome::Nts;

    fn request(&mut self, is_victim: bool) -> Vec<u8> {
        let session = &mut self.sessions[usize::from(!is_victim)];
        assert!(session.jar.add(&self.cookies[usize::from(!is_victim)]));
        let mut request = vec![0; DATAGRAM_SIZE_MAX];
        let (_, size) = Exchange::nts(session, &mut self.entropy, &mut request).unwrap();
        request.truncate(size);
        request
    }
}

struct MacPair {
    keys: [SymmetricKey; 2],
    seed: u64,
}

impl Pair for MacPair {
    const OUTCOME: Outcome = Outcome::Mac;

    fn request(&mut self, is_victim: bool) -> Vec<u8> {
        self.seed += 1;
        mac_request(&self.keys[usize::from(!is_victim)], self.seed).1
    }
}

fn limited() -> Server {
    let limits = Arc::new(ClientLimits::new(RATE, 1 << 10, &mut Entropy::from_seed(1)));
    let mut server = Server::with_policy(Policy { limits: Some(limits), ..Policy::open() });
    server.symmetric = Some(SymmetricKeys::new(every_key(), Allowed::ALL, 1).unwrap());
    // The test's clock counts on from here; a time of day of this century is none that counts.
    server.now = NtpTime::from_bits(1_000 << 32);
    server
}

/// What the victim loses of [`REQUEST_COUNT`], and how many responses a second the attack has reflected to it.
fn endure<P: Pair>(server: &mut Server, pair: &mut P, attack: Attack, rate_rps: u32) -> (u32, f64) {
    let (mut lost, mut reflected, mut recent) = (0, 0, Vec::new());
    for _ in 0..REQUEST_COUNT {
        let request = pair.request(true);
        lost += u32::from(server.outcome(&request).1 != P::OUTCOME);
        recent.push(request);
        recent.drain(..recent.len().saturating_sub(4));
        let mut sent = 0;
        while sent < rate_rps * PERIOD_SECONDS {
            let batch: Vec<Vec<u8>> = (0..20)
                .map(|number| match attack {
                    Attack::Plain => plain_request(),
                    Attack::Replays => recent[number % recent.len()].clone(),
                    Attack::WrongTags => {
                        let mut request = recent[number % recent.len()].clone();
                        *request.last_mut().unwrap() ^= 1 + number as u8;
                        request
                    }
                    Attack::OwnKey => pair.request(false),
                })
                .collect();
            reflected += server.ask_all(&batch).iter().filter(|response| !response.is_empty()).count();
            sent += 20;
            server.now = server.now + NtpSpan::from_nanos(20_000_000_000 / i64::from(rate_rps));
        }
    }
    (lost, reflected as f64 / f64::from(REQUEST_COUNT * PERIOD_SECONDS))
}

fn victim_loses_nothing<P: Pair>(mut start: impl FnMut(&mut Server) -> P) {
    for attack in ATTACKS {
        for rate_rps in [20, 200, 2_000] {
            let mut server = limited();
            let mut pair = start(&mut server);
            let (lost, reflected) = endure(&mut server, &mut pair, attack, rate_rps);
            println!(
                "{attack:?} at {rate_rps}/s: {lost} of {REQUEST_COUNT} lost, {reflected:.2}/s reflected"
            );
            assert!(
                lost * 100 <= REQUEST_COUNT,
                "{attack:?} at {rate_rps}/s: {lost} of {REQUEST_COUNT} lost"
            );
            assert!(reflected < 2.0, "{attack:?} at {rate_rps}/s: {reflected} responses a second");
        }
    }
}

#[test]
fn spoofed_requests_cost_an_nts_client_nothing() {
    victim_loses_nothing(NtsPair::new);
}

#[test]
fn spoofed_requests_cost_a_mac_client_nothing() {
    victim_loses_nothing(|_| {
        let mut keys = every_key().into_iter();
        let keys = [keys.next().unwrap(), keys.next().unwrap()];
        MacPair { keys, seed: 0 }
    });
}

#[test]
fn authenticated_client_is_limited_by_its_key_from_any_address() {
    let mut server = limited();
    let mut pair = NtsPair::new(&mut server);
    let requests: Vec<Vec<u8>> = (0..40).map(|_| pair.request(true)).collect();
    server.ask_all(&requests);
    let outcomes = server.responder.outcomes();
    assert_eq!((outcomes.of(Outcome::Nts), outcomes.of(Outcome::RateLimited)), (8, 32));
    // Another client behind the same address has a rate of its own.
    assert_eq!(server.outcome(&pair.request(false)).1, Outcome::Nts);
}

/// Clients with many keys, or one that imitates a victim with them, get a multiple of the rate together and no more.
#[test]
fn authenticated_responses_to_one_address_are_bounded() {
    let mut server = limited();
    let requests: Vec<Vec<u8>> = (1..=60)
        .flat_map(|octet| {
            let mut session = server.session_of(octet, Algorithm::SivCmac256, 8);
            (0..8).map(|_| nts_request_of(&mut session, octet)).collect::<Vec<_>>()
        })
        .collect();
    requests.chunks(BATCH_SIZE).for_each(|batch| drop(server.ask_all(batch)));
    assert_eq!(server.responder.outcomes().of(Outcome::Nts), u64::from(8 * 32u32));
}

fn nts_request_of(session: &mut NtsSession, seed: u8) -> Vec<u8> {
    let mut request = vec![0; DATAGRAM_SIZE_MAX];
    let seed = u64::from(seed) << 8 | session.jar.count() as u64;
    let (_, size) = Exchange::nts(session, &mut Entropy::from_seed(seed), &mut request).unwrap();
    request.truncate(size);
    request
}
