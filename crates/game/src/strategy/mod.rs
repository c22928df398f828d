//! Strategies of an adversary: what it does, and what is to come of it against each protocol.
//!
//! A strategy is a [`Strategy`]: words, what is expected, and a small program that drives a [`Play`]. Those of this
//! crate are [`all`]; adding one is a file in `rows` and a line there.

mod play;
mod rows;
mod table;

use std::fmt;

use serde::Serialize;

pub use self::play::{LONG, Play, SHORT, WRONG};
pub use self::table::{Listed, Listing, Table};
use crate::model::{Acceptance, Clause, Log, Setting};
use crate::protocol::{Family, Protocol};
use crate::referee;
use crate::verdict::Verdict;

/// Something that an adversary does.
#[derive(Clone, Copy)]
pub struct Strategy {
    /// A short name, by which it is played.
    pub id: &'static str,
    /// What it does, in a few words.
    pub title: &'static str,
    /// What it does and why it comes out as it does.
    pub says: &'static str,
    /// Does it. Without a way to do it against a protocol, it is not in the table there.
    pub play: fn(&mut Play<'_>),
    /// What is to come of it.
    pub expected: Expected,
}

/// What is to come of a strategy, by protocol; `None` where it says nothing. Of two, the first is for clients without a
/// bound on the round trip.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "each is the family of that name")]
pub struct Expected {
    pub plain: [Option<Verdict>; 2],
    pub pair_key: [Option<Verdict>; 2],
    pub group_key: [Option<Verdict>; 2],
    pub nts: [Option<Verdict>; 2],
    pub antp: Option<Verdict>,
    pub antp_separate: Option<Verdict>,
}

impl Expected {
    /// The same of all.
    #[must_use]
    pub const fn all(verdict: Verdict) -> Self {
        Expected::of([Some(verdict); 6])
    }

    /// By family: plain, a key for each pair, a key for a group, NTS, ANTP, ANTP in separate-tag mode.
    #[must_use]
    pub const fn of(verdicts: [Option<Verdict>; 6]) -> Self {
        let [plain, pair_key, group_key, nts, antp, antp_separate] = verdicts;
        Expected {
            plain: [plain; 2],
            pair_key: [pair_key; 2],
            group_key: [group_key; 2],
            nts: [nts; 2],
            antp,
            antp_separate,
        }
    }

    /// Of clients with a bound this, of those without it that.
    #[must_use]
    pub const fn by_bound(bounded: Verdict, unbounded: Verdict) -> Self {
        let both = [Some(unbounded), Some(bounded)];
        let (antp, antp_separate) = (Some(bounded), Some(bounded));
        Expected { plain: both, pair_key: both, group_key: both, nts: both, antp, antp_separate }
    }

    /// Of this protocol.
    #[must_use]
    pub fn of_protocol(&self, protocol: &dyn Protocol) -> Option<Verdict> {
        let index = usize::from(protocol.bound().is_some());
        match protocol.family() {
            Family::Plain => self.plain[index],
            Family::PairKey => self.pair_key[index],
            Family::GroupKey => self.group_key[index],
            Family::Nts => self.nts[index],
            Family::Antp => self.antp,
            Family::AntpSeparate => self.antp_separate,
            Family::Other => None,
        }
    }
}

/// What came of a strategy.
#[derive(Clone, Debug, Serialize)]
pub struct Played {
    /// The strategy.
    pub strategy: &'static str,
    /// What it does.
    pub title: &'static str,
    /// The protocol.
    pub protocol: String,
    /// From what all followed.
    pub seed: u64,
    /// What came of it.
    pub verdict: Verdict,
    /// What was to come of it; `None` if nothing is expected.
    pub expected: Option<Verdict>,
    /// What the victim believed.
    pub believed: Vec<Acceptance>,
    /// What the adversary was after, in its own words, each before the query of this number.
    pub notes: Vec<(usize, String)>,
    /// All queries.
    #[serde(skip)]
    pub log: Log,
}

impl Played {
    /// Whether it came out as expected, or nothing was expected.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.expected.is_none_or(|expected| expected == self.verdict)
    }
}

impl Strategy {
    /// Whether it is for this protocol.
    #[must_use]
    pub fn is_for(&self, protocol: &dyn Protocol) -> bool {
        protocol.family() == Family::Other || self.expected.of_protocol(protocol).is_some()
    }

    /// Plays it against `protocol`.
    #[must_use]
    pub fn play(&self, protocol: &dyn Protocol, seed: u64) -> Played {
        self.play_with(protocol, seed, Setting::Step, None)
    }

    /// The same with clients that set their clocks in another way, and a referee who asks for all of freshness but one
    /// clause.
    #[must_use]
    pub fn play_with(
        &self,
        protocol: &dyn Protocol,
        seed: u64,
        setting: Setting,
        without: Option<Clause>,
    ) -> Played {
        let mut play = Play::new(protocol, seed, setting);
        (self.play)(&mut play);
        let victim = play.victim_session();
        let (attacked, believed) = (play.model().log().clone(), play.believed());
        let verdict = match referee::worst(play.model(), victim, play.from(), without) {
            Some(verdict) => verdict,
            None if play.brings_time(victim) => Verdict::Reject,
            None => Verdict::Stall,
        };
        Played {
            strategy: self.id,
            title: self.title,
            protocol: protocol.name().to_owned(),
            seed,
            verdict,
            expected: self.expected.of_protocol(protocol),
            believed,
            notes: play.into_notes(),
            log: attacked,
        }
    }
}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strategy").field("id", &self.id).finish_non_exhaustive()
    }
}

/// All strategies of this crate, in the order of tables.
#[must_use]
pub fn all() -> Vec<Strategy> {
    rows::all()
}

/// The strategy of that name.
#[must_use]
pub fn named(id: &str) -> Option<Strategy> {
    all().into_iter().find(|strategy| strategy.id == id)
}

/// The strategies of those names; all, if there is none.
#[must_use]
pub fn among(names: &[String]) -> Vec<Strategy> {
    let is_wanted = |strategy: &Strategy| names.is_empty() || names.iter().any(|name| name == strategy.id);
    all().into_iter().filter(is_wanted).collect()
}

#[cfg(test)]
mod tests;
