//! HMAC, CMAC and GMAC-SIV before the same adversary: nothing.
//!
//! It does all that breaks the others: it takes a tag for the state of a digest and goes on; it takes two tags under
//! one nonce for those of GMAC, and of Poly1305, and solves; it adds up tags as if they were linear. HMAC and CMAC
//! take no nonce, so that all their tags are, so to speak, under one nonce. GMAC-SIV encrypts the hash of nonce and
//! message (RFC 8452), so that a nonce that repeats leaves no sum without a mask.
//!
//! What does show is that two messages are equal: of HMAC and CMAC always, of GMAC-SIV under a repeated nonce. Who sees
//! the messages, as with NTP everybody does, learns nothing from it.

use std::fmt;

use authentick_crypto::Entropy;
use authentick_crypto::mac::MacAlgorithm;
use serde::Serialize;

use super::digest::Digest;
use super::forged_packets::{self, sum};
use super::pair::{OnTheWire, Pair};
use super::tagged::Tagged;
use super::victim::{Victim, answer, request, shifted};
use super::{gmac_nonce, length_extension, poly1305_nonce};
use crate::verdict::{Attempt, COLUMNS, Verdict};

/// What came of the program against one algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Withstood {
    /// The algorithm, by the name of its type in a key file.
    pub algorithm: String,
    /// What was tried.
    pub attempts: Vec<Attempt<Tagged>>,
    /// Whether the tags of equal messages, under a repeated nonce if there are nonces, are equal.
    pub equal_messages_show: bool,
    /// Whether they are equal under nonces that differ; `None` if the algorithm takes none.
    pub equal_messages_show_under_other_nonces: Option<bool>,
    /// The same attempts on whole packets, before our own client and server.
    pub on_the_wire: OnTheWire,
}

/// What came of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Others {
    /// What decided keys, nonces and messages.
    pub seed: u64,
    /// By algorithm.
    pub withstood: Vec<Withstood>,
}

/// The algorithms that are to withstand.
pub const ALGORITHMS: [MacAlgorithm; 5] = [
    MacAlgorithm::HmacMd5,
    MacAlgorithm::HmacSha224,
    MacAlgorithm::Cmac128,
    MacAlgorithm::Cmac256,
    MacAlgorithm::GmacSiv128,
];

/// Answers that the adversary sees, all under one nonce if there are nonces.
const CAPTURED_COUNT: usize = 8;

impl Others {
    /// Runs the program.
    #[must_use]
    pub fn run(seed: u64) -> Self {
        let mut entropy = Entropy::from_seed(seed);
        let withstood =
            ALGORITHMS.into_iter().map(|algorithm| Withstood::run(algorithm, &mut entropy)).collect();
        Others { seed, withstood }
    }

    /// Whether everything went as the theory says.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.withstood.iter().all(|one| {
            let is_equality_all = one.equal_messages_show_under_other_nonces.unwrap_or(false);
            one.equal_messages_show
                && !is_equality_all
                && one.attempts.iter().all(Attempt::is_as_expected)
                && one.on_the_wire.is_as_expected()
        })
    }
}

impl Withstood {
    fn run(algorithm: MacAlgorithm, entropy: &mut Entropy) -> Self {
        let victim = Victim::random(algorithm, entropy);
        let mut nonce = || algorithm.nonce_size().map(|_| entropy.array());
        let (repeated, another) = (nonce(), nonce());
        let mut message = || answer(&request(entropy), entropy);
        let equal = message();
        let messages: Vec<_> = (0..CAPTURED_COUNT).map(|_| message()).collect();
        let captured: Vec<_> = messages.iter().map(|message| victim.says(repeated, message)).collect();
        let tag = |nonce| victim.says(nonce, &equal).tag;
        Withstood {
            algorithm: algorithm.to_string(),
            attempts: attempts(&victim, &captured, entropy),
            equal_messages_show: tag(repeated) == tag(repeated),
            equal_messages_show_under_other_nonces: another.map(|_| tag(repeated) == tag(another)),
            on_the_wire: forged_packets::withstood(Pair::random(algorithm, false, entropy), entropy),
        }
    }
}

/// Does to `captured` all that breaks other algorithms.
fn attempts(victim: &Victim, captured: &[Tagged], entropy: &mut Entropy) -> Vec<Attempt<Tagged>> {
    let lose = |tried: &str| Attempt::new(victim.algorithm(), tried, Verdict::Reject);
    let mut extended = lose("a longer message, the tag taken for a state of MD5");
    let mut as_gmac = lose("the hash key of GMAC, from two tags under one nonce");
    let mut as_poly1305 = lose("the one-time key of Poly1305, from two tags under one nonce");
    let mut summed = lose("the sum of three messages, with the sum of their tags");
    let mut reused = lose("another message with a tag that was seen");
    for key_size in 1..=length_extension::KEY_SIZE_MAX {
        let nonce = captured[0].nonce;
        let forged = length_extension::extend(Digest::Md5, &captured[0], key_size, b"APPENDED");
        victim.judges(Tagged { nonce, ..forged }, &mut extended);
    }
    for triple in captured.windows(3) {
        let [a, b, c] = triple else { continue };
        let forged = shifted(&answer(&request(entropy), entropy), 3600);
        for key in gmac_nonce::guesses(a, b, entropy) {
            key.forge(a, &forged).map(|forged| victim.judges(forged, &mut as_gmac));
        }
        for key in poly1305_nonce::solutions(a, b, entropy) {
            victim.judges(key.forge(&forged), &mut as_poly1305);
        }
        victim.judges(sum(a, b, c), &mut summed);
        victim.judges(Tagged { message: forged.to_vec(), ..a.clone() }, &mut reused);
    }
    vec![extended, as_gmac, as_poly1305, summed, reused]
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "HMAC, CMAC and GMAC-SIV before the same adversary (seed {})", self.seed)?;
        for one in &self.withstood {
            writeln!(f, "\n  {COLUMNS}")?;
            one.attempts.iter().try_for_each(|attempt| writeln!(f, "  {attempt}"))?;
            let when = match one.equal_messages_show_under_other_nonces {
                None => "",
                Some(false) => " under one nonce, and not under two",
                Some(true) => " under any nonces",
            };
            let show = if one.equal_messages_show { "equal" } else { "different" };
            writeln!(f, "  equal messages have {show} tags{when}")?;
            write!(f, "  whole packets\n{}", one.on_the_wire)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_goes_as_the_theory_says_for_any_seed() {
        for seed in 1..=2 {
            let played = Others::run(seed);
            assert!(played.is_as_expected(), "{played}");
            assert_eq!(played.withstood.len(), ALGORITHMS.len());
        }
    }

    /// The same program breaks what it is made to break, so its silence about the others means something.
    #[test]
    fn same_attempts_win_against_gmac_and_poly1305() {
        let mut entropy = Entropy::from_seed(4);
        for (algorithm, winner) in [(MacAlgorithm::Gmac128, 1), (MacAlgorithm::Poly1305, 2)] {
            let played = Withstood::run(algorithm, &mut entropy);
            let wins: Vec<bool> = played.attempts.iter().map(|attempt| attempt.wins > 0).collect();
            assert!(wins[winner], "{algorithm}: {wins:?}");
        }
        let played = Withstood::run(MacAlgorithm::Md5, &mut entropy);
        assert_eq!(played.attempts[0].wins, 1, "length extension");
    }

    /// The hash of GMAC is linear in messages of one size: three tags under one nonce give a fourth without solving.
    #[test]
    fn sum_of_three_tags_is_a_tag_under_gmac() {
        let played = Withstood::run(MacAlgorithm::Gmac128, &mut Entropy::from_seed(5));
        let summed = &played.attempts[3];
        assert_eq!((summed.wins, summed.tries), (6, 6));
    }
}
