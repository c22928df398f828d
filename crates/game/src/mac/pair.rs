//! A client and a server that share a key, over whole packets: `proto`'s, as `query` and `serve` run them.
//!
//! The server is a [`Server`] with one symmetric key, the client an [`Exchange`] under the same. What they say is on
//! the net for the adversary to keep, hold back, and answer; it never sees the key, nor a salt.
//!
//! **How a nonce comes to repeat.** Ours are random, from a generator that the system seeds, so one repeats if the
//! generator does. That happens to a virtual machine that is put back to a snapshot of its memory (Ristenpart and
//! Yilek, "When Good Randomness Goes Bad: Virtual Machine Reset Vulnerabilities and Hedging Deployed Cryptography",
//! NDSS 2010), and it is what [`Pair::restore_server`] does. Who sees the net cannot tell it from a counter that is
//! lost, as servers without state would lose one, from two random nonces that are equal, which
//! [`refresh`](super::refresh) waits for, or from associations whose salts and counters are equal, which
//! [`salt`](super::salt) counts.
//!
//! A client that is put back gives nothing away: its transmit timestamp is drawn before its nonce, so it repeats the
//! request to the last octet.
//!
//! **Both directions are under one key, with nonces from one space.** A nonce of a request that is that of an answer is
//! as bad as one that repeats within a direction, and whatever is known of a nonce serves in both directions.

use std::fmt;

use authentick_crypto::Entropy;
use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_proto::client::Exchange;
use authentick_proto::limits::REQUEST_SIZE_MAX;
use authentick_proto::server::outcome::Outcome;
use authentick_proto::server::snapshot::Snapshot;
use authentick_proto::symmetric::{Allowed, SALT_SIZE, SymmetricKey, SymmetricKeys};
use authentick_sim::{Answer, Arrival, Server};
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::{NtpShort, NtpSpan, NtpTime};
use serde::Serialize;

use super::tagged::hex;
use super::victim::{KEY_ID, key_size};
use crate::verdict::{Attempt, COLUMNS};

/// The start of 2026 in seconds of Unix.
const YEAR_2026: i64 = 1_767_225_600;

/// From one request to the next.
const INTERVAL: NtpSpan = NtpSpan::from_nanos(1_000_000_007);

/// From a request's arrival to the transmit stamp.
const SERVICE_TIME: NtpSpan = NtpSpan::from_nanos(20_011);

/// A client and a server that share a key.
#[derive(Debug)]
pub struct Pair {
    key: SymmetricKey,
    client_entropy: Entropy,
    server: Server,
    /// What the server's generator is seeded with: the part of the snapshot that matters.
    snapshot_seed: u64,
    now: NtpTime,
}

impl Pair {
    /// Both with the key of `octets`, and the `salt`; the server with `allowed` algorithms.
    ///
    /// # Panics
    /// If the algorithm takes no key of that size, or no salt.
    #[must_use]
    pub fn new(
        algorithm: MacAlgorithm,
        octets: &[u8],
        salt: Option<[u8; SALT_SIZE]>,
        allowed: Allowed,
        entropy: &mut Entropy,
    ) -> Self {
        let key = || {
            let key = MacKey::new(algorithm, octets).expect("the game makes keys of a size that is taken");
            let key = SymmetricKey::new(KEY_ID, key);
            match salt {
                Some(salt) => key.with_salt(salt).expect("the game salts GMAC alone"),
                None => key,
            }
        };
        let snapshot_seed = entropy.u64();
        let mut server = Server::new(!snapshot_seed);
        // A clock that is set by GPS.
        server.snapshot = Snapshot {
            root_dispersion: NtpShort::from_bits(7),
            ..Snapshot::primary(-24, ReferenceId(*b"GPS\0"), NtpTime::ZERO)
        };
        let keys = SymmetricKeys::new([key()], allowed, 1).expect("one key has one identifier");
        server.symmetric = Some(keys);
        Pair {
            key: key(),
            client_entropy: Entropy::from_seed(entropy.u64()),
            server,
            snapshot_seed,
            now: NtpTime::from_unix(YEAR_2026, 0),
        }
    }

    /// Both with a random key of the drafts' size; everything is allowed.
    ///
    /// # Panics
    /// If the algorithm takes no salt, and `is_salted`.
    #[must_use]
    pub fn random(algorithm: MacAlgorithm, is_salted: bool, entropy: &mut Entropy) -> Self {
        let mut octets = vec![0; key_size(algorithm)];
        entropy.fill(&mut octets);
        let salt = is_salted.then(|| entropy.array());
        Self::new(algorithm, &octets, salt, Allowed::ALL, entropy)
    }

    /// What they authenticate with.
    #[must_use]
    pub fn algorithm(&self) -> MacAlgorithm {
        self.key.algorithm()
    }

    /// The client asks: what it waits for, and the packet.
    pub fn ask(&mut self) -> (Exchange, Vec<u8>) {
        let mut packet = vec![0; REQUEST_SIZE_MAX];
        let (exchange, size) = Exchange::mac(&self.key, &mut self.client_entropy, &mut packet);
        packet.truncate(size);
        (exchange, packet)
    }

    /// The server hears a packet, a second after the last: what became of it, and the answer, empty if there is none.
    pub fn answer(&mut self, packet: &[u8]) -> (Outcome, Vec<u8>) {
        self.now = self.now + INTERVAL;
        let source = ([198, 18, 0, 2], 123).into();
        let arrival = Arrival { source, received: self.now, octets: packet.to_vec() };
        let Answer { mut datagrams, outcome } = self.server.answer(arrival, self.now + SERVICE_TIME);
        (outcome, datagrams.pop().unwrap_or_default())
    }

    /// How many requests the server says that it has answered under the key.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.server
            .symmetric
            .as_ref()
            .and_then(|keys| keys.find(KEY_ID))
            .map_or(0, |key| key.counts().answered)
    }

    /// Puts the server back to where it began; its clock goes on.
    pub fn restore_server(&mut self) {
        self.server.reseed(!self.snapshot_seed);
    }

    /// Puts a forged request before the server, and takes down what became of it; says whether it gave time under the
    /// key.
    pub fn try_server(&mut self, packet: &[u8], attempt: &mut Attempt<Judged>) -> bool {
        let (outcome, answer) = self.answer(packet);
        let accepted = outcome == Outcome::Mac && answer.len() > HEADER_SIZE;
        attempt.note(Judged { packet: hex(packet), said: outcome.label().to_owned() }, accepted)
    }

    /// Puts a forged answer before the client that waits in `exchange`, and takes down what it made of it; says whether
    /// it took it. If it did not, it goes on waiting.
    pub fn try_client(&self, exchange: &mut Exchange, packet: &[u8], attempt: &mut Attempt<Judged>) -> bool {
        let heard = exchange.receive_mac(packet, &self.key);
        let said = match &heard {
            Ok(_) => "accepted".to_owned(),
            Err(check) => check.to_string(),
        };
        attempt.note(Judged { packet: hex(packet), said }, heard.is_ok())
    }
}

/// A packet that was put before the client or the server, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// Octets in hexadecimal.
    pub packet: String,
    /// What the server counted it as, or the check that it failed at the client.
    pub said: String,
}

/// What our own client and server made of forged packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OnTheWire {
    /// Forged answers.
    pub client: Vec<Attempt<Judged>>,
    /// Forged requests.
    pub server: Vec<Attempt<Judged>>,
}

impl OnTheWire {
    /// Whether everything was accepted and refused as the theory says.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.attempts().all(Attempt::is_as_expected)
    }

    /// Those before the client, then those before the server.
    pub fn attempts(&self) -> impl Iterator<Item = &Attempt<Judged>> {
        self.client.iter().chain(&self.server)
    }
}

impl fmt::Display for OnTheWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {COLUMNS}")?;
        self.client.iter().try_for_each(|attempt| writeln!(f, "  {attempt}, before our client"))?;
        self.server.iter().try_for_each(|attempt| writeln!(f, "  {attempt}, before our server"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authentick_proto::client::Check;

    use crate::mac::Tagged;
    use crate::mac::gmac_nonce;
    use crate::verdict::Verdict;

    #[test]
    fn honest_exchange_passes_and_one_flipped_bit_does_not() {
        let mut entropy = Entropy::from_seed(1);
        for algorithm in MacAlgorithm::ALL {
            let mut pair = Pair::random(algorithm, false, &mut entropy);
            let (mut exchange, request) = pair.ask();
            let (outcome, answer) = pair.answer(&request);
            assert_eq!(outcome, Outcome::Mac, "{algorithm}");
            let mut attempt = Attempt::new(algorithm, "a flipped bit", Verdict::Reject);
            let mut flipped = answer.clone();
            flipped[47] ^= 1;
            assert!(!pair.try_client(&mut exchange, &flipped, &mut attempt), "{algorithm}");
            assert_eq!(attempt.forged.as_ref().unwrap().said, Check::Tag.to_string());
            assert!(pair.try_client(&mut exchange, &answer, &mut attempt), "{algorithm}");
            assert!(!pair.try_client(&mut exchange, &answer, &mut attempt), "once");
            let mut flipped = request;
            flipped[47] ^= 1;
            assert!(!pair.try_server(&flipped, &mut attempt), "{algorithm}");
            assert_eq!((attempt.tries, attempt.wins), (4, 1));
        }
    }

    fn nonce(packet: &[u8]) -> Option<[u8; 12]> {
        Tagged::from_packet(packet).unwrap().1.nonce
    }

    #[test]
    fn server_that_is_restored_repeats_its_nonces_and_a_client_its_requests() {
        for is_salted in [false, true] {
            let mut pair = Pair::random(MacAlgorithm::Gmac128, is_salted, &mut Entropy::from_seed(2));
            let mut answers = || {
                [(); 3].map(|()| {
                    let request = pair.ask().1;
                    let answer = pair.answer(&request).1;
                    assert_ne!(nonce(&request), nonce(&answer));
                    answer
                })
            };
            let before = answers();
            let more = answers();
            assert!(before.iter().all(|a| more.iter().all(|b| nonce(a) != nonce(b))));
            pair.restore_server();
            pair.client_entropy = Entropy::from_seed(3);
            let asked = pair.ask().1;
            let again = pair.answer(&asked).1;
            assert_eq!(nonce(&again), nonce(&before[0]));
            assert_ne!(again, before[0]);
            pair.client_entropy = Entropy::from_seed(3);
            assert_eq!(pair.ask().1, asked);
        }
    }

    /// Machines that were cloned from one image have one generator: sooner or later a request has the nonce of an
    /// answer, and that is a repeated nonce as any.
    #[test]
    fn nonce_that_a_request_shares_with_an_answer_gives_the_key_away() {
        for is_salted in [false, true] {
            let mut entropy = Entropy::from_seed(4);
            let mut pair = Pair::random(MacAlgorithm::Gmac128, is_salted, &mut entropy);
            pair.client_entropy = Entropy::from_seed(pair.snapshot_seed);
            let (mut requests, mut answers) = (Vec::new(), Vec::new());
            for _ in 0..12 {
                let request = pair.ask().1;
                answers.push(Tagged::from_packet(&pair.answer(&request).1).unwrap().1);
                requests.push(Tagged::from_packet(&request).unwrap().1);
            }
            let shared = requests.iter().find_map(|request| {
                answers.iter().find(|answer| answer.nonce == request.nonce).map(|answer| [request, answer])
            });
            let captured = shared.expect("a request and an answer share a nonce").map(Clone::clone);
            let (mut exchange, request) = pair.ask();
            let wanted =
                [&pair.answer(&request).1[..HEADER_SIZE], &captured[1].message[HEADER_SIZE..]].concat();
            let mut attempt =
                Attempt::new(MacAlgorithm::Gmac128, "across directions", Verdict::WinAuthentication);
            for key in gmac_nonce::recover(&captured, &mut entropy) {
                let forged = key.forge(&captured[1], &wanted).unwrap().to_packet(KEY_ID);
                pair.try_client(&mut exchange, &forged, &mut attempt);
            }
            assert!(attempt.is_as_expected(), "{attempt}");
        }
    }
}
