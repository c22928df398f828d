//! How many messages a key may authenticate: the drafts' table of what a forger may hope for, for any number, and how
//! long the usual limits last.
//!
//! draft-ietf-ntp-mac section 6 gives, for q messages whose tags are known, an advantage of q^2 / 2^128 for HMAC-MD5,
//! CMAC and GMAC, of q^2 / 2^224 for HMAC-SHA-224, and of e^(q^2 / 2^129) / 2^103 for Poly1305; and no less than
//! 2^-128 for any, as a tag can be guessed. What the table leaves out:
//!
//! - **The size of messages.** CMAC's bound counts blocks (Iwata and Kurosawa, "Stronger Security Bounds for OMAC,
//!   TMAC, and XCBC": 4 s^2 / 2^128 for s blocks), that of Poly1305 is for messages of up to 16 octets (Bernstein,
//!   "The Poly1305-AES Message-Authentication Code": 8 / 2^106 for each 16 octets). For 48 octets they are 36 and 3
//!   times as large.
//! - **Nonces.** The bounds of GMAC and Poly1305 hold while no nonce repeats. With eight random octets, which GMAC has
//!   beside a salt, that is the birthday of 2^64 values: at q = 2^32, where the table still promises 2^-64, the key is
//!   lost with probability 0.39. With twelve, which GMAC has without a salt and Poly1305 always, it is so at q = 2^48.
//!
//! The limits that follow are those that the server heeds, `crypto`'s table, beside the birthdays that the draft names.

use std::fmt;

use authentick_crypto::mac::{MacAlgorithm, usage};
use authentick_report::mac::Algorithm;
use authentick_report::mac::security::{Extension, Factors, MESSAGE_SIZE, RepeatedNonce};
use serde::Serialize;

use super::factors::{Objection, named};
use super::refresh::{RATE_PER_SECOND, lasts_s, repetition_probability};

/// Base-2 logarithm of what a forger may hope for who guesses a tag of 16 octets.
const GUESS_LOG2: f64 = -128.0;

/// Algorithms of the drafts' table, in its order.
pub const ALGORITHMS: [MacAlgorithm; 5] = [
    MacAlgorithm::HmacMd5,
    MacAlgorithm::HmacSha224,
    MacAlgorithm::Cmac128,
    MacAlgorithm::Gmac128,
    MacAlgorithm::Poly1305,
];

/// Base-2 logarithm of a forger's advantage after 2^`messages_log2` messages of so many octets, for algorithms whose
/// bound depends on that: CMAC with either key, and Poly1305. `None` for others.
#[must_use]
pub fn sized_advantage_log2(algorithm: MacAlgorithm, messages_log2: f64, octets: usize) -> Option<f64> {
    let blocks_log2 = (octets.div_ceil(16).max(1) as f64).log2();
    let log2 = match algorithm {
        MacAlgorithm::Cmac128 | MacAlgorithm::Cmac256 => 2.0 + 2.0 * (messages_log2 + blocks_log2) - 128.0,
        // The published bound is that of one block: 2^-103 is 8 / 2^106.
        MacAlgorithm::Poly1305 => {
            blocks_log2 + Factors::of(Algorithm::Poly1305).advantage_log2(messages_log2)?
        }
        MacAlgorithm::Md5
        | MacAlgorithm::Sha1
        | MacAlgorithm::Sha256
        | MacAlgorithm::Sha384
        | MacAlgorithm::Sha512
        | MacAlgorithm::HmacMd5
        | MacAlgorithm::HmacSha224
        | MacAlgorithm::Gmac128
        | MacAlgorithm::GmacSiv128 => return None,
    };
    Some(log2.clamp(GUESS_LOG2, 0.0))
}

/// What a forger may hope for against one algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Advantage {
    /// The algorithm, by the name of its type in a key file.
    pub algorithm: &'static str,
    /// As published, as a base-2 logarithm.
    pub published_log2: Option<f64>,
    /// For messages of 48 octets, if their size is in the bound.
    pub sized_log2: Option<f64>,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Base-2 logarithm of q.
    pub messages_log2: f64,
    /// By algorithm, in the drafts' order.
    pub advantages: Vec<Advantage>,
    /// The probability that one of q nonces of eight random octets repeats.
    pub repetition_of_8_octets: f64,
    /// The same with twelve random octets.
    pub repetition_of_12_octets: f64,
}

impl Row {
    /// The row for q = 2^`messages_log2`.
    #[must_use]
    pub fn of(messages_log2: f64) -> Self {
        let advantages = ALGORITHMS.map(|algorithm| Advantage {
            algorithm: algorithm.name(),
            published_log2: Factors::of(named(algorithm)).advantage_log2(messages_log2),
            sized_log2: sized_advantage_log2(algorithm, messages_log2, MESSAGE_SIZE),
        });
        Row {
            messages_log2,
            advantages: advantages.to_vec(),
            repetition_of_8_octets: repetition_probability(messages_log2, 64.0),
            repetition_of_12_octets: repetition_probability(messages_log2, 96.0),
        }
    }

    /// What the size of messages adds is against the algorithm, and so is what a nonce lacks.
    fn is_as_expected(&self) -> bool {
        let is_worse = |one: &Advantage| match (one.published_log2, one.sized_log2) {
            (Some(published), Some(sized)) => sized >= published,
            (Some(_), None) => true,
            (None, _) => false,
        };
        self.advantages.iter().all(is_worse) && self.repetition_of_8_octets >= self.repetition_of_12_octets
    }
}

/// How long a key lasts whose messages are limited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The algorithm, by the name of its type in a key file.
    pub algorithm: &'static str,
    /// Why so many.
    pub reason: &'static str,
    /// Whether the server warns of it; else somebody names it.
    pub is_heeded: bool,
    /// Bits of a nonce that are drawn for each message, if there is one.
    pub random_bits: Option<u32>,
    /// Base-2 logarithm of the messages.
    pub messages_log2: f64,
    /// Seconds that they last at one a minute.
    pub seconds_at_one_a_minute: f64,
    /// Seconds that they last at NIST's average rate of 28,000 a second.
    pub seconds_at_full_rate: f64,
}

impl Limit {
    fn of(
        algorithm: MacAlgorithm,
        random_bits: Option<u32>,
        reason: &'static str,
        messages_log2: f64,
    ) -> Self {
        Limit {
            algorithm: algorithm.name(),
            reason,
            is_heeded: false,
            random_bits,
            messages_log2,
            seconds_at_one_a_minute: lasts_s(messages_log2, 1.0 / 60.0),
            seconds_at_full_rate: lasts_s(messages_log2, RATE_PER_SECOND),
        }
    }

    fn all() -> Vec<Self> {
        let heeded = |algorithm, random_bits: Option<u32>, reason| {
            let has_salt = random_bits == Some(64);
            let log2 = usage::messages_log2(algorithm, has_salt, MESSAGE_SIZE).expect("it has a limit");
            Limit { is_heeded: true, ..Limit::of(algorithm, random_bits, reason, f64::from(log2)) }
        };
        let (cmac, gmac, poly1305) = (MacAlgorithm::Cmac128, MacAlgorithm::Gmac128, MacAlgorithm::Poly1305);
        vec![
            heeded(cmac, None, "NIST SP 800-38B: 2^48 blocks"),
            Limit::of(cmac, None, "NIST SP 800-38B: 2^48 messages", 48.0),
            heeded(gmac, Some(96), "NIST SP 800-38D: nonces of 12 octets"),
            Limit::of(gmac, Some(96), "birthday of nonces of 12 octets", 48.0),
            heeded(gmac, Some(64), "the same probability, 8 octets and a salt"),
            Limit::of(gmac, Some(64), "birthday of nonces of 8 octets", 32.0),
            heeded(poly1305, Some(96), "NIST SP 800-38D: nonces of 12 octets"),
            Limit::of(poly1305, Some(96), "birthday of nonces of 12 octets", 48.0),
        ]
    }

    /// A limit that is heeded leaves a repeated nonce 2^-32, and a forger of CMAC 2^-30 (NIST SP 800-38B, appendix B:
    /// "less than one in a billion" for a collision); what others name leaves more.
    fn is_as_expected(&self) -> bool {
        let is_safe = match self.random_bits {
            Some(bits) => repetition_probability(self.messages_log2, f64::from(bits)) <= (-32f64).exp2(),
            None => sized_advantage_log2(MacAlgorithm::Cmac128, self.messages_log2, MESSAGE_SIZE)
                .is_some_and(|log2| log2 <= -30.0),
        };
        is_safe == self.is_heeded
    }
}

/// The table, the limits and the factors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// The drafts' table of advantages.
    pub rows: Vec<Row>,
    /// How long keys last.
    pub limits: Vec<Limit>,
    /// The four factors of each algorithm.
    pub factors: Vec<FactorsRow>,
}

/// The four factors of an algorithm, and what follows from them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactorsRow {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// First factor: bits of the tag on the wire of NTPv4.
    pub tag_bits: u32,
    /// Second factor: bits of the key.
    pub key_bits: u32,
    /// Third factor: what lies beneath.
    pub primitive: &'static str,
    /// Bits of security that the primitive is held to give; `None` if it is broken.
    pub primitive_bits: Option<u32>,
    /// Fourth factor: base-2 logarithm of the messages that a key may authenticate; `None` if nobody has set a limit.
    pub messages_log2_max: Option<u32>,
    /// Whether a tag is a state from which the digest goes on.
    pub extension: Extension,
    /// What a repeated nonce does.
    pub repeated_nonce: RepeatedNonce,
    /// The shorter of key and tag, in bits.
    pub bound_bits: u32,
    /// The security level in bits, unless what lies beneath is broken.
    pub level_bits: Option<u32>,
    /// What speaks against the algorithm for a server without state.
    pub objections: Vec<Objection>,
}

impl FactorsRow {
    fn of(algorithm: Algorithm) -> Self {
        let factors = Factors::of(algorithm);
        FactorsRow {
            algorithm,
            tag_bits: factors.tag_bits,
            key_bits: factors.key_bits,
            primitive: factors.primitive,
            primitive_bits: factors.primitive_bits,
            messages_log2_max: factors.usage.messages_log2(MESSAGE_SIZE),
            extension: factors.extension,
            repeated_nonce: factors.repeated_nonce,
            bound_bits: factors.bound_bits(),
            level_bits: factors.level_bits(),
            objections: Objection::to(&factors),
        }
    }

    /// No level is above key, tag or primitive, and no algorithm whose nonces may not repeat goes without a limit.
    fn is_as_expected(&self) -> bool {
        let level = self.level_bits.unwrap_or(0);
        let needs_limit =
            matches!(self.repeated_nonce, RepeatedNonce::LosesNonce | RepeatedNonce::LosesHashKey);
        level <= self.tag_bits.min(self.key_bits)
            && level <= self.primitive_bits.unwrap_or(0)
            && (!needs_limit || self.messages_log2_max.is_some_and(|log2| log2 <= 32))
    }
}

/// Numbers of messages in the table, unless others are asked for.
pub const MESSAGES_LOG2: [f64; 8] = [0.0, 16.0, 32.0, 40.0, 48.0, 56.0, 64.0, 68.0];

impl Limits {
    /// The table for numbers of messages that are 2 to the power of each of `messages_log2`.
    #[must_use]
    pub fn of(messages_log2: &[f64]) -> Self {
        Limits {
            rows: messages_log2.iter().copied().map(Row::of).collect(),
            limits: Limit::all(),
            factors: MacAlgorithm::ALL.map(|algorithm| FactorsRow::of(named(algorithm))).to_vec(),
        }
    }

    /// Whether limits keep what they promise, and bounds are in the order that they must have.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.rows.iter().all(Row::is_as_expected)
            && self.limits.iter().all(Limit::is_as_expected)
            && self.factors.iter().all(FactorsRow::is_as_expected)
    }

    fn show_advantages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |log2: Option<f64>| log2.map_or("-".to_owned(), power);
        writeln!(f, "\na forger's advantage after q messages, as draft-ietf-ntp-mac section 6 has it,")?;
        write!(f, "that for {MESSAGE_SIZE} octets if their size counts, ")?;
        writeln!(f, "and the probability of a repeated nonce")?;
        write!(f, "  {:<7}", "q")?;
        ALGORITHMS.iter().try_for_each(|algorithm| write!(f, " {algorithm:>11}"))?;
        writeln!(f, " {:>11} {:>11}  {:>9} {:>9}", "AES128, 48", "POLY., 48", "8 octets", "12 octets")?;
        for Row { messages_log2, advantages, repetition_of_8_octets, repetition_of_12_octets } in &self.rows {
            write!(f, "  {:<7}", power_of(*messages_log2))?;
            let sized = advantages.iter().map(|one| one.sized_log2).filter(Option::is_some);
            for log2 in advantages.iter().map(|one| one.published_log2).chain(sized) {
                write!(f, " {:>11}", shown(log2))?;
            }
            let [of_8, of_12] = [repetition_of_8_octets, repetition_of_12_octets].map(|&probability| {
                if probability == 0.0 { "0".to_owned() } else { power(probability.log2()) }
            });
            writeln!(f, "  {of_8:>9} {of_12:>9}")?;
        }
        Ok(())
    }

    fn show_limits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full_rate = format!("{RATE_PER_SECOND} a second");
        write!(f, "\n{:<54} {:>8} ", "how long a key lasts", "messages")?;
        writeln!(f, "{:>15} {full_rate:>14}", "one a minute")?;
        for limit @ Limit { algorithm, reason, .. } in &self.limits {
            let messages = power_of(limit.messages_log2);
            let [slow, fast] = [limit.seconds_at_one_a_minute, limit.seconds_at_full_rate].map(lasting);
            writeln!(f, "  {algorithm:<9} {reason:<42} {messages:>8} {slow:>15} {fast:>14}")?;
        }
        Ok(())
    }

    fn show_factors(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |bits: Option<u32>| bits.map_or("-".to_owned(), |bits| bits.to_string());
        write!(f, "\n{:<13} {:>3}  {:>3}  {:<9} ", "four factors", "tag", "key", "beneath")?;
        write!(f, "{:>4}  {:>5}  {:>5}  {:>8}  ", "bits", "bound", "level", "messages")?;
        writeln!(f, "speaks against it")?;
        for (row, algorithm) in self.factors.iter().zip(MacAlgorithm::ALL) {
            let FactorsRow { tag_bits, key_bits, primitive, bound_bits, .. } = row;
            let (bits, level) = (shown(row.primitive_bits), shown(row.level_bits));
            let messages = row.messages_log2_max.map_or("-".to_owned(), |log2| format!("2^{log2}"));
            let objections: Vec<_> = row.objections.iter().map(|objection| objection.words()).collect();
            let against = if objections.is_empty() { "nothing".to_owned() } else { objections.join(", ") };
            write!(f, "  {algorithm:<11} {tag_bits:>3}  {key_bits:>3}  {primitive:<9} {bits:>4}  ")?;
            writeln!(f, "{bound_bits:>5}  {level:>5}  {messages:>8}  {against}")?;
        }
        Ok(())
    }
}

/// A time in the largest unit of which there is one.
fn lasting(seconds: f64) -> String {
    const UNITS: [(f64, &str); 4] =
        [(365.25 * 86_400.0, "years"), (86_400.0, "days"), (3600.0, "h"), (60.0, "min")];
    let (size, unit) = UNITS.into_iter().find(|(size, _)| seconds >= 2.0 * size).unwrap_or((1.0, "s"));
    let value = seconds / size;
    match value {
        1e6.. => format!("{value:.1e} {unit}"),
        100.0.. => format!("{value:.0} {unit}"),
        _ => format!("{value:.1} {unit}"),
    }
}

/// A probability or advantage as a power of two.
fn power(log2: f64) -> String {
    if log2 >= 0.0 { "1".to_owned() } else { format!("2^{log2:.1}") }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "How many messages a key may authenticate")?;
        self.show_advantages(f)?;
        self.show_limits(f)?;
        self.show_factors(f)
    }
}

fn power_of(log2: f64) -> String {
    if log2.fract() == 0.0 { format!("2^{log2}") } else { format!("2^{log2:.2}") }
}

/// A number of messages, such as `1000000` or `2^40`, as its base-2 logarithm.
///
/// # Errors
/// If it is none from 1 to 2^128.
pub fn power_of_two(text: &str) -> Result<f64, String> {
    const MOST_LOG2: f64 = 128.0;
    let log2 = match text.strip_prefix("2^") {
        Some(exponent) => exponent.parse::<f64>().ok(),
        None => text.parse::<u128>().ok().filter(|count| *count > 0).map(|count| (count as f64).log2()),
    };
    log2.filter(|log2| (0.0..=MOST_LOG2).contains(log2))
        .ok_or_else(|| format!("no number of messages from 1 to 2^{MOST_LOG2}, such as 1000000 or 2^40"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(algorithm: MacAlgorithm, messages_log2: f64) -> f64 {
        Factors::of(named(algorithm)).advantage_log2(messages_log2).unwrap()
    }

    #[test]
    fn size_of_messages_counts_against_cmac_and_poly1305() {
        let grown = |algorithm| {
            sized_advantage_log2(algorithm, 48.0, MESSAGE_SIZE).unwrap() - published(algorithm, 48.0)
        };
        assert!((grown(MacAlgorithm::Cmac128) - 36_f64.log2()).abs() < 1e-9);
        assert!((grown(MacAlgorithm::Poly1305) - 3_f64.log2()).abs() < 1e-9);
        assert_eq!(
            sized_advantage_log2(MacAlgorithm::Poly1305, 48.0, 16),
            Some(published(MacAlgorithm::Poly1305, 48.0))
        );
        assert_eq!(sized_advantage_log2(MacAlgorithm::HmacMd5, 48.0, 48), None);
    }

    #[test]
    fn broken_algorithms_have_no_published_advantage() {
        for algorithm in MacAlgorithm::ALL {
            let is_listed = Factors::of(named(algorithm)).advantage_log2(1.0).is_some();
            assert_eq!(is_listed, ALGORITHMS.contains(&algorithm), "{algorithm}");
        }
    }

    #[test]
    fn number_of_messages_may_be_a_power_of_two() {
        let numbers = ["1", "2^40", "1024"].map(power_of_two);
        assert_eq!(numbers, [Ok(0.0), Ok(40.0), Ok(10.0)]);
        for text in ["0", "-1", "2^", "2^129", "2^-1", "2^nan", "1.5", ""] {
            assert!(power_of_two(text).is_err(), "{text}");
        }
    }

    #[test]
    fn advantage_never_falls_with_more_messages() {
        for algorithm in ALGORITHMS {
            let all: Vec<f64> =
                (0..1280).map(|tenth| published(algorithm, f64::from(tenth) / 10.0)).collect();
            assert!(all.is_sorted(), "{algorithm}");
        }
    }

    #[test]
    fn limit_that_does_not_keep_what_it_promises_is_found() {
        let good = Limits::of(&MESSAGES_LOG2);
        assert!(good.is_as_expected());
        let bad = |change: &dyn Fn(&mut Limits)| {
            let mut limits = good.clone();
            change(&mut limits);
            assert!(!limits.is_as_expected());
        };
        for index in 0..good.limits.len() {
            bad(&|limits| limits.limits[index].is_heeded ^= true);
        }
        // Poly1305 has twelve random octets: with eight, its limit would be far too high.
        bad(&|limits| limits.limits[6].random_bits = Some(64));
        bad(&|limits| limits.limits[2].messages_log2 = 33.0);
        bad(&|limits| limits.rows[3].advantages[4].sized_log2 = Some(-127.0));
        bad(&|limits| limits.rows[2].repetition_of_12_octets = 1.0);
        let gmac = good.factors.iter().position(|row| row.algorithm == Algorithm::Gmac128).unwrap();
        bad(&|limits| limits.factors[gmac].messages_log2_max = Some(48));
        bad(&|limits| limits.factors[gmac].level_bits = Some(129));
    }

    #[test]
    fn text_has_every_row_and_json_every_factor() {
        let limits = Limits::of(&[48.0, 20.5]);
        let text = limits.to_string();
        assert!(text.contains("\n  2^48 ") && text.contains("\n  2^20.50 "), "{text}");
        assert!(
            text.contains("8166 years") && text.contains("42.6 h") && text.contains("319 years"),
            "{text}"
        );
        let json = serde_json::to_value(&limits).unwrap();
        assert_eq!(json["factors"].as_array().unwrap().len(), MacAlgorithm::ALL.len());
        assert_eq!(json["factors"][7]["algorithm"], "AES128");
        assert_eq!(json["factors"][7]["bound_bits"], 128);
    }
}
