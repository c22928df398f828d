//! GMAC under a repeated nonce: the key of its hash falls, and with it every nonce that was ever seen.
//!
//! A tag is a polynomial in H, whose coefficients are the blocks of the message, plus a mask that the nonce decides
//! (NIST SP 800-38D section 6.4 and 7.1). For a header of 48 octets, blocks B1 to B3:
//!
//! ```text
//! T = E_K(nonce || 1) + B1 H^4 + B2 H^3 + B3 H^2 + length H
//! ```
//!
//! Two tags under one nonce have the same mask, which falls out of their sum; H is one of the roots of what is left
//! (A. Joux, "Authentication Failures in NIST version of GCM"). H is the same for all nonces, so any one tag now gives
//! the mask of its nonce, and with it the tag of any message under that nonce. K stays hidden: a nonce under which
//! nothing was seen has an unknown mask.

use std::fmt;

use authentick_crypto::Entropy;
use authentick_crypto::mac::MacAlgorithm;
use serde::Serialize;

use super::forged_packets;
use super::pair::OnTheWire;
use super::tagged::{NONCE_SIZE, Tagged, hex, salted};
use super::victim::{Victim, answer, request, shifted};
use crate::algebra::Field;
use crate::algebra::binary::Binary;
use crate::algebra::polynomial::Polynomial;
use crate::algebra::roots::roots;
use crate::verdict::{Attempt, COLUMNS, Verdict};

/// What the adversary has won: the key of GMAC's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashKey(Binary);

impl HashKey {
    /// The key that is this block, won or guessed.
    #[must_use]
    pub fn from_block(block: [u8; 16]) -> Self {
        HashKey(Binary::from_block(block))
    }

    /// The block, E_K(0).
    #[must_use]
    pub const fn to_block(self) -> [u8; 16] {
        self.0.to_block()
    }

    /// The mask of the nonce under which `seen` was said; `None` if its tag is not a whole one.
    #[must_use]
    pub fn mask(&self, seen: &Tagged) -> Option<[u8; 16]> {
        let tag = Binary::from_block(*seen.tag.as_array()?);
        Some(tag.plus(&hash(&seen.message).at(&self.0)).to_block())
    }

    /// `message` with its tag under the nonce of `seen`; `None` if the tag of that is not a whole one.
    #[must_use]
    pub fn forge(&self, seen: &Tagged, message: &[u8]) -> Option<Tagged> {
        let mask = Binary::from_block(self.mask(seen)?);
        let tag = mask.plus(&hash(message).at(&self.0)).to_block().to_vec();
        Some(Tagged { nonce: seen.nonce, message: message.to_vec(), tag })
    }
}

/// GHASH of a message that is authenticated only, as a polynomial in H. NIST SP 800-38D section 6.4.
fn hash(message: &[u8]) -> Polynomial<Binary> {
    let length = (8 * message.len() as u128) << 64;
    let mut coefficients = vec![Binary::zero(), Binary::from_block(length.to_be_bytes())];
    coefficients.extend(message.chunks(16).rev().map(|octets| {
        let mut block = [0; 16];
        block[..octets.len()].copy_from_slice(octets);
        Binary::from_block(block)
    }));
    Polynomial::new(coefficients)
}

/// The polynomial in H that vanishes at the hash key, if `a` and `b` were said under one nonce; `None` if a tag is
/// not a whole one.
fn difference(a: &Tagged, b: &Tagged) -> Option<Polynomial<Binary>> {
    let tag = |tagged: &Tagged| Some(Polynomial::constant(Binary::from_block(*tagged.tag.as_array()?)));
    Some(hash(&a.message).plus(&hash(&b.message)).plus(&tag(a)?).plus(&tag(b)?))
}

/// Each block that can be the hash key, if `a` and `b` were said under one nonce, whatever their nonces say.
#[must_use]
pub fn candidates(a: &Tagged, b: &Tagged, entropy: &mut Entropy) -> Vec<HashKey> {
    let Some(polynomial) = difference(a, b) else { return Vec::new() };
    only_last_block_differs(&polynomial)
        .map_or_else(|| roots(&polynomial, entropy), |h| vec![h])
        .into_iter()
        .filter(|h| *h != Binary::zero())
        .map(HashKey)
        .collect()
}

/// The same, and zero: any block serves who has none, if two tags leave no candidate.
pub(super) fn guesses(a: &Tagged, b: &Tagged, entropy: &mut Entropy) -> impl Iterator<Item = HashKey> {
    candidates(a, b, entropy).into_iter().chain([HashKey::from_block([0; 16])])
}

/// The root of c H^2 + t, which needs no search: two answers to one request can differ in their receive and transmit
/// timestamps alone, and these are the last block.
fn only_last_block_differs(polynomial: &Polynomial<Binary>) -> Option<Binary> {
    let is_short = polynomial.degree() == Some(2) && polynomial.coefficient(1) == Binary::zero();
    let inverse = polynomial.coefficient(2).inverse()?;
    is_short.then(|| polynomial.coefficient(0).times(&inverse).square_root())
}

/// Looks for nonces that were used twice, and solves for the hash key: what is left once every tag under a repeated
/// nonce has had its say. Usually one, none without a repeated nonce.
#[must_use]
pub fn recover(captured: &[Tagged], entropy: &mut Entropy) -> Vec<HashKey> {
    let mut left: Option<Vec<HashKey>> = None;
    for (index, a) in captured.iter().enumerate() {
        for b in &captured[index + 1..] {
            if a.nonce.is_none() || a.nonce != b.nonce || a.message == b.message {
                continue;
            }
            let fits = |key: &HashKey| difference(a, b).is_some_and(|d| d.at(&key.0) == Binary::zero());
            left = Some(match left {
                None => candidates(a, b, entropy),
                Some(keys) => keys.into_iter().filter(fits).collect(),
            });
        }
    }
    left.unwrap_or_default()
}

/// What came of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GmacNonce {
    /// What decided keys, nonces and messages.
    pub seed: u64,
    /// Answers and requests that the adversary saw.
    pub captured_count: usize,
    /// Degree of the polynomial that two answers under one nonce make.
    pub degree: Option<usize>,
    /// Blocks that those two answers leave as hash keys.
    pub candidate_count: usize,
    /// The one of them under which a forged answer was believed, as 32 hexadecimal digits.
    pub hash_key: Option<String>,
    /// What was tried with it.
    pub attempts: Vec<Attempt<Tagged>>,
    /// The same against our own client and server, whose nonces are twelve random octets.
    pub on_the_wire: OnTheWire,
    /// The same where nonces are a salt, which is not on the wire, and eight random octets.
    pub on_the_wire_with_salt: OnTheWire,
}

/// Answers whose nonces are all different, and requests.
const ORDINARY_COUNT: usize = 4;

/// Answers and requests that are forged in each attempt.
const FORGERY_COUNT: usize = 8;

impl GmacNonce {
    /// Runs the program: server and client share a key and a salt; the server's nonce repeats once.
    #[must_use]
    pub fn run(seed: u64) -> Self {
        let mut entropy = Entropy::from_seed(seed);
        let world = World::new(&mut entropy);
        let keys = recover(&world.captured, &mut entropy);
        let mut decided = Attempt::new(
            MacAlgorithm::Gmac128,
            "an answer for each root, until one is believed",
            Verdict::WinAuthentication,
        );
        let key = world.decide(&keys, &mut decided, &mut entropy);
        let mut attempts = vec![decided];
        attempts.extend(world.attempts(key, &mut entropy));
        GmacNonce {
            seed,
            captured_count: world.captured.len(),
            degree: difference(&world.captured[0], &world.captured[1]).and_then(|d| d.degree()),
            candidate_count: keys.len(),
            hash_key: key.map(|key| hex(&key.to_block())),
            attempts,
            on_the_wire: forged_packets::gmac(false, &mut entropy),
            on_the_wire_with_salt: forged_packets::gmac(true, &mut entropy),
        }
    }

    /// Whether everything went as the theory says.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.hash_key.is_some()
            && self.attempts.iter().all(Attempt::is_as_expected)
            && self.on_the_wire.is_as_expected()
            && self.on_the_wire_with_salt.is_as_expected()
    }
}

/// A server and a client that share a key and a salt, and what was seen of them.
struct World {
    victim: Victim,
    /// First the two answers under one nonce; then an answer and a request under nonces of their own, by turns.
    captured: Vec<Tagged>,
}

/// Answers under the nonce that repeats.
const REPEATED_COUNT: usize = 2;

impl World {
    fn new(entropy: &mut Entropy) -> Self {
        let victim = Victim::random(MacAlgorithm::Gmac128, entropy);
        let salt: [u8; 4] = entropy.array();
        let repeated = nonce(salt, entropy);
        let mut captured = Vec::new();
        for _ in 0..REPEATED_COUNT {
            captured.push(victim.says(Some(repeated), &answer(&request(entropy), entropy)));
        }
        for _ in 0..ORDINARY_COUNT {
            let request = request(entropy);
            captured.push(victim.says(Some(nonce(salt, entropy)), &answer(&request, entropy)));
            captured.push(victim.says(Some(nonce(salt, entropy)), &request));
        }
        World { victim, captured }
    }

    /// The one of `keys` under which a victim believes an answer.
    fn decide(
        &self,
        keys: &[HashKey],
        attempt: &mut Attempt<Tagged>,
        entropy: &mut Entropy,
    ) -> Option<HashKey> {
        let answer = shifted(&answer(&request(entropy), entropy), 3600);
        keys.iter().copied().find(|key| self.forge(*key, &self.captured[0], None, &answer, attempt))
    }

    /// Forges with `key`, and does what cannot work.
    fn attempts(&self, key: Option<HashKey>, entropy: &mut Entropy) -> Vec<Attempt<Tagged>> {
        let repeated = &self.captured[0];
        let (other, asked) = (&self.captured[REPEATED_COUNT], &self.captured[REPEATED_COUNT + 1]);
        let win = |tried: &str| Attempt::new(MacAlgorithm::Gmac128, tried, Verdict::WinAuthentication);
        let lose = |tried: &str| Attempt::new(MacAlgorithm::Gmac128, tried, Verdict::Reject);

        let mut under_repeated = win("answers, an hour off, under the nonce that repeated");
        let mut under_other = win("answers, an hour off, under a nonce that was seen once");
        let mut requests = win("requests, under the nonce of another request");
        let mut unseen = lose("answers under a nonce under which nothing was seen");
        for key in std::iter::repeat_n(key, FORGERY_COUNT).flatten() {
            let request = request(entropy);
            let answer = shifted(&answer(&request, entropy), 3600);
            self.forge(key, repeated, None, &answer, &mut under_repeated);
            self.forge(key, other, None, &answer, &mut under_other);
            self.forge(key, asked, None, &request, &mut requests);
            self.forge(key, repeated, Some(entropy.array()), &answer, &mut unseen);
        }

        let mut no_repetition = lose("the same from answers whose nonces differ");
        for pair in self.captured[REPEATED_COUNT..].windows(2) {
            let answer = shifted(&answer(&request(entropy), entropy), 3600);
            for key in guesses(&pair[0], &pair[1], entropy) {
                self.forge(key, &pair[0], None, &answer, &mut no_repetition);
            }
        }
        vec![under_repeated, under_other, requests, unseen, no_repetition]
    }

    /// Puts `message` before a victim with the tag that `key` makes under the nonce of `seen`, or says that it was
    /// under `nonce`.
    fn forge(
        &self,
        key: HashKey,
        seen: &Tagged,
        nonce: Option<[u8; NONCE_SIZE]>,
        message: &[u8],
        attempt: &mut Attempt<Tagged>,
    ) -> bool {
        let Some(mut forged) = key.forge(seen, message) else { return false };
        forged.nonce = nonce.or(forged.nonce);
        self.victim.judges(forged, attempt)
    }
}

/// Salt and eight random octets. draft-ietf-ntp-mac section 6.1.
fn nonce(salt: [u8; 4], entropy: &mut Entropy) -> [u8; NONCE_SIZE] {
    salted(salt, entropy.array())
}

impl fmt::Display for GmacNonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "GMAC under a nonce that repeats once (seed {})", self.seed)?;
        writeln!(f, "\n{} answers and requests seen, {REPEATED_COUNT} under one nonce", self.captured_count)?;
        let degree = self.degree.map_or("0".to_owned(), |degree| degree.to_string());
        let count = self.candidate_count;
        writeln!(f, "two tags make a polynomial of degree {degree}; roots that are not zero: {count}")?;
        match &self.hash_key {
            Some(key) => writeln!(f, "hash key H = {key}; the key of AES stays hidden\n")?,
            None => writeln!(f, "none of them is the hash key\n")?,
        }
        writeln!(f, "  {COLUMNS}")?;
        self.attempts.iter().try_for_each(|attempt| writeln!(f, "  {attempt}"))?;
        writeln!(f, "\nwhole packets, after our server was restored once; nonces of twelve random octets")?;
        self.on_the_wire.fmt(f)?;
        writeln!(f, "\nthe same with a salt and eight random octets")?;
        self.on_the_wire_with_salt.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hex_literal::hex as octets;

    const SERVER: [u8; 48] = octets!(
        "240206e900000236000003b7c035676ce5f661fd6f165f03e5f663a87619ef40e5f663a8798c6581e5f663a8798eae2b"
    );
    const CLIENT: [u8; 48] = octets!(
        "230206e8000003ff0000037d5ec69f0fe5f662987b61b9afe5f663667b64995de5f6636681405590e5f663a8761dde48"
    );
    const NONCE: [u8; 12] = octets!("000102030405060708090a0b");

    fn victim() -> Victim {
        Victim::with_key(MacAlgorithm::Gmac128, &octets!("000102030405060708090a0b0c0d0e0f"))
    }

    #[test]
    fn vector_of_two_captured_packets() {
        let victim = victim();
        let [a, b] = [SERVER, CLIENT].map(|message| victim.says(Some(NONCE), &message));
        assert_eq!(a.tag, octets!("6bdbf0c8def81f645e7890379f76ff4f"));
        assert_eq!(b.tag, octets!("940122e5d11557cab9d564590f5f67e9"));
        let keys = recover(&[a.clone(), b], &mut Entropy::from_seed(1));
        let key = keys.iter().find(|key| key.to_block() == octets!("c6a13b37878f5b826f4f8162a1c8d879"));
        let key = key.expect("the hash key is among the roots");
        assert_eq!(key.mask(&a), Some(octets!("435b9ba12d75a4be8a977ea3cd011890")));
        let mut message = SERVER;
        message[1] = 1;
        let forged = key.forge(&a, &message).unwrap();
        assert_eq!(forged.tag, octets!("1771cd09390d2be1c8e12f74fce153af"));
        assert!(victim.believes(&forged));
    }

    /// The third tag leaves one root, whatever the seed of the search.
    #[test]
    fn third_tag_decides() {
        let victim = victim();
        let mut third = SERVER;
        third[20] ^= 0x55;
        let captured = [SERVER, CLIENT, third].map(|message| victim.says(Some(NONCE), &message));
        for seed in 0..8 {
            let keys = recover(&captured, &mut Entropy::from_seed(seed));
            assert_eq!(
                keys.iter().map(|key| key.to_block()).collect::<Vec<_>>(),
                [octets!("c6a13b37878f5b826f4f8162a1c8d879")]
            );
        }
    }

    #[test]
    fn answers_that_differ_in_the_last_block_need_no_search() {
        let victim = victim();
        let captured = [SERVER, shifted(&SERVER, 1)].map(|message| victim.says(Some(NONCE), &message));
        let polynomial = difference(&captured[0], &captured[1]).unwrap();
        let h = only_last_block_differs(&polynomial).expect("c H^2 + t");
        assert_eq!(h.to_block(), octets!("c6a13b37878f5b826f4f8162a1c8d879"));
        assert_eq!(roots(&polynomial, &mut Entropy::from_seed(2)), [h]);
    }

    #[test]
    fn messages_of_any_size_tell_the_key() {
        let mut entropy = Entropy::from_seed(3);
        let victim = victim();
        for size in [1, 16, 47, 76, 300] {
            let long = vec![0x5a; size];
            let captured = [&SERVER[..], &long].map(|message| victim.says(Some(NONCE), message));
            let forged = recover(&captured, &mut entropy)
                .into_iter()
                .filter_map(|key| key.forge(&captured[0], &CLIENT))
                .filter(|forged| victim.believes(forged));
            assert_eq!(forged.count(), 1, "{size}");
        }
    }

    #[test]
    fn nothing_is_recovered_from_nonces_that_differ_or_from_one_message_twice() {
        let mut entropy = Entropy::from_seed(4);
        let victim = victim();
        let other = [9; 12];
        let differ = [victim.says(Some(NONCE), &SERVER), victim.says(Some(other), &CLIENT)];
        assert_eq!(recover(&differ, &mut entropy), []);
        let twice = [victim.says(Some(NONCE), &SERVER), victim.says(Some(NONCE), &SERVER)];
        assert_eq!(recover(&twice, &mut entropy), []);
    }

    #[test]
    fn everything_goes_as_the_theory_says_for_any_seed() {
        for seed in 1..=12 {
            let played = GmacNonce::run(seed);
            assert!(played.is_as_expected(), "{played}");
            assert!((1..=4).contains(&played.candidate_count), "{played}");
            let wins: Vec<u64> = played.attempts.iter().map(|attempt| attempt.wins).collect();
            assert_eq!(wins, [1, 8, 8, 8, 0, 0], "seed {seed}");
        }
    }
}
