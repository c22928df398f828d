//! Poly1305 under a repeated nonce: the one-time key falls, and with it that nonce, for good.
//!
//! ChaCha20 makes of key and nonce a one-time key of two halves, r and s; the tag is a polynomial in r modulo
//! 2^130 - 5, plus s, modulo 2^128 (RFC 8439 sections 2.5 and 2.6). For a header of 48 octets, blocks b1 to b3 with a
//! one behind each:
//!
//! ```text
//! T = ((b1 r^3 + b2 r^2 + b3 r mod 2^130 - 5) + s) mod 2^128
//! ```
//!
//! The difference of two tags under one nonce lacks s. It is that of two numbers below 2^130 but for a multiple of
//! 2^128, so nine multiples are tried; r is a root of one of the nine polynomials, and known by its 22 bits that must
//! be zero.
//!
//! **The draft is too kind to Poly1305.** draft-ietf-ntp-mac section 6 says that none but GMAC gives away its
//! authentication key when a nonce repeats, and counts that in favour of Poly1305. It is true that another nonce has
//! another one-time key, so that only tags under the repeated nonce can be forged. But NTP servers keep no state, and a
//! client does not know which nonces other answers had: nobody refuses a nonce that has been used. One repeated nonce
//! is enough to answer every request of every client with that key, and to send requests, until the key is replaced.
//! Random nonces of twelve octets repeat as soon as they do under GMAC without a salt. What is gained is that other
//! nonces stay good, which helps nobody whom the adversary can answer.

use std::fmt;

use authentick_crypto::Entropy;
use authentick_crypto::mac::MacAlgorithm;
use serde::Serialize;

use super::forged_packets;
use super::pair::OnTheWire;
use super::tagged::{NONCE_SIZE, Tagged, hex};
use super::victim::{Victim, answer, request, shifted};
use crate::algebra::Field;
use crate::algebra::polynomial::Polynomial;
use crate::algebra::prime::Prime;
use crate::algebra::roots::roots;
use crate::verdict::{Attempt, COLUMNS, Verdict};

/// Multiples of 2^128 by which the difference of two tags can miss that of the polynomials, in each direction.
const CARRY_MAX: u32 = 4;

/// The bits of r that can be set. RFC 8439 section 2.5.
const R_MASK: u128 = 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;

/// What the adversary has won: the one-time key of a nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneTimeKey {
    nonce: Option<[u8; NONCE_SIZE]>,
    r: Prime,
    s: u128,
}

impl OneTimeKey {
    /// r and s, as ChaCha20 wrote them; of a solution that is no candidate, without the bits of r above 2^128.
    #[must_use]
    pub fn to_octets(&self) -> [u8; 32] {
        let mut octets = [0; 32];
        octets[..16].copy_from_slice(&self.r.low_octets());
        octets[16..].copy_from_slice(&self.s.to_le_bytes());
        octets
    }

    /// The nonce whose key it is.
    #[must_use]
    pub fn nonce(&self) -> Option<[u8; NONCE_SIZE]> {
        self.nonce
    }

    /// `message` with its tag under this key's nonce.
    #[must_use]
    pub fn forge(&self, message: &[u8]) -> Tagged {
        let tag = low(&polynomial(message).at(&self.r)).wrapping_add(self.s);
        Tagged { nonce: self.nonce, message: message.to_vec(), tag: tag.to_le_bytes().to_vec() }
    }

    fn has_said(&self, seen: &Tagged) -> bool {
        self.forge(&seen.message).tag == seen.tag
    }
}

/// The message as a polynomial in r. RFC 8439 section 2.5.
fn polynomial(message: &[u8]) -> Polynomial<Prime> {
    let mut coefficients = vec![Prime::zero()];
    coefficients.extend(message.chunks(16).rev().map(|block| Prime::from_octets(&[block, &[1]].concat())));
    Polynomial::new(coefficients)
}

fn low(number: &Prime) -> u128 {
    u128::from_le_bytes(number.low_octets())
}

/// Each pair of r and s that makes the tags of both `a` and `b`, whichever bits r has.
#[must_use]
pub fn solutions(a: &Tagged, b: &Tagged, entropy: &mut Entropy) -> Vec<OneTimeKey> {
    let number = |tagged: &Tagged| tagged.tag.as_array().map(|tag| u128::from_le_bytes(*tag));
    let (Some(tag_a), Some(tag_b)) = (number(a), number(b)) else { return Vec::new() };
    let messages = polynomial(&a.message).minus(&polynomial(&b.message));
    let tags = Prime::from_octets(&tag_a.to_le_bytes()).minus(&Prime::from_octets(&tag_b.to_le_bytes()));
    let mut keys: Vec<OneTimeKey> = Vec::new();
    for carry in (0..=CARRY_MAX).map(Prime::carry) {
        for difference in [tags.plus(&carry), tags.minus(&carry)] {
            for r in roots(&messages.minus(&Polynomial::constant(difference)), entropy) {
                let s = tag_a.wrapping_sub(low(&polynomial(&a.message).at(&r)));
                let key = OneTimeKey { nonce: a.nonce, r, s };
                if key.has_said(b) && !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
    }
    keys
}

/// Each one-time key that makes the tags of both `a` and `b`: those [`solutions`] whose r has no bit that must be zero.
#[must_use]
pub fn candidates(a: &Tagged, b: &Tagged, entropy: &mut Entropy) -> Vec<OneTimeKey> {
    let mut keys = solutions(a, b, entropy);
    keys.retain(|key| key.r.fits_16_octets() && low(&key.r) & !R_MASK == 0);
    keys
}

/// Looks for nonces that were used twice, and solves for their one-time keys. All that are left for each, once every
/// tag under the nonce has had its say: usually one.
#[must_use]
pub fn recover(captured: &[Tagged], entropy: &mut Entropy) -> Vec<OneTimeKey> {
    let mut found: Vec<OneTimeKey> = Vec::new();
    for (index, a) in captured.iter().enumerate() {
        let is_known = captured[..index].iter().any(|earlier| earlier.nonce == a.nonce);
        if a.nonce.is_none() || is_known {
            continue;
        }
        let mut others =
            captured[index + 1..].iter().filter(|b| b.nonce == a.nonce && b.message != a.message);
        if let Some(b) = others.next() {
            let mut keys = candidates(a, b, entropy);
            others.for_each(|seen| keys.retain(|key| key.has_said(seen)));
            found.append(&mut keys);
        }
    }
    found
}

/// What came of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Poly1305Nonce {
    /// What decided keys, nonces and messages.
    pub seed: u64,
    /// Answers and requests that the adversary saw.
    pub captured_count: usize,
    /// One-time keys that two answers under one nonce leave.
    pub candidate_count: usize,
    /// r and s of the repeated nonce, as 64 hexadecimal digits; `None` if none was found, or several.
    pub one_time_key: Option<String>,
    /// What was tried with it.
    pub attempts: Vec<Attempt<Tagged>>,
    /// The same against our own client and server.
    pub on_the_wire: OnTheWire,
}

/// Messages with nonces of their own.
const ORDINARY_COUNT: usize = 4;

/// Messages that are forged in each attempt.
const FORGERY_COUNT: usize = 8;

impl Poly1305Nonce {
    /// Runs the program: server and client share a key; the server's nonce repeats once.
    #[must_use]
    pub fn run(seed: u64) -> Self {
        let mut entropy = Entropy::from_seed(seed);
        let victim = Victim::random(MacAlgorithm::Poly1305, &mut entropy);
        let repeated = Some(entropy.array());
        let mut says = |nonce| victim.says(nonce, &answer(&request(&mut entropy), &mut entropy));
        let mut captured = vec![says(repeated), says(repeated)];
        for index in 0..ORDINARY_COUNT {
            captured.push(says(Some([index as u8; NONCE_SIZE])));
        }
        let keys = recover(&captured, &mut entropy);
        Poly1305Nonce {
            seed,
            captured_count: captured.len(),
            candidate_count: keys.len(),
            one_time_key: if let [key] = &keys[..] { Some(hex(&key.to_octets())) } else { None },
            attempts: attempts(&victim, &captured, &keys, &mut entropy),
            on_the_wire: forged_packets::poly1305(&mut entropy),
        }
    }

    /// Whether everything went as the theory says.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.one_time_key.is_some()
            && self.attempts.iter().all(Attempt::is_as_expected)
            && self.on_the_wire.is_as_expected()
    }
}

fn attempts(
    victim: &Victim,
    captured: &[Tagged],
    keys: &[OneTimeKey],
    entropy: &mut Entropy,
) -> Vec<Attempt<Tagged>> {
    let win = |tried: &str| Attempt::new(MacAlgorithm::Poly1305, tried, Verdict::WinAuthentication);
    let lose = |tried: &str| Attempt::new(MacAlgorithm::Poly1305, tried, Verdict::Reject);
    let mut answers = win("answers to new requests, an hour off, under the nonce that repeated");
    let mut requests = win("requests, under the nonce that repeated");
    let mut seen_once = lose("answers under a nonce that was seen once");
    let mut unseen = lose("answers under a nonce under which nothing was seen");
    let mut no_repetition = lose("the same from answers whose nonces differ");
    for turn in 0..FORGERY_COUNT {
        let request = request(entropy);
        let answer = shifted(&answer(&request, entropy), 3600);
        for key in keys {
            victim.judges(key.forge(&answer), &mut answers);
            victim.judges(key.forge(&request), &mut requests);
            let other = captured[2 + turn % ORDINARY_COUNT].nonce;
            victim.judges(Tagged { nonce: other, ..key.forge(&answer) }, &mut seen_once);
            let fresh = Some(entropy.array());
            victim.judges(Tagged { nonce: fresh, ..key.forge(&answer) }, &mut unseen);
        }
    }
    for pair in captured[1..].windows(2) {
        for key in solutions(&pair[0], &pair[1], entropy) {
            victim.judges(key.forge(&answer(&request(entropy), entropy)), &mut no_repetition);
        }
    }
    vec![answers, requests, seen_once, unseen, no_repetition]
}

impl fmt::Display for Poly1305Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Poly1305 under a nonce that repeats once (seed {})", self.seed)?;
        writeln!(f, "\n{} answers seen, 2 under one nonce", self.captured_count)?;
        match &self.one_time_key {
            Some(key) => writeln!(f, "one-time key of that nonce: r = {}, s = {}\n", &key[..32], &key[32..])?,
            None => writeln!(f, "{} one-time keys are left\n", self.candidate_count)?,
        }
        writeln!(f, "  {COLUMNS}")?;
        self.attempts.iter().try_for_each(|attempt| writeln!(f, "  {attempt}"))?;
        write!(f, "\nwhole packets, after our server was restored once\n{}", self.on_the_wire)?;
        writeln!(
            f,
            "\nThe draft counts it in favour of Poly1305 that other nonces stay good. But nobody in NTP refuses\n\
             a nonce that has been used: with one, the adversary answers every request until the key is replaced."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hex_literal::hex as octets;

    const NONCE: [u8; 12] = [7; 12];

    fn victim() -> Victim {
        Victim::with_key(
            MacAlgorithm::Poly1305,
            &octets!("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"),
        )
    }

    /// The polynomial and its value, by RFC 8439 section 2.5.2.
    #[test]
    fn tag_of_the_rfc_is_made_from_its_one_time_key() {
        let key = octets!("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b");
        let r = u128::from_le_bytes(*key.first_chunk().unwrap()) & R_MASK;
        let s = u128::from_le_bytes(*key.last_chunk().unwrap());
        let key = OneTimeKey { nonce: None, r: Prime::from_octets(&r.to_le_bytes()), s };
        let tagged = key.forge(b"Cryptographic Forum Research Group");
        assert_eq!(tagged.tag, octets!("a8061dc1305136c6c22b8baf0c0127a9"));
    }

    /// RFC 8439 section 2.6.2 has the one-time key of this key and nonce.
    #[test]
    fn recovered_key_is_that_of_the_rfc() {
        let nonce = octets!("000000000001020304050607");
        let victim = victim();
        let captured =
            [b"an answer".as_slice(), b"and another"].map(|message| victim.says(Some(nonce), message));
        let keys = recover(&captured, &mut Entropy::from_seed(1));
        let expected = octets!("8ad5a08b905f81cc815040274ab29471a833b637e3fd0da508dbb8e2fdd1a646");
        let mut clamped = expected;
        for (octet, mask) in clamped.iter_mut().zip(R_MASK.to_le_bytes()) {
            *octet &= mask;
        }
        assert_eq!(keys.iter().map(OneTimeKey::to_octets).collect::<Vec<_>>(), [clamped]);
    }

    /// The carry is another with each pair; all of them come up, and each is solved.
    #[test]
    fn key_is_recovered_whatever_the_carry() {
        let mut entropy = Entropy::from_seed(2);
        let victim = victim();
        for size in [1, 16, 48, 52, 76] {
            for _ in 0..4 {
                let nonce: [u8; 12] = entropy.array();
                let mut message = || {
                    let mut octets = vec![0; size];
                    entropy.fill(&mut octets);
                    octets
                };
                let messages = [message(), message()];
                let captured = messages.map(|message| victim.says(Some(nonce), &message));
                let keys = recover(&captured, &mut entropy);
                let wins = keys.iter().filter(|key| victim.believes(&key.forge(b"chosen"))).count();
                assert_eq!(wins, 1, "{size}");
            }
        }
    }

    #[test]
    fn nothing_is_recovered_from_nonces_that_differ_or_from_one_message_twice() {
        let mut entropy = Entropy::from_seed(3);
        let victim = victim();
        let differ = [victim.says(Some(NONCE), b"one"), victim.says(Some([8; 12]), b"other")];
        assert_eq!(recover(&differ, &mut entropy), []);
        assert_eq!(candidates(&differ[0], &differ[1], &mut entropy), []);
        let twice = [victim.says(Some(NONCE), b"one"), victim.says(Some(NONCE), b"one")];
        assert_eq!(recover(&twice, &mut entropy), []);
    }

    #[test]
    fn everything_goes_as_the_theory_says_for_any_seed() {
        for seed in 1..=8 {
            let played = Poly1305Nonce::run(seed);
            assert!(played.is_as_expected(), "{played}");
            let wins: Vec<u64> = played.attempts.iter().map(|attempt| attempt.wins).collect();
            assert_eq!(wins, [8, 8, 0, 0, 0], "seed {seed}");
        }
    }
}
