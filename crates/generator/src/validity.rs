//! What a generator must have done for a step to say something about the server: the rules that a step and the verdict
//! on it share, and what to do about each.

use std::fmt;

use authentick_report::load::{Cause, Operation};
use authentick_report::units::plural;

use crate::limits::{KE_LATENESS_MAX_NS, LATENESS_MAX_NS};

/// The remedy where a sending thread has too much to do.
pub const OFFER_LESS: &str = "offer less, or use more --workers or hosts";

/// The remedy where ports, sockets or addresses are too few.
pub const SPREAD: &str = "use more --clients, --sources or hosts";

/// How late one operation in a hundred may begin, in nanoseconds.
#[must_use]
pub const fn lateness_max_ns(operation: Operation) -> u64 {
    match operation {
        Operation::Transfer | Operation::Negotiation => LATENESS_MAX_NS,
        Operation::KeyExchange | Operation::Run => KE_LATENESS_MAX_NS,
    }
}

/// What a sentence calls the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// By its name.
    Generator,
    /// "It", after something that has named it.
    It,
}

impl Subject {
    const fn whose(self) -> &'static str {
        match self {
            Subject::Generator => "the generator's",
            Subject::It => "its",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Subject::Generator => "the generator",
            Subject::It => "it",
        })
    }
}

/// Operations that the generator did not begin: a sentence with the remedy for each cause of which there are any.
pub fn shortages(subject: Subject, count_of: impl Fn(Cause) -> u64) -> impl Iterator<Item = String> {
    let whose = subject.whose();
    let causes = [
        (Cause::LocalBuffer, format!("{whose} sockets had no room for"), SPREAD),
        (Cause::LocalPort, format!("{subject} had no port, descriptor or idle client left for"), SPREAD),
        (
            Cause::LocalMemory,
            format!("{subject} waited for as many answers as it can and did not begin"),
            "offer less, use a shorter --timeout, or more --workers or hosts",
        ),
        (Cause::Local, format!("{whose} host refused"), SPREAD),
    ];
    causes.into_iter().filter_map(move |(cause, what, remedy)| {
        let count = Some(count_of(cause)).filter(|&count| count > 0)?;
        Some(format!("{what} {}; {remedy}", plural(count, "operation")))
    })
}

/// What became of operations that began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// How many began.
    pub sent: u64,
    /// How many of them brought no good answer.
    pub failed: u64,
}

impl Fate {
    /// Whether more than one in a hundred failed.
    const fn is_bad(self) -> bool {
        self.failed.saturating_mul(100) > self.sent
    }
}

/// Why clients had nothing to send: `dry` of so many requests, more than one in a hundred, found no cookie or sealed
/// state. If the server loses requests, or what clients get their keys by, their cookies are lost too, which is not the
/// generator's fault: then it is `None`.
#[must_use]
pub fn want_of_cookies(dry: u64, scheduled: u64, requests: Fate, keys: Fate) -> Option<String> {
    let is_own = dry.saturating_mul(100) > scheduled && !requests.is_bad() && !keys.is_bad();
    is_own.then(|| {
        format!("clients had no cookie or sealed state for {}; use more --clients", plural(dry, "request"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_local_cause_but_lateness_has_a_sentence_and_a_remedy() {
        for cause in Cause::ALL {
            let told: Vec<String> = shortages(Subject::It, |other| u64::from(other == cause)).collect();
            assert_eq!(told.len(), usize::from(cause.is_local() && cause != Cause::FellBehind), "{cause}");
            assert!(told.iter().all(|text| text.contains("1 operation; ")), "{told:?}");
        }
        let both: Vec<String> = shortages(Subject::Generator, |cause| match cause {
            Cause::LocalPort => 2,
            Cause::Local => 3000,
            _ => 0,
        })
        .collect();
        assert_eq!(
            both,
            [
                "the generator had no port, descriptor or idle client left for 2 operations; use more --clients, \
                 --sources or hosts",
                "the generator's host refused 3,000 operations; use more --clients, --sources or hosts",
            ]
        );
    }

    #[test]
    fn want_of_cookies_is_the_servers_fault_if_it_loses_requests_or_keys() {
        let fate = |sent, failed| Fate { sent, failed };
        let why = |dry, requests, keys| want_of_cookies(dry, 1000, requests, keys);
        assert_eq!(why(10, fate(990, 0), Fate::default()), None);
        assert_eq!(
            why(11, fate(989, 9), fate(100, 1)).as_deref(),
            Some("clients had no cookie or sealed state for 11 requests; use more --clients")
        );
        assert_eq!(why(11, fate(989, 10), Fate::default()), None);
        assert_eq!(why(11, fate(989, 0), fate(100, 2)), None);
    }
}
