//! The salt collision of draft-ietf-ntp-mac section 6.1: 20,000 clients, each with three servers, all under one key.
//!
//! GMAC's IV of twelve octets is a salt of four, drawn once for each association of a client with a server, and a nonce
//! of eight. The draft finds the number of salts "very close to the birthday bound" and leaves it there. The
//! probability that some two of the 60,000 associations share a salt is 0.34.
//!
//! **What that means for the whole IV.** A shared salt is not yet a repeated IV: the nonces must be equal too.
//!
//! - With random nonces, each association repeats its own nonces far sooner than it meets one of another: of n
//!   associations with q messages each, n q^2 / 2^65 pairs are expected within associations and n^2 q^2 / 2^97 across
//!   them, 70,000 times less. The salt collision is no danger; the eight octets are. Twelve random octets without a
//!   salt leave only n^2 q^2 / 2^97 pairs in all.
//! - With nonces that count up from zero, which need state, an association never repeats its own, but two with one salt
//!   repeat each other's from the first message on: the salt collision is fatal.

use std::collections::HashSet;
use std::fmt;

use authentick_crypto::Entropy;
use serde::Serialize;

use super::refresh::CLIENT_COUNT;

/// Servers that each client asks. draft-ietf-ntp-mac section 6.1.
pub const SERVER_COUNT: u32 = 3;

/// Bits of a salt.
const SALT_BITS: u32 = 32;

/// Bits of a nonce behind a salt.
const NONCE_BITS: u32 = 64;

/// Organisations whose salts are drawn.
const TRIALS: u32 = 1000;

/// How far a simulation may be off, in standard deviations: once in 500 million runs by chance.
const DEVIATIONS_MAX: f64 = 6.0;

/// The probability that of `count` draws from 2^`bits` values two are equal.
#[must_use]
pub fn collision_probability(count: u32, bits: u32) -> f64 {
    let values = f64::from(bits).exp2();
    // The product over k of 1 - k / values, as a sum of logarithms.
    let none: f64 = (0..count).map(|k| (-f64::from(k) / values).ln_1p()).sum();
    -none.exp_m1()
}

/// Pairs of equal IVs that are to be expected, as base-2 logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// Base-2 logarithm of the messages of each association.
    pub messages_log2: f64,
    /// Years in which an association sends them, at one a minute.
    pub years_at_one_a_minute: f64,
    /// Within associations: salt and random nonce.
    pub within_log2: f64,
    /// Across associations: salt and random nonce.
    pub across_log2: f64,
    /// In all: twelve random octets without a salt.
    pub without_salt_log2: f64,
}

impl Expected {
    fn of(associations: u32, messages_log2: f64) -> Self {
        let count = f64::from(associations);
        let pairs_within_log2 = count.log2() + 2.0 * messages_log2 - 1.0;
        let pairs_across_log2 = (count * (count - 1.0) / 2.0).log2() + 2.0 * messages_log2;
        let iv_bits = f64::from(SALT_BITS + NONCE_BITS);
        Expected {
            messages_log2,
            years_at_one_a_minute: messages_log2.exp2() / (365.25 * 1440.0),
            within_log2: pairs_within_log2 - f64::from(NONCE_BITS),
            across_log2: pairs_across_log2 - iv_bits,
            without_salt_log2: (pairs_within_log2.exp2() + pairs_across_log2.exp2()).log2() - iv_bits,
        }
    }
}

/// Whole IVs of a small organisation, drawn many times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SmallIvs {
    /// Bits of a salt.
    pub salt_bits: u32,
    /// Bits of a nonce.
    pub nonce_bits: u32,
    /// Associations.
    pub associations: u32,
    /// Messages of each.
    pub messages: u32,
    /// Organisations.
    pub trials: u32,
    /// Pairs of equal IVs within associations, in all trials.
    pub within: u64,
    /// The same, as expected.
    pub within_expected: f64,
    /// Pairs across associations.
    pub across: u64,
    /// The same, as expected.
    pub across_expected: f64,
    /// Trials in which two associations share a salt.
    pub shared_salts: u32,
    /// The same, as expected.
    pub shared_salts_expected: f64,
    /// Trials in which an IV repeats if nonces count up from zero.
    pub counted_repetitions: u32,
}

impl SmallIvs {
    fn run(entropy: &mut Entropy) -> Self {
        const SALTS: u32 = 10;
        const NONCES: u32 = 16;
        const ASSOCIATIONS: u32 = 32;
        const MESSAGES: u32 = 64;
        const RUNS: u32 = 2000;
        let (mut within, mut across, mut shared_salts, mut counted_repetitions) = (0, 0, 0, 0);
        for _ in 0..RUNS {
            let salts: Vec<u64> = (0..ASSOCIATIONS).map(|_| entropy.u64() >> (64 - SALTS)).collect();
            // (IV, association), so that equal IVs stand side by side.
            let mut drawn = Vec::with_capacity((ASSOCIATIONS * MESSAGES) as usize);
            let mut counted = HashSet::new();
            let mut has_repetition = false;
            for (association, salt) in salts.iter().enumerate() {
                for message in 0..u64::from(MESSAGES) {
                    drawn.push((salt << NONCES | entropy.u64() >> (64 - NONCES), association));
                    has_repetition |= !counted.insert(salt << NONCES | message);
                }
            }
            drawn.sort_unstable();
            for equal in drawn.chunk_by(|a, b| a.0 == b.0) {
                for (index, a) in equal.iter().enumerate() {
                    let own = equal[index + 1..].iter().filter(|b| a.1 == b.1).count();
                    within += own as u64;
                    across += (equal.len() - index - 1 - own) as u64;
                }
            }
            shared_salts += u32::from(has_equal(&salts));
            counted_repetitions += u32::from(has_repetition);
        }
        let pairs = |count: u32| f64::from(count) * f64::from(count - 1) / 2.0;
        let trials = f64::from(RUNS);
        SmallIvs {
            salt_bits: SALTS,
            nonce_bits: NONCES,
            associations: ASSOCIATIONS,
            messages: MESSAGES,
            trials: RUNS,
            within,
            within_expected: trials * f64::from(ASSOCIATIONS) * pairs(MESSAGES) / f64::from(NONCES).exp2(),
            across,
            across_expected: trials * pairs(ASSOCIATIONS) * f64::from(MESSAGES * MESSAGES)
                / f64::from(SALTS + NONCES).exp2(),
            shared_salts,
            shared_salts_expected: trials * collision_probability(ASSOCIATIONS, SALTS),
            counted_repetitions,
        }
    }

    fn is_as_expected(&self) -> bool {
        let is_close = |found: f64, expected: f64, deviation: f64| {
            (found - expected).abs() <= DEVIATIONS_MAX * deviation
        };
        // Pairs of one nonce or salt depend on each other a little, which doubles the spread at most.
        let counts = [(self.within, self.within_expected), (self.across, self.across_expected)];
        let share = self.shared_salts_expected / f64::from(self.trials);
        let deviation = (self.shared_salts_expected * (1.0 - share)).sqrt();
        counts.iter().all(|(found, expected)| is_close(*found as f64, *expected, 2.0 * expected.sqrt()))
            && is_close(f64::from(self.shared_salts), self.shared_salts_expected, deviation)
            && self.counted_repetitions == self.shared_salts
    }
}

/// What came of the program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Salt {
    /// What decided the salts.
    pub seed: u64,
    /// Clients.
    pub clients: u32,
    /// Servers of each.
    pub servers: u32,
    /// Associations: clients times servers.
    pub associations: u32,
    /// The probability that two of them share a salt.
    pub probability: f64,
    /// Organisations whose salts were drawn.
    pub trials: u32,
    /// Those in which two associations shared a salt.
    pub collisions: u32,
    /// Their share of the trials.
    pub simulated: f64,
    /// The standard deviation of that share.
    pub deviation: f64,
    /// What is to be expected of whole IVs.
    pub expected: Vec<Expected>,
    /// Whole IVs of a small organisation.
    pub small: SmallIvs,
}

/// Messages of an association for which pairs are computed: a month and a half, two years, 32 years, and 2^32.
const MESSAGES_LOG2: [f64; 4] = [16.0, 20.0, 24.0, 32.0];

impl Salt {
    /// Runs the program.
    #[must_use]
    pub fn run(seed: u64) -> Self {
        let mut entropy = Entropy::from_seed(seed);
        let associations = CLIENT_COUNT * SERVER_COUNT;
        let mut salts = vec![0_u32; associations as usize];
        let mut collisions = 0;
        for _ in 0..TRIALS {
            salts.fill_with(|| (entropy.u64() >> SALT_BITS) as u32);
            collisions += u32::from(has_equal(&salts));
        }
        let probability = collision_probability(associations, SALT_BITS);
        Salt {
            seed,
            clients: CLIENT_COUNT,
            servers: SERVER_COUNT,
            associations,
            probability,
            trials: TRIALS,
            collisions,
            simulated: f64::from(collisions) / f64::from(TRIALS),
            deviation: (probability * (1.0 - probability) / f64::from(TRIALS)).sqrt(),
            expected: MESSAGES_LOG2.map(|log2| Expected::of(associations, log2)).to_vec(),
            small: SmallIvs::run(&mut entropy),
        }
    }

    /// Whether the simulations came out as the closed forms say.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        (self.simulated - self.probability).abs() <= DEVIATIONS_MAX * self.deviation
            && self.small.is_as_expected()
    }
}

/// Whether two of these random values are equal.
///
/// In a hash table and not by sorting, which takes twenty times as long where the standard library checks itself.
fn has_equal<T: Copy + Into<u64>>(values: &[T]) -> bool {
    let size = (2 * values.len()).next_power_of_two();
    let mut table = vec![None; size];
    values.iter().any(|&value| {
        let value = value.into();
        // Random values need no hash. As half of the places stay free, the search for one is short.
        let mut place = value as usize % size;
        while table[place].is_some_and(|other: u64| other != value) {
            place = (place + 1) % size;
        }
        table[place].replace(value).is_some()
    })
}

impl fmt::Display for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Salt { seed, clients, servers, associations, trials, collisions, .. } = self;
        let Salt { probability, simulated, deviation, .. } = self;
        writeln!(
            f,
            "Salts of four octets among {clients} clients with {servers} servers each (seed {seed})"
        )?;
        writeln!(f, "\nsome two of {associations} associations share a salt")?;
        writeln!(f, "  with probability {probability:.3}")?;
        write!(f, "  in {collisions} of {trials} simulated organisations: ")?;
        writeln!(f, "{simulated:.3}, give or take {deviation:.3}")?;
        writeln!(
            f,
            "\npairs of equal IVs (salt and nonce, 12 octets) among all associations, by messages of each"
        )?;
        writeln!(
            f,
            "  messages    years   salt and 8 random octets        12 random octets   salt and a counter"
        )?;
        writeln!(f, "                      within one     across")?;
        let power = |log2: f64| format!("2^{log2:.1}");
        for row in &self.expected {
            let Expected { messages_log2, years_at_one_a_minute, .. } = row;
            let [within, across, without_salt] =
                [row.within_log2, row.across_log2, row.without_salt_log2].map(power);
            write!(f, "  2^{messages_log2:<6} {years_at_one_a_minute:>8.1}   {within:>10} {across:>10} ")?;
            writeln!(f, "{without_salt:>23}   with probability {probability:.2}")?;
        }
        let SmallIvs { salt_bits, nonce_bits, associations, messages, trials, .. } = &self.small;
        write!(f, "\nsimulated: {associations} associations with {messages} messages, ")?;
        writeln!(f, "{salt_bits} bits of salt, {nonce_bits} of nonce, {trials} times")?;
        let SmallIvs { within, within_expected, across, across_expected, .. } = &self.small;
        writeln!(f, "  within one association  {within} pairs, {within_expected:.0} expected")?;
        writeln!(f, "  across associations     {across} pairs, {across_expected:.0} expected")?;
        let SmallIvs { shared_salts, shared_salts_expected, counted_repetitions, .. } = &self.small;
        write!(f, "  salts shared            {shared_salts} times, {shared_salts_expected:.0} expected; ")?;
        writeln!(f, "with a counter an IV repeats in {counted_repetitions} of them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probability_is_that_of_the_drafts_example() {
        let probability = collision_probability(CLIENT_COUNT * SERVER_COUNT, SALT_BITS);
        assert_eq!(format!("{probability:.3}"), "0.342");
        // Two draws, and as many as there are values and one.
        assert!((collision_probability(2, 8) - 1.0 / 256.0).abs() < 1e-15);
        assert_eq!(collision_probability(257, 8), 1.0);
        assert_eq!(collision_probability(1, 8), 0.0);
    }

    #[test]
    fn everything_goes_as_the_closed_forms_say_for_any_seed() {
        for seed in 1..=2 {
            let played = Salt::run(seed);
            assert!(played.is_as_expected(), "{played}");
            assert!((0..TRIALS).contains(&played.collisions) && played.small.across > 0);
        }
    }

    #[test]
    fn pairs_within_an_association_outnumber_those_across_by_far() {
        let row = Expected::of(60_000, 24.0);
        let ratio = (row.within_log2 - row.across_log2).exp2();
        assert!((71_000.0..72_000.0).contains(&ratio), "{ratio}");
        assert!((row.without_salt_log2 - row.across_log2).abs() < 1e-4);
        assert!((row.years_at_one_a_minute - 31.9).abs() < 0.1);
        // 60,000 * 2^48 / 2 pairs, of which each is equal with probability 2^-64.
        assert!((row.within_log2 - (60_000_f64.log2() + 47.0 - 64.0)).abs() < 1e-9);
    }

    #[test]
    fn equal_values_are_seen_wherever_they_stand() {
        assert!(has_equal(&[3_u32, 1, 2, 3]) && has_equal(&[8_u32, 0, 8]));
        assert!(!has_equal(&[3_u32, 1, 2, 4]) && !has_equal(&[0_u32, 8, 16, 24]));
        assert!(!has_equal::<u32>(&[]));
    }
}
