//! The three ways of replacing a GMAC key in time that draft-ietf-ntp-mac section 6.1 weighs, and why none of them
//! works.
//!
//! A server without state cannot count up a nonce, so it draws eight random octets for each answer. After 2^32 answers
//! under one key a nonce repeats "with high probability", and the key is lost. The draft's cases:
//!
//! - **Nobody counts.** 2^32 answers last for thousands of years if one client asks once a minute. A man in the
//!   middle who replays one old request, as fast as the server answers, has them in two days.
//! - **The client counts** the answers that it gets, and asks for a new key in time. The answers to the replays never
//!   reach it.
//! - **The server counts** all its answers, and then replaces the keys of all clients. The same replays make it do so
//!   every other day; NTP has no means for it but its operators.
//!
//! The draft does not say how high the probability is: 0.39 at 2^32. So even a server that counts loses two keys in
//! five to who only listens. To have it at 2^-32, as NIST SP 800-38D section 8 demands, a key would have to go after
//! 2^16.5 answers, every few seconds.
//!
//! The cases are computed at full size and simulated with a shorter nonce, down to the forged answer: nobody can wait
//! until 64 bits repeat. What the simulation takes a server to do is put to our own one, with nonces of full size: that
//! a replay is answered like any request, with a nonce of its own in which all 64 bits are drawn, and is counted.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;

use authentick_crypto::Entropy;
use authentick_crypto::mac::MacAlgorithm;
use authentick_proto::server::outcome::Outcome;
use serde::Serialize;

use super::gmac_nonce;
use super::pair::Pair;
use super::tagged::{NONCE_SIZE, Tagged, salted};
use super::victim::{Victim, answer, request, shifted};
use crate::verdict::{Attempt, COLUMNS, Verdict};

/// Answers a second that a NIST server gives on average: Sherman and Levine, "Usage Analysis of the NIST Internet Time
/// Service", as both drafts cite it.
pub const RATE_PER_SECOND: f64 = 28_000.0;

/// Clients of the drafts' example of a large organisation. draft-ietf-ntp-mac section 6.1.
pub const CLIENT_COUNT: u32 = 20_000;

/// Bits of the nonce that are drawn for each answer.
const NONCE_BITS: u32 = 64;

/// Bits that are drawn in the simulation, so that a nonce repeats while one watches.
const SIMULATED_NONCE_BITS: u32 = 20;

/// Replays for each request of the client in the simulation. In earnest there are 1.68 million a minute.
const REPLAYS_A_MINUTE: u64 = 100;

/// Replays of one request to our own server: each bit of a nonce is then drawn as one and as zero but for a probability
/// of 2^-200 or so.
const REPLAY_COUNT: u64 = 256;

/// Keys that are used up in each simulated case.
const KEY_COUNT: u64 = 40;

const SECONDS_A_YEAR: f64 = 365.25 * 86_400.0;

/// The probability that, of 2^`drawn_log2` draws from 2^`bits` values, two are equal; good while there are many values.
#[must_use]
pub fn repetition_probability(drawn_log2: f64, bits: f64) -> f64 {
    -(-(2.0 * drawn_log2 - bits - 1.0).exp2()).exp_m1()
}

/// How long 2^`messages_log2` messages last at `rate_per_second`, in seconds.
#[must_use]
pub fn lasts_s(messages_log2: f64, rate_per_second: f64) -> f64 {
    messages_log2.exp2() / rate_per_second
}

/// What follows from 2^32 answers, at full size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Base-2 logarithm of the answers after which a key is to go: half the bits of the nonce.
    pub limit_log2: f64,
    /// Years that they last if one client asks once a minute.
    pub years_at_one_a_minute: f64,
    /// Hours that they last at [`RATE_PER_SECOND`].
    pub hours_at_full_rate: f64,
    /// Days that they last if [`CLIENT_COUNT`] clients ask once a minute.
    pub days_of_all_clients: f64,
    /// The probability that a nonce has repeated by then.
    pub repetition_probability: f64,
    /// Base-2 logarithm of the answers after which that probability is 2^-32.
    pub careful_limit_log2: f64,
    /// Seconds that these last at [`RATE_PER_SECOND`].
    pub careful_seconds_at_full_rate: f64,
}

impl Figures {
    /// The figures for a nonce of `nonce_bits`.
    fn of(nonce_bits: u32) -> Self {
        let bits = f64::from(nonce_bits);
        let limit_log2 = bits / 2.0;
        // q^2 / 2 / 2^bits = 2^-32.
        let careful_limit_log2 = (bits + 1.0 - 32.0) / 2.0;
        Figures {
            limit_log2,
            years_at_one_a_minute: lasts_s(limit_log2, 1.0 / 60.0) / SECONDS_A_YEAR,
            hours_at_full_rate: lasts_s(limit_log2, RATE_PER_SECOND) / 3600.0,
            days_of_all_clients: lasts_s(limit_log2, f64::from(CLIENT_COUNT) / 60.0) / 86_400.0,
            repetition_probability: repetition_probability(limit_log2, bits),
            careful_limit_log2,
            careful_seconds_at_full_rate: lasts_s(careful_limit_log2, RATE_PER_SECOND),
        }
    }
}

/// Who counts answers, to replace the key after so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// Nobody: the key stays.
    Nobody,
    /// The client counts those that it gets.
    Client,
    /// The server counts those that it gives.
    Server,
}

impl Counter {
    /// Every case of the draft.
    pub const ALL: [Counter; 3] = [Counter::Nobody, Counter::Client, Counter::Server];

    const fn name(self) -> &'static str {
        match self {
            Counter::Nobody => "nobody counts",
            Counter::Client => "the client counts",
            Counter::Server => "the server counts",
        }
    }
}

/// One case, simulated key by key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// Who counts.
    pub counter: Counter,
    /// Whether somebody replays requests and swallows the answers, or only listens.
    pub has_replays: bool,
    /// Forged answers, of which each key can bring one: it is put before the client as soon as a nonce has repeated.
    pub forgeries: Attempt<Tagged>,
    /// Answers under a key, on average.
    pub answers_mean: f64,
    /// Answers under a key that reached the client, on average: minutes, as it asks once a minute.
    pub minutes_mean: f64,
    /// Keys that were replaced because a count had come to its limit.
    pub replaced_count: u64,
}

impl Case {
    fn run(counter: Counter, has_replays: bool, entropy: &mut Entropy) -> Self {
        let tried = match has_replays {
            true => format!("{}, requests are replayed", counter.name()),
            false => format!("{}, nobody replays", counter.name()),
        };
        let mut forgeries = Attempt::new(MacAlgorithm::Gmac128, tried, Verdict::WinAuthentication);
        let (mut answers, mut minutes, mut replaced_count) = (0, 0, 0);
        for _ in 0..KEY_COUNT {
            let life = Life::of_a_key(counter, has_replays, entropy);
            answers += life.answer_count;
            minutes += life.client_count;
            replaced_count += u64::from(life.is_replaced);
            if let Some((forged, believed)) = life.forged {
                forgeries.note(forged, believed);
            }
        }
        let mean = |sum: u64| sum as f64 / KEY_COUNT as f64;
        Case {
            counter,
            has_replays,
            forgeries,
            answers_mean: mean(answers),
            minutes_mean: mean(minutes),
            replaced_count,
        }
    }

    /// Every repeated nonce gives a forged answer. Without a count, or with one that replays do not reach, no key
    /// escapes; with one that sees all answers, some do.
    fn is_as_expected(&self) -> bool {
        let all_win = self.forgeries.wins + self.replaced_count == KEY_COUNT;
        let escaped = match (self.counter, self.has_replays) {
            (Counter::Nobody, _) | (Counter::Client, true) => self.replaced_count == 0,
            (Counter::Client, false) | (Counter::Server, _) => (1..KEY_COUNT).contains(&self.replaced_count),
        };
        self.forgeries.is_as_expected() && all_win && escaped
    }
}

/// What happened under one key.
struct Life {
    /// Answers that the server gave.
    answer_count: u64,
    /// Those that reached the client.
    client_count: u64,
    /// What was forged after a nonce had repeated, and whether the client believed it.
    forged: Option<(Tagged, bool)>,
    /// Whether the key was replaced before.
    is_replaced: bool,
}

/// Answers after which a key is to go, in the simulation.
const SIMULATED_LIMIT: u64 = 1 << (SIMULATED_NONCE_BITS / 2);

/// No key sees more: by then a nonce has repeated but for a probability of e^-2048.
const ANSWERS_MAX: u64 = 64 * SIMULATED_LIMIT;

impl Life {
    fn of_a_key(counter: Counter, has_replays: bool, entropy: &mut Entropy) -> Self {
        let victim = Victim::random(MacAlgorithm::Gmac128, entropy);
        let salt: [u8; 4] = entropy.array();
        let mut seen: HashMap<[u8; NONCE_SIZE], Tagged> = HashMap::new();
        let mut life = Life { answer_count: 0, client_count: 0, forged: None, is_replaced: false };
        while life.answer_count < ANSWERS_MAX {
            let captured_request = request(entropy);
            let answers = if has_replays { 1 + REPLAYS_A_MINUTE } else { 1 };
            for turn in 0..answers {
                let given = victim.says(Some(nonce(salt, entropy)), &answer(&captured_request, entropy));
                life.answer_count += 1;
                // The first answers the client; the adversary swallows the others, and keeps all.
                life.client_count += u64::from(turn == 0);
                match seen.entry(given.nonce.expect("the server drew one")) {
                    Entry::Vacant(place) => {
                        place.insert(given);
                    }
                    Entry::Occupied(earlier) => {
                        life.forged = forge(&victim, &[earlier.get().clone(), given], entropy);
                        return life;
                    }
                }
                life.is_replaced = match counter {
                    Counter::Nobody => false,
                    Counter::Client => life.client_count == SIMULATED_LIMIT,
                    Counter::Server => life.answer_count == SIMULATED_LIMIT,
                };
                if life.is_replaced {
                    return life;
                }
            }
        }
        life
    }
}

/// An answer that is an hour off, for a request that the client has just sent.
fn forge(victim: &Victim, captured: &[Tagged; 2], entropy: &mut Entropy) -> Option<(Tagged, bool)> {
    let wanted = shifted(&answer(&request(entropy), entropy), 3600);
    let mut last = None;
    for key in gmac_nonce::recover(captured, entropy) {
        let forged = key.forge(&captured[0], &wanted)?;
        let believed = victim.believes(&forged);
        last = Some((forged, believed));
        if believed {
            break;
        }
    }
    last
}

fn nonce(salt: [u8; 4], entropy: &mut Entropy) -> [u8; NONCE_SIZE] {
    let drawn = entropy.u64() >> (64 - SIMULATED_NONCE_BITS);
    salted(salt, drawn.to_be_bytes())
}

/// What our own server makes of one request that is sent again and again: what the simulation takes for granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// How often the request was sent after the client had.
    pub replay_count: u64,
    /// Answers with time and a tag, the client's included.
    pub answer_count: u64,
    /// Different nonces in them.
    pub nonce_count: u64,
    /// Bits of a nonce that were seen as one and as zero.
    pub drawn_bits: u32,
    /// Answers as the server counts them, by which it would replace the key.
    pub counted: u64,
    /// Answers that the client takes: it counts to this.
    pub taken_count: u64,
}

impl Replayed {
    /// Has a client with a salted key ask once, and an adversary repeat it.
    fn run(entropy: &mut Entropy) -> Self {
        let mut pair = Pair::random(MacAlgorithm::Gmac128, true, entropy);
        let mut taken = Attempt::new(MacAlgorithm::Gmac128, "answers to replays", Verdict::Reject);
        let (mut exchange, packet) = pair.ask();
        let mut nonces = HashSet::new();
        let (mut answer_count, mut ones, mut zeros) = (0, 0u128, 0u128);
        for _ in 0..=REPLAY_COUNT {
            let (outcome, answer) = pair.answer(&packet);
            let said = Tagged::from_packet(&answer).filter(|_| outcome == Outcome::Mac);
            let Some(nonce) = said.and_then(|(_, said)| said.nonce) else { continue };
            answer_count += 1;
            let bits = nonce.iter().fold(0, |bits, octet| bits << 8 | u128::from(*octet));
            (ones, zeros) = (ones | bits, zeros | !bits);
            nonces.insert(nonce);
            pair.try_client(&mut exchange, &answer, &mut taken);
        }
        Replayed {
            replay_count: REPLAY_COUNT,
            answer_count,
            nonce_count: nonces.len() as u64,
            drawn_bits: (ones & zeros).count_ones(),
            counted: pair.counted(),
            taken_count: taken.wins,
        }
    }

    /// Every request is answered under a nonce of its own and counted, and the client knows of one.
    fn is_as_expected(&self) -> bool {
        let all = self.replay_count + 1;
        [self.answer_count, self.nonce_count, self.counted] == [all; 3]
            && self.drawn_bits == NONCE_BITS
            && self.taken_count == 1
    }
}

/// What came of the program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refresh {
    /// What decided keys, nonces and messages.
    pub seed: u64,
    /// At full size, computed.
    pub figures: Figures,
    /// Bits of the nonce in the simulation.
    pub simulated_nonce_bits: u32,
    /// Answers after which a key is to go, in the simulation.
    pub simulated_limit: u64,
    /// Replays a minute in the simulation, in which the client asks once a minute.
    pub replays_a_minute: u64,
    /// Answers until a nonce repeats, on average, if nobody counts: closed form.
    pub answers_to_repetition: f64,
    /// The cases, without and with replays.
    pub cases: Vec<Case>,
    /// The same replays to our own server.
    pub replayed: Replayed,
}

impl Refresh {
    /// Runs the program.
    #[must_use]
    pub fn run(seed: u64) -> Self {
        let mut entropy = Entropy::from_seed(seed);
        let cases = Counter::ALL.into_iter().flat_map(|counter| [(counter, false), (counter, true)]);
        Refresh {
            seed,
            figures: Figures::of(NONCE_BITS),
            simulated_nonce_bits: SIMULATED_NONCE_BITS,
            simulated_limit: SIMULATED_LIMIT,
            replays_a_minute: REPLAYS_A_MINUTE,
            // Knuth, The Art of Computer Programming, section 1.2.11.3: sqrt(pi m / 2), and 2/3 more.
            answers_to_repetition: (std::f64::consts::FRAC_PI_2 * f64::from(1 << SIMULATED_NONCE_BITS))
                .sqrt()
                + 2.0 / 3.0,
            cases: cases
                .map(|(counter, has_replays)| Case::run(counter, has_replays, &mut entropy))
                .collect(),
            replayed: Replayed::run(&mut entropy),
        }
    }

    /// Whether everything went as the theory says.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.cases.iter().all(Case::is_as_expected) && self.replayed.is_as_expected()
    }
}

impl fmt::Display for Refresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { limit_log2, years_at_one_a_minute: years, hours_at_full_rate: hours, .. } =
            self.figures;
        let Figures { days_of_all_clients: days, repetition_probability: probability, .. } = self.figures;
        let Figures { careful_limit_log2, careful_seconds_at_full_rate: seconds, .. } = self.figures;
        writeln!(f, "Replacing a GMAC key in time: the draft's three cases (seed {})", self.seed)?;
        writeln!(f, "\n2^{limit_log2:.0} answers, with eight random octets each,")?;
        writeln!(f, "  nobody counts      last {years:.0} years at one a minute,")?;
        writeln!(f, "                     {hours:.1} h at {RATE_PER_SECOND} a second")?;
        writeln!(f, "  the client counts  and never sees the answers to replays")?;
        writeln!(f, "  the server counts  and replaces all keys every {hours:.1} h if it is made to,")?;
        write!(f, "                     or every {days:.0} days for {CLIENT_COUNT} clients ")?;
        writeln!(f, "that ask once a minute")?;
        writeln!(f, "By then a nonce has repeated with probability {probability:.2}.")?;
        write!(f, "To have that at 2^-32, a key may give 2^{careful_limit_log2:.1} answers: ")?;
        writeln!(f, "{seconds:.1} s at {RATE_PER_SECOND} a second.")?;
        let Refresh { simulated_nonce_bits, simulated_limit, replays_a_minute, .. } = self;
        write!(
            f,
            "\nsimulated with {simulated_nonce_bits} random bits, keys that go after {simulated_limit} "
        )?;
        writeln!(f, "answers, and {replays_a_minute} replays a minute")?;
        writeln!(f, "  {COLUMNS}")?;
        for Case { forgeries, answers_mean, minutes_mean, replaced_count, .. } in &self.cases {
            writeln!(f, "  {forgeries}")?;
            write!(f, "            a key gives {answers_mean:.0} answers in {minutes_mean:.0} minutes; ")?;
            writeln!(f, "{replaced_count} of {KEY_COUNT} keys were replaced in time")?;
        }
        writeln!(f, "a nonce repeats after {:.0} answers on average", self.answers_to_repetition)?;
        let Replayed { replay_count, answer_count, nonce_count, .. } = self.replayed;
        let Replayed { drawn_bits, counted, taken_count, .. } = self.replayed;
        write!(f, "\nour own server, asked the same {replay_count} times more: {answer_count} answers, ")?;
        write!(f, "{nonce_count} nonces of {drawn_bits} random bits, {counted} counted; ")?;
        writeln!(f, "the client took {taken_count}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_draft() {
        let figures = Figures::of(NONCE_BITS);
        assert_eq!(figures.years_at_one_a_minute.round(), 8166.0);
        assert_eq!(format!("{:.1}", figures.hours_at_full_rate), "42.6");
        assert_eq!(figures.days_of_all_clients.round(), 149.0);
        assert_eq!(format!("{:.3}", figures.repetition_probability), "0.393");
        assert_eq!(format!("{:.1}", figures.careful_limit_log2), "16.5");
        assert_eq!(format!("{:.1}", figures.careful_seconds_at_full_rate), "3.3");
        let careful = repetition_probability(figures.careful_limit_log2, 64.0);
        assert!((careful.log2() + 32.0).abs() < 1e-6, "{careful}");
    }

    /// 23 people, of whom two share a birthday with probability 0.507; the closed form is for many days.
    #[test]
    fn probability_is_that_of_birthdays() {
        let probability = repetition_probability(f64::from(23).log2(), f64::from(365).log2());
        assert!((probability - 0.507).abs() < 0.02, "{probability}");
        assert!(repetition_probability(80.0, 64.0) > 0.999_999);
    }

    #[test]
    fn our_server_does_what_the_simulation_takes_for_granted() {
        let good = Replayed::run(&mut Entropy::from_seed(5));
        assert!(good.is_as_expected(), "{good:?}");
        // A server that remembers requests, that counts up its nonces, or that does not count is another one.
        for other in [
            Replayed { answer_count: 1, nonce_count: 1, counted: 1, drawn_bits: 0, ..good.clone() },
            Replayed { nonce_count: good.nonce_count - 1, ..good.clone() },
            Replayed { drawn_bits: 9, ..good.clone() },
            Replayed { counted: 1, ..good.clone() },
            Replayed { taken_count: 2, ..good.clone() },
        ] {
            assert!(!other.is_as_expected(), "{other:?}");
        }
    }

    #[test]
    fn replays_defeat_the_client_and_wear_out_the_server() {
        let played = Refresh::run(3);
        assert!(played.is_as_expected(), "{played}");
        let case = |counter, has_replays| {
            played
                .cases
                .iter()
                .find(|case| (case.counter, case.has_replays) == (counter, has_replays))
                .unwrap()
        };
        // The spread of one key's life is half its mean, that of forty keys a twelfth.
        let free = case(Counter::Nobody, true);
        assert!((free.answers_mean / played.answers_to_repetition - 1.0).abs() < 0.3, "{played}");
        // The client has counted to a hundredth of its limit when its key is lost.
        assert!(case(Counter::Client, true).minutes_mean < 20.0);
        assert!(case(Counter::Client, false).minutes_mean > 500.0);
        // 0.39 of the keys are lost although the server counts, replays or not; forty keys are within 0.08 of it.
        for has_replays in [false, true] {
            let wins = case(Counter::Server, has_replays).forgeries.wins as f64 / KEY_COUNT as f64;
            assert!((0.15..0.65).contains(&wins), "{wins}");
        }
        let faster = case(Counter::Server, false).minutes_mean / case(Counter::Server, true).minutes_mean;
        assert!((60.0..140.0).contains(&faster), "{faster}");
    }
}
