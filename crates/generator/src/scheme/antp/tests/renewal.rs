//! Static m3 packets for longer than a C1 lives, against the protocol's server half in virtual time: with renewal, and
//! with what renewal is made of left out.

use std::cell::RefCell;

use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_crypto::kem::{Kem, PublicKey};
use authentick_proto::antp::client::{Check, Negotiated, Negotiation, Offer, Progress};
use authentick_proto::antp::nonce::Nonces;
use authentick_proto::antp::server::{
    ExchangeOutcome, Identity, KEY_RESPONSE_SIZE, KeyExchange as Queued, Service, Settings,
};
use authentick_proto::antp::state::PENDING_SECONDS;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::server::antp::{AntpLimits, AntpMoment, Full, KeyExchanges};
use authentick_proto::server::snapshot::Snapshot;
use authentick_proto::server::{Moment, Policy, Responder};
use authentick_wire::antp::{ErrorCode, Suite, SuiteList};
use authentick_wire::datagram::Datagram;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::{ANTP_PAYLOAD_SIZE_DEFAULT, DATAGRAM_SIZE_MAX};
use authentick_wire::time::{NtpSpan, NtpTime};
use rcgen::{KeyPair, PublicKeyData};

use crate::scheme::antp::state::{C1_RENEW_NS, C1_USE_NS, State};

const SECOND_NS: u64 = 1_000_000_000;
/// The life of a C1 in nanoseconds.
const LIFE_NS: u64 = PENDING_SECONDS as u64 * SECOND_NS;
/// From one m3 to the next: a few a second, and at other places in each second.
const PACE_NS: u64 = 370_000_000;
/// Five lives of a C1.
const LOAD_NS: u64 = 5 * LIFE_NS;

/// Key exchanges that are done as soon as the packet worker is through.
#[derive(Default)]
struct Inline(RefCell<Vec<Queued>>);

impl KeyExchanges for Inline {
    fn offer(&self, _: usize, exchange: Queued) -> Result<(), Full> {
        self.0.borrow_mut().push(exchange);
        Ok(())
    }
}

/// A server that has no clock but what it is told, and its public key.
struct Server {
    service: Service,
    keys: StateKeys,
    responder: Responder,
    entropy: Entropy,
    public: PublicKey,
}

impl Server {
    fn new() -> Self {
        let pair = KeyPair::generate().unwrap();
        // Nobody looks at the certificate here.
        let identity = Identity::new(Suite::P256, &pair.serialize_der(), &[vec![1; 500]]).unwrap();
        let mut entropy = Entropy::from_seed(1);
        Server {
            service: Service::new(vec![identity], Settings::default()).unwrap(),
            keys: StateKeys::generate(0, &mut entropy),
            responder: Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(2)),
            entropy,
            public: PublicKey::from_spki(Kem::P256, &pair.subject_public_key_info()).unwrap(),
        }
    }

    /// The answer to a request that comes at `now_ns`.
    fn answer(&mut self, request: &[u8], now_ns: u64) -> Vec<u8> {
        let mut now = NtpTime::from_unix(1_700_000_000, 0) + NtpSpan::from_nanos(now_ns as i64);
        let snapshot = Snapshot::primary(-25, ReferenceId(*b"SIM\0"), now);
        let (mut request, mut response) = (request.to_vec(), vec![0; DATAGRAM_SIZE_MAX]);
        let mut batch = [Datagram {
            source: ([198, 18, 0, 2], 123).into(),
            received: now,
            truncated: false,
            to_many: false,
            request: &mut request,
            response: &mut response,
            response_size: 0,
        }];
        let (inline, limits) = (Inline::default(), AntpLimits::default());
        let antp =
            AntpMoment { service: &self.service, keys: &self.keys, limits: &limits, exchanges: &inline };
        let moment = Moment { snapshot, keys: None, symmetric: None, antp: Some(antp) };
        self.responder.respond(moment, &mut now, &mut (), &mut batch);
        let size = batch[0].response_size;
        response.truncate(size);
        for exchange in inline.0.take() {
            let mut out = [0; KEY_RESPONSE_SIZE];
            let outcome = self.service.exchange(
                &self.keys,
                (&mut Nonces::new(), &mut self.entropy),
                &exchange,
                &mut out,
            );
            assert_eq!(outcome, ExchangeOutcome::Done);
            response = out.to_vec();
        }
        response
    }

    /// A negotiation to its end.
    fn negotiate(&mut self, entropy: &mut Entropy, now_ns: u64) -> Negotiated {
        let suites = SuiteList::new(&[Suite::P256]).unwrap();
        let offer = Offer { suites, payload_size_max: ANTP_PAYLOAD_SIZE_DEFAULT, held: None };
        let mut negotiation = Negotiation::new(offer);
        let mut out = [0; DATAGRAM_SIZE_MAX];
        loop {
            let size = negotiation.request(entropy, &mut out);
            if let Progress::Done(negotiated) =
                negotiation.receive(&self.answer(&out[..size], now_ns)).unwrap()
            {
                return negotiated;
            }
        }
    }
}

/// What became of an m3, or why there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Answered,
    Expired,
    /// There was no C1 that is sure to be opened.
    Skipped,
}

/// A load of one client that sends one m3 again and again.
struct Load {
    server: Server,
    state: State,
    entropy: Entropy,
    /// When each m3 was due, and its end.
    ends: Vec<(u64, End)>,
    /// Fields of m3 that were sent, each once.
    fields: Vec<Vec<u8>>,
}

impl Load {
    fn new() -> Self {
        let (server, entropy) = (Server::new(), Entropy::from_seed(3));
        Load { server, state: State::default(), entropy, ends: Vec::new(), fields: Vec::new() }
    }

    fn negotiate(&mut self, now_ns: u64) {
        let negotiated = self.server.negotiate(&mut self.entropy, now_ns);
        self.state.negotiated(negotiated, now_ns);
    }

    /// One m3, whatever the age of its C1.
    fn exchange(&mut self, now_ns: u64) {
        let (key, entropy) = (&self.server.public, &mut self.entropy);
        self.state.fix_exchange(key, entropy).unwrap();
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let (mut exchange, size) = self.state.exchange(key, entropy, &mut out).unwrap();
        let field = &out[48..size];
        if self.fields.last().is_none_or(|last| last != field) {
            self.fields.push(field.to_vec());
        }
        let end = match exchange.receive(&self.server.answer(&out[..size], now_ns)) {
            Ok(_) => End::Answered,
            Err(Check::Server(ErrorCode::EXPIRED)) => End::Expired,
            Err(check) => panic!("{check:?} after {now_ns} ns"),
        };
        self.ends.push((now_ns, end));
    }

    /// Goes on until the load is over. A renewal takes `delay_ns` from when it is wanted; `None`: there is none.
    fn carry_out(&mut self, delay_ns: Option<u64>) {
        let mut renewed_at_ns = None;
        self.negotiate(0);
        for now_ns in (0..LOAD_NS).step_by(PACE_NS as usize) {
            if self.state.wants_c1(now_ns) {
                renewed_at_ns = renewed_at_ns.or(delay_ns.map(|delay_ns| now_ns + delay_ns));
            }
            if renewed_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                self.negotiate(now_ns);
                renewed_at_ns = None;
            }
            match self.state.has_c1(now_ns) {
                true => self.exchange(now_ns),
                false => self.ends.push((now_ns, End::Skipped)),
            }
        }
    }

    fn count(&self, wanted: End) -> usize {
        self.ends.iter().filter(|(_, end)| *end == wanted).count()
    }
}

#[test]
fn static_m3_is_renewed_for_as_long_as_a_load_lasts_and_never_fails() {
    // A renewal may take as long as a C1 is still used after it is wanted.
    for delay_ns in [0, 5 * SECOND_NS, C1_USE_NS - C1_RENEW_NS - PACE_NS] {
        let mut load = Load::new();
        load.carry_out(Some(delay_ns));
        let sent_count = LOAD_NS.div_ceil(PACE_NS) as usize;
        assert_eq!(load.count(End::Answered), sent_count, "{delay_ns}");
        // From one to the next lie the age, the delay, and up to two paces, as both are looked at then.
        let longest = LOAD_NS / (C1_RENEW_NS + delay_ns + 2 * PACE_NS);
        let shortest = LOAD_NS / (C1_RENEW_NS + delay_ns);
        let renewals = load.fields.len() as u64 - 1;
        assert!((longest..=shortest).contains(&renewals), "{delay_ns}: {renewals} renewals");
    }
}

#[test]
fn m3_is_skipped_and_not_sent_when_its_renewal_takes_too_long() {
    let mut load = Load::new();
    load.carry_out(Some(LIFE_NS));
    assert_eq!(load.count(End::Expired), 0);
    assert!(load.count(End::Skipped) > 0 && load.count(End::Answered) > load.count(End::Skipped));
    let mut load = Load::new();
    load.carry_out(None);
    assert_eq!((load.count(End::Expired), load.fields.len()), (0, 1));
    let last_ns = load.ends.iter().rfind(|(_, end)| *end == End::Answered).unwrap().0;
    assert!((C1_USE_NS - PACE_NS..C1_USE_NS).contains(&last_ns), "{last_ns}");
}

/// The mutant: nothing looks at the age of C1.
#[test]
fn m3_that_is_never_renewed_fails_as_soon_as_its_c1_is_over() {
    let mut load = Load::new();
    load.negotiate(0);
    for now_ns in (0..2 * LIFE_NS).step_by(PACE_NS as usize) {
        load.exchange(now_ns);
    }
    assert_eq!(load.fields.len(), 1);
    for &(now_ns, end) in &load.ends {
        // Sealed state has whole seconds.
        let expected = if now_ns / SECOND_NS <= LIFE_NS / SECOND_NS { End::Answered } else { End::Expired };
        assert_eq!(end, expected, "{now_ns}");
    }
}

/// The mutant: C1 is renewed, and the static m3 still has the first one.
#[test]
fn m3_that_outlives_its_renewed_c1_fails() {
    let mut load = Load::new();
    load.negotiate(0);
    load.exchange(0);
    let now_ns = LIFE_NS + SECOND_NS;
    let first = load.state.static_exchange.clone();
    load.negotiate(now_ns);
    assert!(load.state.static_exchange.is_none(), "it is made anew");
    load.exchange(now_ns);
    load.state.static_exchange = first;
    load.exchange(now_ns);
    let ends: Vec<End> = load.ends.iter().map(|(_, end)| *end).collect();
    assert_eq!(ends, [End::Answered, End::Answered, End::Expired]);
}
