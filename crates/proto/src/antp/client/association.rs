//! Which phase is due: re-keying, and what unauthenticated complaints may bring about.
//!
//! Time here is seconds of a clock that is never set. What nobody vouches for (errors, kisses, plain responses) can
//! make a client ask for a new key once in ten minutes and poll less often; it never sets a clock and never ends ANTP.

use authentick_wire::antp::ErrorCode;

use super::{Check, Session};

/// Seconds between two renegotiations that errors bring about.
pub const COMPLAINT_SECONDS: u64 = 600;
/// The longest life of a key, in seconds: a month.
pub const REKEY_SECONDS_MAX: u64 = 30 * 86_400;
/// How many times the poll interval doubles at most when the server seems to want it.
const BACKOFF_MAX: u32 = 6;

/// Seconds after which a key of such a lifetime is replaced: four fifths of it, and at the latest a month.
//= antp#clients-10
#[must_use]
fn rekey_seconds(lifetime_seconds: u32) -> u64 {
    (u64::from(lifetime_seconds) / 5 * 4).clamp(1, REKEY_SECONDS_MAX)
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Negotiate and exchange keys. A session that is there serves until that has succeeded.
    Negotiate,
    /// Ask for time.
    Time,
}

/// What a client keeps of one server.
#[derive(Clone, Debug, Default)]
pub struct Association {
    session: Option<Session>,
    /// When the session was made.
    established: u64,
    /// When an error last brought a renegotiation about.
    complained: Option<u64>,
    wants_keys: bool,
    backoff: u32,
}

impl Association {
    /// An association without a key.
    #[must_use]
    pub fn new() -> Self {
        Association::default()
    }

    /// What to do at `now`.
    #[must_use]
    pub fn phase(&self, now: u64) -> Phase {
        let is_good = self.session.as_ref().is_some_and(|session| {
            now.saturating_sub(self.established) < rekey_seconds(session.lifetime_seconds())
        });
        if is_good && !self.wants_keys { Phase::Time } else { Phase::Negotiate }
    }

    /// Takes the session of a key exchange that ended at `now`.
    pub fn establish(&mut self, session: Session, now: u64) {
        self.session = Some(session);
        self.established = now;
        self.wants_keys = false;
        self.backoff = 0;
    }

    /// The session, to ask for time with.
    pub const fn session(&mut self) -> Option<&mut Session> {
        self.session.as_mut()
    }

    /// A response passed every check.
    pub const fn accepted(&mut self) {
        self.backoff = 0;
    }

    /// A datagram failed a check at `now`; `true` if it brings a renegotiation about.
    pub fn failed(&mut self, check: &Check, now: u64) -> bool {
        match check {
            //= antp#clients-8
            Check::Server(ErrorCode::RATE) | Check::Kiss(_) => {
                self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
                false
            }
            //= antp#clients-7
            Check::Server(_) => {
                let is_allowed =
                    self.complained.is_none_or(|last| now.saturating_sub(last) >= COMPLAINT_SECONDS);
                if is_allowed && self.session.is_some() && !self.wants_keys {
                    self.complained = Some(now);
                    self.wants_keys = true;
                    return true;
                }
                false
            }
            _ => false,
        }
    }

    /// How many times the poll interval is to be doubled.
    #[must_use]
    pub const fn backoff(&self) -> u32 {
        self.backoff
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Unsound;
    use authentick_crypto::kem::SessionKey;
    use authentick_wire::antp::Suite;
    use authentick_wire::header::ReferenceId;

    const WEEK: u32 = 7 * 86_400;

    fn session(lifetime_seconds: u32) -> Session {
        Session::new(Suite::P256, SessionKey::new([1; 16]), [2; 60], lifetime_seconds)
    }

    fn established(lifetime_seconds: u32) -> Association {
        let mut association = Association::new();
        assert_eq!(association.phase(100), Phase::Negotiate);
        association.establish(session(lifetime_seconds), 100);
        association
    }

    //= antp#clients-10
    #[test]
    fn keys_are_replaced_at_four_fifths_of_their_life_and_at_the_latest_after_a_month() {
        for (lifetime_seconds, expected) in
            [(1000, 800), (7 * 86_400, 483_840), (365 * 86_400, 2_592_000), (0, 1)]
        {
            let association = established(lifetime_seconds);
            assert_eq!(association.phase(100 + expected - 1), Phase::Time, "{lifetime_seconds}");
            assert_eq!(association.phase(100 + expected), Phase::Negotiate, "{lifetime_seconds}");
        }
    }

    //= antp#clients-7
    #[test]
    fn flood_of_errors_brings_one_renegotiation_about_in_ten_minutes() {
        let mut association = established(WEEK);
        let mut count = 0;
        for now in 1_000..1_000 + 3_600 {
            for code in [ErrorCode::EXPIRED, ErrorCode::VERSION, ErrorCode::NO_SUITE, ErrorCode(77)] {
                if association.failed(&Check::Server(code), now) {
                    assert_eq!(association.phase(now), Phase::Negotiate);
                    count += 1;
                    association.establish(session(WEEK), now);
                }
            }
        }
        assert_eq!(count, 6, "an hour has six times ten minutes");
    }

    #[test]
    fn errors_before_a_session_and_during_a_renegotiation_change_nothing() {
        let mut association = Association::new();
        assert!(!association.failed(&Check::Server(ErrorCode::EXPIRED), 0));
        association.establish(session(WEEK), 0);
        assert!(association.failed(&Check::Server(ErrorCode::EXPIRED), 1));
        assert!(!association.failed(&Check::Server(ErrorCode::EXPIRED), 5_000), "one is due already");
        assert!(association.session().is_some(), "the old key serves until there is a new one");
    }

    //= antp#clients-8
    #[test]
    fn kisses_slow_down_up_to_a_limit_and_time_ends_that() {
        let mut association = established(WEEK);
        for _ in 0..100 {
            assert!(!association.failed(&Check::Kiss(ReferenceId::RATE), 200));
            assert!(!association.failed(&Check::Server(ErrorCode::RATE), 200));
        }
        assert_eq!((association.backoff(), association.phase(200)), (BACKOFF_MAX, Phase::Time));
        association.accepted();
        assert_eq!(association.backoff(), 0);
    }

    #[test]
    fn plain_responses_and_wrong_tags_change_nothing() {
        let mut association = established(WEEK);
        for check in [
            Check::Untagged,
            Check::Tag,
            Check::Origin,
            Check::Mode,
            Check::Phase,
            Check::Clock(Unsound::Leap),
        ] {
            for now in (200..400_000).step_by(997) {
                assert!(!association.failed(&check, now), "{check}");
                assert_eq!((association.phase(now), association.backoff()), (Phase::Time, 0), "{check}");
            }
        }
    }
}
