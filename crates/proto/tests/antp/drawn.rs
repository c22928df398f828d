//! Requests of every phase with every field drawn: no answer is larger, and nothing of it stays with the server.

use authentick_crypto::Entropy;
use authentick_crypto::kem::SessionKey;
use authentick_proto::antp::client::{Negotiation, SeparateTag, Session, Wanted};
use authentick_proto::antp::nonce::Nonces;
use authentick_proto::antp::seconds;
use authentick_proto::antp::state::{Established, Pending};
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::server::outcome::Outcome;
use authentick_sim::World;
use authentick_sim::antp::offer;
use authentick_wire::antp::{
    C1_SIZE, C2_SIZE, ErrorCode, ErrorMessage, KeyRequest, NegotiationRequest, Suite, SuiteList, TimeRequest,
};
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use proptest::prelude::*;

use super::responder::{asked, request};
use super::{BEGIN, after, rotate, world};

const SUITES: [Suite; 6] =
    [Suite::P256, Suite::RSA_PKCS1, Suite::RSA_OAEP, Suite::X25519, Suite(0x0003), Suite(0)];

/// Whose state a request brings, and how good it is.
#[derive(Clone, Copy, Debug)]
enum Age {
    Good,
    Retired,
    Expired,
    Foreign,
    /// The other kind of state.
    Confused,
}

const AGES: [Age; 5] = [Age::Good, Age::Retired, Age::Expired, Age::Foreign, Age::Confused];

struct States {
    c1: [u8; C1_SIZE],
    c2: [u8; C2_SIZE],
}

fn states(world: &World, suite: Suite, age: Age) -> States {
    let now = seconds(BEGIN);
    let (mut nonces, mut entropy) = (Nonces::new(), Entropy::from_seed(5));
    let foreign = StateKeys::generate(0, &mut Entropy::from_seed(77));
    let antp = world.server.antp.as_ref().unwrap();
    let keys = match age {
        Age::Foreign => &foreign,
        Age::Good | Age::Retired | Age::Expired | Age::Confused => &antp.keys,
    };
    let source = antp.service.source_prefix(world.source.ip());
    let issued = if matches!(age, Age::Expired) { now - 2_000 } else { now };
    let pending = Pending { suite, issued, transcript: [3; 32] };
    let established = Established { suite, issued, expires: issued + 1_000, key: SessionKey::new([4; 16]) };
    let (mut c1, mut c2) = (
        pending.seal(keys, &source, &mut nonces, &mut entropy),
        established.seal(keys, &mut nonces, &mut entropy),
    );
    if matches!(age, Age::Retired) {
        let retired = keys.keys().last().unwrap().1;
        (c1, c2) = (pending.seal_with(retired, &source, &[1; 12]), established.seal_with(retired, &[2; 12]));
    }
    if matches!(age, Age::Confused) {
        let (whole, part) = (c1, c2);
        c2.copy_from_slice(&whole[..C2_SIZE]);
        c1[..C2_SIZE].copy_from_slice(&part);
    }
    States { c1, c2 }
}

/// What a request is to look like; every field of every message that a server reads comes from it.
#[derive(Clone, Debug)]
struct Drawn {
    kind: u8,
    suite: usize,
    age: usize,
    padding: usize,
    suites: Vec<usize>,
    offset: u16,
    payload_size_max: u16,
    flags: u8,
    octets: Vec<u8>,
    flips: Vec<u16>,
    cut: usize,
    tail: usize,
    is_ipv6: bool,
}

fn requests() -> impl Strategy<Value = Drawn> {
    let what = (0..5_u8, 0..SUITES.len(), 0..AGES.len(), 0..1100_usize);
    let offered = (proptest::collection::vec(0..SUITES.len(), 1..8), 0..3000_u16, 0..1600_u16);
    let rest = (0..4_u8, proptest::collection::vec(any::<u8>(), 256..257));
    let damage = (proptest::collection::vec(any::<u16>(), 0..3), 0..40_usize, 0..40_usize, any::<bool>());
    (what, offered, rest, damage).prop_map(|(what, offered, rest, damage)| {
        let (kind, suite, age, padding) = what;
        let (suites, offset, payload_size_max) = offered;
        let (flags, octets) = rest;
        let (flips, cut, tail, is_ipv6) = damage;
        // Most are whole: what is damaged seldom gets far.
        let (cut, tail) = (cut.saturating_sub(30), tail.saturating_sub(30));
        Drawn {
            kind,
            suite,
            age,
            padding,
            suites,
            offset,
            payload_size_max,
            flags,
            octets,
            flips,
            cut,
            tail,
            is_ipv6,
        }
    })
}

impl Drawn {
    fn request(&self, world: &World) -> Vec<u8> {
        let suite = SUITES[self.suite];
        let States { c1, c2 } = states(world, suite, AGES[self.age]);
        let nonce = self.octets.first_chunk().unwrap();
        let mut made = request(self.padding, |out| match self.kind {
            0 => {
                let suites: Vec<Suite> = self.suites.iter().map(|&index| SUITES[index]).collect();
                let held = &[0; 32];
                let (chain_offset, payload_size_max) = (self.offset, self.payload_size_max);
                let suites = SuiteList::new(&suites).unwrap();
                NegotiationRequest { suites, nonce, held, chain_offset, payload_size_max }.emit(out).unwrap();
            }
            1 => {
                let ciphertext = &self.octets[..suite.ciphertext_size().unwrap_or(8)];
                KeyRequest { suite, state: &c1, ciphertext }.emit(out).unwrap();
            }
            2 | 3 => {
                let (wants_fresh, wants_early) = (self.flags & 1 != 0, self.flags & 2 != 0);
                TimeRequest { suite, wants_fresh, wants_early, nonce, state: &c2 }.emit(out).unwrap();
            }
            _ => ErrorMessage { code: ErrorCode(self.offset) }.emit(out).unwrap(),
        });
        for &flip in &self.flips {
            let bit = usize::from(flip) % (made.len() * 8);
            made[bit / 8] ^= 1 << (bit % 8);
        }
        made.truncate(made.len() - self.cut.min(made.len()));
        made.extend_from_slice(&self.octets[..self.tail]);
        made
    }
}

/// One request of each phase, and a plain one.
fn requests_of_others(world: &World) -> [Vec<u8>; 4] {
    let mut entropy = Entropy::from_seed(6);
    let mut m1 = vec![0; DATAGRAM_SIZE_MAX];
    let size = Negotiation::new(offer(&[Suite::X25519])).request(&mut entropy, &mut m1);
    m1.truncate(size);
    let States { c1, c2 } = states(world, Suite::X25519, Age::Good);
    let m3 = request(0, |out| {
        KeyRequest { suite: Suite::X25519, state: &c1, ciphertext: &[9; 32] }.emit(out).unwrap();
    });
    let session = Session::new(Suite::X25519, SessionKey::new([4; 16]), c2, 1000);
    let separate = Some(SeparateTag::Ipv6);
    [m1, m3, asked(&session, Wanted { fresh: true, separate }, 7).1, request(0, |_| {})]
}

proptest! {
    // More if PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2000)))]

    // `World::answer` asserts that all packets of an answer with their headers are no larger than the request, that
    // there is one outcome, and that nothing of the client is left in the responder's slots. That nothing is left
    // anywhere else shows in what others get: the same octets as from a server that never saw the request.
    //= antp#paper-3
    #[test]
    fn no_answer_is_larger_than_its_request_and_nothing_is_kept(drawn in requests()) {
        let [mut world, mut untouched] = [(); 2].map(|()| {
            let mut world = world(1);
            rotate(&mut world, 1, 7);
            world.source = match drawn.is_ipv6 {
                true => ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 2], 123).into(),
                false => ([198, 18, 0, 2], 123).into(),
            };
            world
        });
        let request = drawn.request(&world);
        let answer = world.answer(&request);
        // Later, as no two receive stamps of a server are equal.
        let then = after(1_000_000);
        for request in requests_of_others(&world) {
            world.server.reseed(9);
            untouched.server.reseed(9);
            prop_assert_eq!(world.answer_at(&request, then, then), untouched.answer_at(&request, then, then));
        }
        if answer.outcome.is_answered() {
            prop_assert!(!answer.datagrams.is_empty());
        }
        let served = matches!(answer.outcome, Outcome::AntpTime | Outcome::AntpSeparateTag);
        let age = AGES[drawn.age];
        if served && drawn.flips.is_empty() {
            prop_assert!(matches!(age, Age::Good | Age::Retired), "{age:?}");
        }
        for datagram in &answer.datagrams {
            prop_assert_eq!(datagram[0] & 7, 4, "a request came back");
        }
    }
}
