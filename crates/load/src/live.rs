//! What is known of a run while it goes on: what is planned, what has ended, and counts of the last minute.
//!
//! Pure: it reads no clock. Instants are durations since the run began.

use std::collections::VecDeque;
use std::time::Duration;

use authentick_report::load::{LoadRecord, Step, Tally};

use crate::runner::{Run, Steps};
use crate::search::{Offer, Search, Trial};

/// How far back counts are known.
const MEMORY: Duration = Duration::from_secs(60);

/// Over which time rates are taken: shorter ones jump, longer ones lag.
const WINDOW: Duration = Duration::from_secs(1);

/// Samples that are kept: more than ten times a second nobody looks.
const SAMPLE_COUNT_MAX: usize = 1024;

/// Operations that were sent, answered and failed.
type Counts = [u64; 3];

/// A run while it goes on.
#[derive(Debug)]
pub struct LiveRun {
    /// What is loaded and how; without steps.
    pub record: LoadRecord,
    /// Now.
    pub now: Duration,
    /// Steps that have ended.
    pub ended: Vec<Step>,
    /// Nothing more is sent.
    pub stopped: bool,
    steps: Steps,
    /// The search, made again from what came of each step.
    search: Option<Search>,
    step_duration: Duration,
    step_began: Duration,
    samples: VecDeque<(Duration, Counts)>,
}

/// What the generator is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has been sending for so long.
    Sending(Duration),
    /// The step's time is over, and answers may still come.
    Waiting,
    /// The user has had enough, and answers may still come.
    Stopping,
    /// Every step has ended.
    Over,
}

impl LiveRun {
    /// A run that begins now; `record` is the one that it will fill.
    #[must_use]
    pub fn new(record: &LoadRecord, run: &Run) -> Self {
        let search = match &run.steps {
            Steps::Search(settings) => Some(Search::new(*settings)),
            Steps::Open(_) | Steps::Closed => None,
        };
        LiveRun {
            record: record.clone(),
            now: Duration::ZERO,
            ended: Vec::new(),
            stopped: false,
            steps: run.steps.clone(),
            search,
            step_duration: run.warm_up + run.duration,
            step_began: Duration::ZERO,
            samples: VecDeque::from([(Duration::ZERO, [0; 3])]),
        }
    }

    /// Takes in the counts of all steps so far; `now` never decreases.
    pub fn sample(&mut self, now: Duration, counts: Counts, stopped: bool) {
        self.now = now;
        self.stopped = stopped;
        self.samples.push_back((now, counts));
        // The sample before the oldest instant that is asked for is needed too.
        let oldest = now.saturating_sub(MEMORY + WINDOW);
        while self.samples.len() > SAMPLE_COUNT_MAX
            || self.samples.get(1).is_some_and(|&(at, _)| at <= oldest)
        {
            self.samples.pop_front();
        }
    }

    /// Takes in a step that has ended.
    pub fn end_step(&mut self, now: Duration, step: &Step) {
        self.now = self.now.max(now);
        let took = self.within();
        self.step_began = self.now;
        if let Some(search) = &mut self.search {
            match search.next() {
                // Its result is in the words on the search.
                Some(Offer::Closed { .. }) => return search.take_closed(step.into(), took),
                Some(Offer::Open { .. }) | None => search.take(Trial::from(step), took),
            }
        }
        // Distributions are large, and their percentiles are all that is shown.
        let tally = step.tally.without_histograms();
        self.ended.push(Step {
            tally,
            spans: None,
            accompanying: step.accompanying.as_ref().map(Tally::without_histograms),
            ..step.clone()
        });
    }

    /// The rate of the current step; `None` for a closed loop, and when there is no further step.
    #[must_use]
    pub fn offered_rps(&self) -> Option<f64> {
        match &self.steps {
            Steps::Open(rates) => rates.get(self.ended.len()).copied(),
            Steps::Closed => None,
            Steps::Search(_) => self.search.as_ref()?.next_rps(),
        }
    }

    /// How many steps there are; `None` as long as only a search knows.
    #[must_use]
    pub fn step_count(&self) -> Option<usize> {
        match &self.steps {
            Steps::Open(rates) => Some(rates.len()),
            Steps::Closed => Some(1),
            Steps::Search(_) => None,
        }
    }

    /// Where a search is, in words; `None` if nothing is searched for.
    #[must_use]
    pub fn searched(&self) -> Option<String> {
        self.search.as_ref().map(|search| format!("Search: {search}"))
    }

    /// The longest time that a search takes; `None` if nothing is searched for.
    #[must_use]
    pub fn longest(&self) -> Option<Duration> {
        let Steps::Search(settings) = &self.steps else { return None };
        Some(settings.budget)
    }

    /// How long a search still takes at most; `None` if nothing is searched for.
    #[must_use]
    pub fn left_max(&self) -> Option<Duration> {
        Some(self.search.as_ref()?.left_max().saturating_sub(self.within()))
    }

    /// What the generator is doing.
    #[must_use]
    pub fn phase(&self) -> Phase {
        let over = match self.step_count() {
            Some(count) => self.ended.len() >= count,
            None => self.search.as_ref().is_some_and(Search::is_over),
        };
        match self.within() {
            _ if over => Phase::Over,
            _ if self.stopped => Phase::Stopping,
            within if within < self.step_duration => Phase::Sending(within),
            _ => Phase::Waiting,
        }
    }

    /// How long the current step has taken so far.
    #[must_use]
    pub fn within(&self) -> Duration {
        self.now.saturating_sub(self.step_began)
    }

    /// How long a step sends, warm-up included.
    #[must_use]
    pub const fn step_duration(&self) -> Duration {
        self.step_duration
    }

    /// How long the whole run may take, by what its steps took so far; `None` for a search.
    #[must_use]
    pub fn total(&self) -> Option<Duration> {
        let left = self.step_count()?.saturating_sub(self.ended.len()) as u32;
        let each = match self.ended.len() as u32 {
            0 => self.step_duration,
            count => (self.step_began / count).max(self.step_duration),
        };
        Some((self.step_began + each * left).max(self.now))
    }

    /// Operations so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.samples.back().map_or([0; 3], |&(_, counts)| counts)
    }

    /// Operations a second, over the last second.
    #[must_use]
    pub fn rates(&self) -> [f64; 3] {
        let from = self.now.saturating_sub(WINDOW);
        let seconds = (self.now - from).as_secs_f64();
        if seconds <= 0.0 {
            return [0.0; 3];
        }
        let (before, after) = (self.counts_at(from), self.counts_at(self.now));
        std::array::from_fn(|index| (after[index] - before[index]).max(0.0) / seconds)
    }

    /// Answers a second in equal parts of the last minute, the oldest first. Parts lie at multiples of their length, so
    /// that they do not change once they are over; the one that goes on is not among them.
    #[must_use]
    pub fn answered_rps(&self, part_count: usize) -> Vec<u64> {
        let length = MEMORY.as_secs_f64() / part_count.max(1) as f64;
        let last = (self.now.as_secs_f64() / length).floor();
        let at = |index: f64| self.counts_at(Duration::from_secs_f64((index * length).max(0.0)))[1];
        (0..part_count)
            .map(|part| {
                let from = last - (part_count - part) as f64;
                ((at(from + 1.0) - at(from)).max(0.0) / length).round() as u64
            })
            .collect()
    }

    /// Counts at an instant, on the line between the samples around it.
    fn counts_at(&self, at: Duration) -> [f64; 3] {
        let after = self.samples.partition_point(|&(when, _)| when < at);
        let as_f64 = |counts: Counts| counts.map(|count| count as f64);
        let (Some(&(to, last)), before) = (self.samples.get(after), after.checked_sub(1)) else {
            return as_f64(self.counts());
        };
        let Some(&(from, first)) = before.and_then(|before| self.samples.get(before)) else {
            return as_f64(last);
        };
        let share = (at - from).as_secs_f64() / (to - from).as_secs_f64().max(1e-9);
        std::array::from_fn(|index| first[index] as f64 + (last[index] as f64 - first[index] as f64) * share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Settings;

    /// The record of the report's golden files.
    fn record() -> LoadRecord {
        LoadRecord::from_json(include_str!("../../report/tests/golden/load.json")).unwrap()
    }

    fn run(steps: Steps) -> Run {
        Run::new(steps, Duration::from_secs(2))
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn ramp() -> Steps {
        Steps::Open(vec![1000.0, 2000.0, 4000.0, 8000.0, 16_000.0])
    }

    #[test]
    fn rates_are_those_of_the_last_second() {
        let mut live = LiveRun::new(&record(), &run(ramp()));
        assert_eq!(live.rates(), [0.0; 3]);
        live.sample(seconds(0.5), [50, 40, 10], false);
        assert_eq!(live.rates(), [100.0, 80.0, 20.0], "there is no whole second yet");
        live.sample(seconds(2.0), [2050, 2040, 10], false);
        let [sent, answered, failed] = live.rates().map(|rate| rate.round() as u64);
        assert_eq!((sent, answered, failed), (1333, 1333, 0));
    }

    #[test]
    fn parts_of_the_minute_add_up_and_do_not_change_once_they_are_over() {
        let mut live = LiveRun::new(&record(), &run(ramp()));
        for tenth in 1..=300u64 {
            live.sample(seconds(tenth as f64 / 10.0), [tenth * 10; 3], false);
        }
        let parts = live.answered_rps(60);
        assert_eq!(parts.iter().sum::<u64>(), 3000, "30 s at 100/s, in parts of a second");
        assert_eq!((parts[29], parts[30], parts[59]), (0, 100, 100));
        live.sample(seconds(30.9), [9000; 3], false);
        assert_eq!(live.answered_rps(60), parts, "the second that goes on is not shown");
        live.sample(seconds(31.0), [9000; 3], false);
        assert_eq!(live.answered_rps(60)[..59], parts[1..]);
    }

    #[test]
    fn memory_of_a_long_run_is_bounded() {
        let mut live = LiveRun::new(&record(), &run(ramp()));
        for tenth in 1..=10_000u64 {
            live.sample(seconds(tenth as f64 / 10.0), [tenth * 10; 3], false);
        }
        assert!(live.samples.len() < 650, "{}", live.samples.len());
        assert!(live.answered_rps(78).iter().all(|&rate| rate == 100));
        let step: &Step = &record().steps[0];
        live.end_step(seconds(1000.0), step);
        assert!(step.tally.histograms != live.ended[0].tally.histograms, "distributions are not kept");
    }

    #[test]
    fn total_follows_what_steps_take() {
        let mut live = LiveRun::new(&record(), &run(ramp()));
        assert_eq!(live.total(), Some(seconds(10.0)));
        live.end_step(seconds(4.0), &record().steps[0]);
        assert_eq!(live.total(), Some(seconds(20.0)), "one second to wait for answers, and one to prepare");
        assert_eq!(LiveRun::new(&record(), &run(Steps::Search(Settings::default()))).total(), None);
    }

    #[test]
    fn time_left_of_a_search_only_becomes_less() {
        let settings = Settings::default();
        let mut live = LiveRun::new(&record(), &run(Steps::Search(settings)));
        let longest = live.longest().unwrap();
        assert_eq!(longest, settings.budget);
        assert!(live.left_max().unwrap() <= longest, "{longest:?}");
        let mut before = longest;
        for trial in 0..40 {
            let Some(rate_rps) = live.offered_rps() else { break };
            let mut step = record().steps[usize::from(rate_rps > 30_000.0) * 2].clone();
            step.offered_rps = Some(rate_rps);
            live.end_step(seconds(f64::from(trial + 1) * 3.0), &step);
            let left = live.left_max().unwrap();
            assert!(left <= before, "{trial}: {left:?} after {before:?}");
            before = left;
        }
        assert_eq!((live.phase(), live.left_max()), (Phase::Over, Some(Duration::ZERO)));
    }

    #[test]
    fn phase_follows_the_clock_and_the_steps() {
        let mut live = LiveRun::new(&record(), &run(Steps::Open(vec![5.0])));
        assert_eq!(live.phase(), Phase::Sending(Duration::ZERO));
        live.sample(seconds(2.1), [0; 3], false);
        assert_eq!(live.phase(), Phase::Waiting);
        live.end_step(seconds(2.2), &record().steps[0]);
        assert_eq!(live.phase(), Phase::Over);
    }
}
