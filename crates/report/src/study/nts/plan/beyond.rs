//! Beyond the paper: what a core serves of sessions with one to three hundred transfers for each key exchange, and
//! transfers alone past the rates of the paper's axis.
//!
//! A session is a key exchange and the transfers after it, one after the other. What it costs the server is put beside
//! what an exchange and a transfer cost alone, measured in the same closed loop.

use super::Settings;
use crate::study::Task;

/// Transfers for each key exchange.
pub const SESSION_TRANSFERS: [u32; 5] = [1, 3, 8, 30, 300];

/// With which cookies a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookies {
    /// Each with a cookie that nobody has seen, as RFC 8915 wants it: from the key exchange, or from an answer.
    Fresh,
    /// All with one, as the paper's clients do.
    One,
}

impl Cookies {
    /// Both.
    pub const ALL: [Cookies; 2] = [Cookies::Fresh, Cookies::One];

    /// It in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Cookies::Fresh => "fresh cookies",
            Cookies::One => "one cookie",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Cookies::Fresh => "fresh",
            Cookies::One => "one",
        }
    }
}

/// What clients do in a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Key exchanges, and nothing after them.
    Exchanges,
    /// Transfers of clients that have their keys.
    Transfers(Cookies),
    /// Key exchanges, each followed by so many transfers.
    Sessions(u32, Cookies),
}

impl Pattern {
    /// All of them, in the order of measuring.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let alone = std::iter::once(Pattern::Exchanges).chain(Cookies::ALL.map(Pattern::Transfers));
        let sessions = SESSION_TRANSFERS
            .into_iter()
            .flat_map(|count| Cookies::ALL.map(|cookies| Pattern::Sessions(count, cookies)));
        alone.chain(sessions).collect()
    }

    /// The name of its task.
    #[must_use]
    pub fn id(self) -> String {
        match self {
            Pattern::Exchanges => "exchanges-alone".to_owned(),
            Pattern::Transfers(cookies) => format!("transfers-alone-{}", cookies.word()),
            Pattern::Sessions(count, cookies) => format!("sessions-{count}-{}", cookies.word()),
        }
    }

    /// It in words.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Pattern::Exchanges => "key exchanges alone".to_owned(),
            Pattern::Transfers(cookies) => format!("transfers alone, {}", cookies.name()),
            Pattern::Sessions(1, cookies) => format!("1 transfer per exchange, {}", cookies.name()),
            Pattern::Sessions(count, cookies) => {
                format!("{count} transfers per exchange, {}", cookies.name())
            }
        }
    }

    /// A point of each line and what it is compared with come before the other points.
    const fn priority(self) -> u8 {
        match self {
            Pattern::Exchanges | Pattern::Transfers(_) | Pattern::Sessions(3 | 300, _) => 1,
            Pattern::Sessions(_, _) => 2,
        }
    }
}

/// How many threads answer requests for time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// One, on the first processor.
    One,
    /// Two, wherever the system puts them: on a machine with two processors the generator shares one of them.
    Two,
}

impl Workers {
    /// Both.
    pub const ALL: [Workers; 2] = [Workers::One, Workers::Two];

    /// How many.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self {
            Workers::One => 1,
            Workers::Two => 2,
        }
    }

    /// It in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Workers::One => "one worker",
            Workers::Two => "two workers",
        }
    }

    pub(super) const fn id(self) -> &'static str {
        match self {
            Workers::One => "rates-1-worker",
            Workers::Two => "rates-2-workers",
        }
    }
}

/// Seconds that a task takes beside its loads: a server starts, and generators.
const SPARE_SECONDS: f64 = 0.5;
/// Seconds between the rates of a load run.
const STEP_SPARE_SECONDS: f64 = 0.1;

impl Settings {
    /// What goes beyond the paper.
    pub(super) fn beyond(&self) -> Vec<Task> {
        // To tenths: what is stored is read as the same number.
        let tenths = |seconds: f64| (seconds * 10.0).round() / 10.0;
        let session = tenths(SPARE_SECONDS + self.session_seconds);
        let steps = f64::from(self.rate_steps) * (self.rate_seconds + STEP_SPARE_SECONDS);
        let rates = tenths(2.0 * SPARE_SECONDS + self.session_seconds + steps);
        let sessions = Pattern::all()
            .into_iter()
            .map(|pattern| Task::new(pattern.id(), "sessions", session, pattern.priority()));
        let rates = Workers::ALL.map(|workers| Task::new(workers.id(), "rates", rates, 1));
        sessions.chain(rates).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::nts::Measure;
    use crate::study::nts::tests::settings;

    #[test]
    fn each_pattern_has_a_name_of_its_own() {
        let all = Pattern::all();
        assert_eq!(all.len(), 3 + 2 * SESSION_TRANSFERS.len());
        for (index, pattern) in all.iter().enumerate() {
            assert_eq!(Measure::of(&pattern.id()), Some(Measure::Sessions(*pattern)));
            assert!(all[index + 1..].iter().all(|other| other.name() != pattern.name()), "{pattern:?}");
        }
        assert_eq!(Pattern::Sessions(300, Cookies::One).id(), "sessions-300-one");
    }

    #[test]
    fn ends_of_both_lines_and_what_they_are_compared_with_come_first_when_time_is_short() {
        let tasks = settings().beyond();
        let first: Vec<&str> =
            tasks.iter().filter(|task| task.priority == 1).map(|task| task.id.as_str()).collect();
        let expected = [
            "exchanges-alone",
            "transfers-alone-fresh",
            "transfers-alone-one",
            "sessions-3-fresh",
            "sessions-3-one",
            "sessions-300-fresh",
            "sessions-300-one",
            "rates-1-worker",
            "rates-2-workers",
        ];
        assert_eq!(first, expected);
    }
}
