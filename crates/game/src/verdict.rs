//! What came of the adversary's attempts, as a referee sees it.

use std::fmt;

use serde::Serialize;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Verdict {
    /// The rules of the model were broken, as by clocks that do not run alike: it says nothing.
    #[serde(rename = "VOID")]
    Void,
    /// A victim believed something that nobody who holds the key has said.
    #[serde(rename = "WIN-AUTH")]
    WinAuthentication,
    /// A victim believed what its server said, and is wrong by more than half the bound.
    #[serde(rename = "WIN-ACC")]
    WinAccuracy,
    /// The adversary won with the help of a secret that it may not have for this: the session was not fresh.
    #[serde(rename = "UNFRESH")]
    Unfresh,
    /// A victim believed what its server said, and is wrong by half the bound at most.
    #[serde(rename = "BOUND")]
    Bound,
    /// Nothing was believed, and an undisturbed exchange afterwards brings no time: service is denied.
    #[serde(rename = "STALL")]
    Stall,
    /// Nothing was believed.
    #[serde(rename = "REJECT")]
    Reject,
}

impl Verdict {
    /// The verdict on something of which it is known whether a victim `believed` it.
    #[must_use]
    pub const fn of(believed: bool) -> Self {
        if believed { Verdict::WinAuthentication } else { Verdict::Reject }
    }

    /// Whether the adversary reached its goal.
    #[must_use]
    pub const fn is_win(self) -> bool {
        matches!(self, Verdict::WinAuthentication | Verdict::WinAccuracy)
    }

    /// All of them, the worst first but for the one that says nothing.
    pub const ALL: [Verdict; 7] = [
        Verdict::Void,
        Verdict::WinAuthentication,
        Verdict::WinAccuracy,
        Verdict::Unfresh,
        Verdict::Bound,
        Verdict::Stall,
        Verdict::Reject,
    ];

    /// What it means.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Verdict::Void => {
                "the rules were broken, as by clocks that run at different rates: it says nothing"
            }
            Verdict::WinAuthentication => {
                "the victim believed something that its server has not said in answer to this request"
            }
            Verdict::WinAccuracy => {
                "the victim believed what its server said, and its clock is now wrong by more than half of E, the \
                 bound on the round trip"
            }
            Verdict::Unfresh => "the adversary won with a secret that the definition rules out",
            Verdict::Bound => {
                "the victim believed what its server said, and its clock is wrong by at most half of E"
            }
            Verdict::Stall => "nothing was believed, and the next undisturbed exchange brings no time either",
            Verdict::Reject => "nothing was believed, and the next undisturbed exchange brings time",
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Void => "VOID",
            Verdict::WinAuthentication => "WIN-AUTH",
            Verdict::WinAccuracy => "WIN-ACC",
            Verdict::Unfresh => "UNFRESH",
            Verdict::Bound => "BOUND",
            Verdict::Stall => "STALL",
            Verdict::Reject => "REJECT",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Something that the adversary tried, perhaps in many ways or many times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt<Forged> {
    /// The scheme.
    pub against: String,
    /// What was tried.
    pub tried: String,
    /// Messages that were put before a victim.
    pub tries: u64,
    /// Of these, those that were believed.
    pub wins: u64,
    /// What came of it: a win, if one try was believed.
    pub verdict: Verdict,
    /// What the theory says.
    pub expected: Verdict,
    /// The last message that was believed, or, if none was, the last one that was not.
    pub forged: Option<Forged>,
}

/// What stands above attempts in a listing.
pub const COLUMNS: &str = "verdict   scheme     believed of tried  what was tried";

impl<Forged> Attempt<Forged> {
    /// An attempt that has not begun.
    #[must_use]
    pub fn new(against: impl fmt::Display, tried: impl Into<String>, expected: Verdict) -> Self {
        Attempt {
            against: against.to_string(),
            tried: tried.into(),
            tries: 0,
            wins: 0,
            verdict: Verdict::Reject,
            expected,
            forged: None,
        }
    }

    /// Takes down one try, and whether it was believed; says the same.
    pub fn note(&mut self, forged: Forged, believed: bool) -> bool {
        self.tries += 1;
        self.wins += u64::from(believed);
        if believed || self.wins == 0 {
            self.forged = Some(forged);
        }
        if believed {
            self.verdict = Verdict::WinAuthentication;
        }
        believed
    }

    /// Whether it ended as the theory says, after one try at least.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.tries > 0 && self.verdict == self.expected
    }
}

impl<Forged> fmt::Display for Attempt<Forged> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Attempt { against, tried, tries, wins, verdict, .. } = self;
        write!(f, "{verdict:8}  {against:11} {wins:>7} of {tries:<5}  {tried}")?;
        if self.is_as_expected() { Ok(()) } else { write!(f, "  (expected: {})", self.expected) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_believed_try_wins_and_no_try_is_no_result() {
        let mut attempt = Attempt::new("MD5", "nothing", Verdict::WinAuthentication);
        assert!(!attempt.is_as_expected());
        attempt.note(1, false);
        assert_eq!((attempt.verdict, attempt.forged), (Verdict::Reject, Some(1)));
        assert!(!attempt.is_as_expected());
        attempt.note(2, true);
        attempt.note(3, false);
        assert!(attempt.is_as_expected());
        assert_eq!((attempt.tries, attempt.wins, attempt.forged), (3, 1, Some(2)));
    }

    #[test]
    fn attempt_that_never_began_is_no_success_of_the_scheme() {
        assert!(!Attempt::<()>::new("AES128", "nothing", Verdict::Reject).is_as_expected());
    }

    #[test]
    fn unexpected_verdict_is_shown_with_the_expected_one() {
        let mut attempt = Attempt::new("MD5", "a suffix", Verdict::Reject);
        attempt.note((), true);
        let text = attempt.to_string();
        assert!(text.starts_with("WIN-AUTH  MD5               1 of 1      a suffix"), "{text}");
        assert_eq!(text.find(" of "), COLUMNS.find(" of "));
        assert!(text.ends_with("a suffix  (expected: REJECT)"), "{text}");
    }
}
