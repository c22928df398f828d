//! What the screen knows of a run: what is planned, what has ended, and counts of the last minute.
//!
//! Pure: it reads no clock. Instants are durations since the run began.

use std::collections::VecDeque;
use std::time::Duration;

use authentick_load::runner::{Run, Steps};
use authentick_load::search::{Found, Search, Settings, Trial};
use authentick_report::load::{LoadRecord, Step, Tally};

/// How far back the chart goes.
pub(super) const MEMORY: Duration = Duration::from_secs(60);

/// Over which time rates are taken: shorter ones jump, longer ones lag.
const WINDOW: Duration = Duration::from_secs(1);

/// Samples that are kept: more than ten times a second nobody looks.
const SAMPLE_COUNT_MAX: usize = 1024;

/// Operations that were sent, answered and failed.
pub(super) type Counts = [u64; 3];

/// A run as the screen sees it.
#[derive(Debug)]
pub(super) struct State {
    /// What is loaded and how; without steps.
    pub(super) record: LoadRecord,
    /// Now.
    pub(super) now: Duration,
    /// Steps that have ended.
    pub(super) ended: Vec<Step>,
    /// Nothing more is sent.
    pub(super) stopped: bool,
    steps: Steps,
    /// The search, made again from what came of each step.
    search: Option<(Search, Settings)>,
    step_duration: Duration,
    step_began: Duration,
    samples: VecDeque<(Duration, Counts)>,
}

/// What the generator is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has been sending for so long.
    Sending(Duration),
    /// The step's time is over, and answers may still come.
    Waiting,
    /// The user has had enough, and answers may still come.
    Stopping,
    /// Every step has ended.
    Over,
}

impl State {
    /// A run that begins now; `record` is the one that it will fill.
    pub(super) fn new(record: &LoadRecord, run: &Run) -> Self {
        let search = match &run.steps {
            Steps::Search(settings) => Some((Search::new(*settings), *settings)),
            Steps::Open(_) | Steps::Closed => None,
        };
        State {
            record: record.clone(),
            now: Duration::ZERO,
            ended: Vec::new(),
            stopped: false,
            steps: run.steps.clone(),
            search,
            step_duration: run.duration,
            step_began: Duration::ZERO,
            samples: VecDeque::from([(Duration::ZERO, [0; 3])]),
        }
    }

    /// Takes in the counts of all steps so far; `now` never decreases.
    pub(super) fn sample(&mut self, now: Duration, counts: Counts, stopped: bool) {
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
    pub(super) fn end_step(&mut self, now: Duration, step: &Step) {
        self.now = self.now.max(now);
        self.step_began = self.now;
        if let Some((search, _)) = &mut self.search {
            search.take(Trial::from(step));
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
    pub(super) fn offered_rps(&self) -> Option<f64> {
        match (&self.steps, &self.search) {
            (Steps::Open(rates), _) => rates.get(self.ended.len()).copied(),
            (Steps::Search(_), Some((search, _))) => search.next_rps(),
            (Steps::Search(_), None) | (Steps::Closed, _) => None,
        }
    }

    /// How many steps there are; `None` as long as only a search knows.
    pub(super) fn step_count(&self) -> Option<usize> {
        match &self.steps {
            Steps::Open(rates) => Some(rates.len()),
            Steps::Closed => Some(1),
            Steps::Search(_) => None,
        }
    }

    /// What a search has found so far, and how it searches; `None` if nothing is searched for.
    pub(super) fn found(&self) -> Option<(Found, Settings)> {
        self.search.as_ref().map(|(search, settings)| (search.found(), *settings))
    }

    /// What the generator is doing.
    pub(super) fn phase(&self) -> Phase {
        let over = match (&self.search, self.step_count()) {
            (Some((search, _)), _) => search.next_rps().is_none(),
            (None, count) => count.is_some_and(|count| self.ended.len() >= count),
        };
        let within = self.now.saturating_sub(self.step_began);
        match within {
            _ if over => Phase::Over,
            _ if self.stopped => Phase::Stopping,
            _ if within < self.step_duration => Phase::Sending(within),
            _ => Phase::Waiting,
        }
    }

    /// How long a step sends.
    pub(super) fn step_duration(&self) -> Duration {
        self.step_duration
    }

    /// How long the whole run may take, by what its steps took so far; `None` for a search.
    pub(super) fn total(&self) -> Option<Duration> {
        let left = self.step_count()?.saturating_sub(self.ended.len()) as u32;
        let each = match self.ended.len() as u32 {
            0 => self.step_duration,
            count => (self.step_began / count).max(self.step_duration),
        };
        Some((self.step_began + each * left).max(self.now))
    }

    /// Operations so far.
    pub(super) fn counts(&self) -> Counts {
        self.samples.back().map_or([0; 3], |&(_, counts)| counts)
    }

    /// Operations a second, over the last second.
    pub(super) fn rates(&self) -> [f64; 3] {
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
    pub(super) fn answered_rps(&self, part_count: usize) -> Vec<u64> {
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

    #[cfg(test)]
    pub(super) fn sample_count(&self) -> usize {
        self.samples.len()
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
