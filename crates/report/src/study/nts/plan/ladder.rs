//! Ladders of loads: what of a study is measured under load, step by step.
//!
//! - *To scale*: the server has a share of a core, and rates are the paper's times a factor, so that 2,000 key
//!   exchanges a second on the axis mean what they meant for the server there. Its steps are the paper's.
//! - *A whole core*: rates are those that were offered. How far they go turns out with the generator's limit, so that a
//!   plan has numbers of steps alone.

use super::{Settings, Store};
use crate::published::nts::{CAPACITY_RPS, LOAD_STEP_RPS, MEASURED_RPS_MAX};
use crate::study::Task;

/// What a server of a ladder has to work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ladder {
    /// A share of a core, with the keys in memcached.
    ToScale,
    /// A whole core, with the keys in this store.
    WholeCore(Store),
}

/// A step of a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// The measured client alone, so seldom that nothing waits: what the knee compares with.
    Unloaded,
    /// A load. To scale: L, the key exchanges a second of the paper's axis. On a whole core: the number of the step,
    /// from one; [`Settings::core_steps`] is the last, at the generator's limit.
    Load(u32),
}

/// Seconds that a step takes beside its load: a server and a store start, and there are warm-ups.
const SPARE_SECONDS: f64 = 2.0;
/// Seconds of a step without load.
const UNLOADED_SECONDS: f64 = 3.0;

impl Ladder {
    /// All of them, in the order of measuring.
    pub const ALL: [Ladder; 3] =
        [Ladder::ToScale, Ladder::WholeCore(Store::Memcached), Ladder::WholeCore(Store::File)];

    /// Where its server keeps the keys of cookies.
    #[must_use]
    pub const fn store(self) -> Store {
        match self {
            Ladder::ToScale => Store::Memcached,
            Ladder::WholeCore(store) => store,
        }
    }

    /// It in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Ladder::ToScale => "to scale",
            Ladder::WholeCore(Store::Memcached) => "a whole core",
            Ladder::WholeCore(Store::File) => "a whole core, keys in a file",
        }
    }

    /// Its part in the names of tasks.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Ladder::ToScale => "quota",
            Ladder::WholeCore(Store::Memcached) => "core-memcached",
            Ladder::WholeCore(Store::File) => "core-file",
        }
    }

    /// The name of the task that finds out what its server serves.
    #[must_use]
    pub fn scale_id(self) -> String {
        format!("scale-{}", self.word())
    }

    /// The name of the task of a step.
    #[must_use]
    pub fn rung_id(self, rung: Rung) -> String {
        match rung {
            Rung::Unloaded => format!("ladder-{}-unloaded", self.word()),
            Rung::Load(load) => format!("ladder-{}-{load}", self.word()),
        }
    }

    /// How many times as long as a step it takes to find out what its server serves: with a share of a core that is
    /// corrected, with a whole one measured once.
    const fn scale_steps(self) -> f64 {
        match self {
            Ladder::ToScale => 3.0,
            Ladder::WholeCore(_) => 1.0,
        }
    }

    /// What is left out first if time is short: a point in each figure comes before the shape of the knee, that before
    /// every step, and the second key store is the last.
    const fn priority(self, rung: Rung) -> u8 {
        match (self, rung) {
            (Ladder::ToScale, Rung::Unloaded) => 1,
            (Ladder::ToScale, Rung::Load(load)) if load.is_multiple_of(CAPACITY_RPS) => 1,
            (Ladder::ToScale, Rung::Load(load)) if load.is_multiple_of(MEASURED_RPS_MAX) => 2,
            (Ladder::ToScale, Rung::Load(_)) => 4,
            (Ladder::WholeCore(Store::Memcached), Rung::Unloaded | Rung::Load(_)) => 3,
            (Ladder::WholeCore(Store::File), Rung::Unloaded | Rung::Load(_)) => 5,
        }
    }
}

/// What of a load, in key exchanges a second of the paper's axis, the measured client has: 100 to 500 in turn, as
/// theirs. The background has the rest.
#[must_use]
pub const fn measured_of(load: u32) -> u32 {
    load.saturating_sub(LOAD_STEP_RPS) % MEASURED_RPS_MAX + LOAD_STEP_RPS
}

impl Settings {
    /// The steps of a ladder, from the least load up.
    #[must_use]
    pub fn rungs(&self, ladder: Ladder) -> Vec<Rung> {
        let loads: Vec<u32> = match ladder {
            Ladder::ToScale => {
                let step = self.ladder_step_rps.max(1) as usize;
                (self.ladder_first_rps..=self.ladder_last_rps).step_by(step).collect()
            }
            Ladder::WholeCore(_) => (1..=self.core_steps).collect(),
        };
        std::iter::once(Rung::Unloaded).chain(loads.into_iter().map(Rung::Load)).collect()
    }

    /// A ladder: what its server serves, and then its steps.
    pub(super) fn ladder(&self, ladder: Ladder) -> Vec<Task> {
        let part = format!("scale-{}", ladder.word());
        let seconds = SPARE_SECONDS + ladder.scale_steps() * self.step_seconds;
        let scale = Task::new(ladder.scale_id(), part, seconds, ladder.priority(Rung::Unloaded));
        let rungs = self.rungs(ladder).into_iter().map(|rung| self.rung(ladder, rung));
        std::iter::once(scale).chain(rungs).collect()
    }

    fn rung(&self, ladder: Ladder, rung: Rung) -> Task {
        let step = self.step_seconds;
        let (part, seconds) = match (ladder, rung) {
            (_, Rung::Unloaded) => ("unloaded", UNLOADED_SECONDS.max(step)),
            // Past its capacity a server has to answer afterwards what came too fast, or nobody waits any more.
            (Ladder::ToScale, Rung::Load(load)) => {
                let over = (f64::from(load) / f64::from(CAPACITY_RPS) - 1.0).max(0.0);
                let part = if over > 0.0 { "past" } else { "below" };
                (part, step + (over * step).min(self.deadline_seconds))
            }
            // The generator is at its limit before clients wait for long.
            (Ladder::WholeCore(_), Rung::Load(number)) => {
                (if number * 2 <= self.core_steps { "below" } else { "past" }, step)
            }
        };
        let part = format!("ladder-{}-{part}", ladder.word());
        // To tenths: what is stored is read as the same number.
        let seconds = ((SPARE_SECONDS + seconds) * 10.0).round() / 10.0;
        Task::new(ladder.rung_id(rung), part, seconds, ladder.priority(rung)).needing(ladder.scale_id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::nts::curves::steps;
    use crate::study::nts::Measure;
    use crate::study::nts::tests::settings;

    #[test]
    fn whole_ladder_has_the_paper_s_steps_and_its_measured_client() {
        let whole =
            Settings { ladder_first_rps: 100, ladder_step_rps: 100, ladder_last_rps: 8_000, ..settings() };
        let loads: Vec<Rung> = steps().iter().map(|step| Rung::Load(step.offered_rps)).collect();
        assert_eq!(whole.rungs(Ladder::ToScale)[1..], loads);
        assert_eq!(whole.rungs(Ladder::ToScale)[0], Rung::Unloaded);
        for step in steps() {
            assert_eq!(measured_of(step.offered_rps), step.measured_rps());
        }
        let core = whole.rungs(Ladder::WholeCore(Store::File));
        assert_eq!((core.len(), core[16]), (17, Rung::Load(16)));
    }

    #[test]
    fn steps_need_to_know_what_their_server_serves() {
        for task in settings().tasks() {
            match Measure::of(&task.id).unwrap() {
                Measure::Rung(ladder, _) => assert_eq!(task.needs, [ladder.scale_id()]),
                Measure::Cell(_)
                | Measure::Operations(_)
                | Measure::Scale(_)
                | Measure::Sessions(_)
                | Measure::Rates(_) => assert!(task.needs.is_empty()),
            }
        }
    }

    #[test]
    fn few_steps_across_the_knee_come_before_the_others_when_time_is_short() {
        let of = |priority: u8| -> Vec<String> {
            let tasks = settings().ladder(Ladder::ToScale);
            tasks.into_iter().filter(|task| task.priority == priority).map(|task| task.id).collect()
        };
        let first = ["scale-quota", "ladder-quota-unloaded", "ladder-quota-2000", "ladder-quota-4000"];
        assert_eq!(of(1)[..4], first);
        assert_eq!(of(1).len() + of(2).len(), 1 + 1 + 16);
        assert_eq!(of(2)[0], "ladder-quota-500");
    }

    #[test]
    fn settings_that_cannot_be_make_no_endless_ladder() {
        let odd = Settings { ladder_step_rps: 0, ladder_last_rps: 3, ladder_first_rps: 1, ..settings() };
        assert_eq!(odd.rungs(Ladder::ToScale).len(), 4);
    }
}
