//! The plan of a study of the ANTP paper: `study.json` beside the record.

use serde::{Deserialize, Serialize};

use super::{Level, Path, Phase, Subject, Suite};
use crate::published::antp::{TRIAL_COUNT, TRIAL_SECONDS};
use crate::study::{Paper, Task};
use crate::units::listed;

/// What the study is to measure, how, and what became of it.
pub type Plan = crate::study::Plan<Settings>;

/// What turns out while a study goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Where servers and generators run: sentences.
    pub remarks: Vec<String>,
}

/// What a task measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// What key encapsulation takes.
    Primitives,
    /// A capacity.
    Search(Subject, Path),
    /// A trial at a capacity that was found.
    Throughput(Subject, Path),
    /// A trial beside a load, which is a share of a capacity that was found.
    Latency(Subject, Level, Path),
}

/// Seconds that a task takes beside its trials: processes start and end, stragglers are waited for.
const TRIAL_SPARE_SECONDS: f64 = 0.7;
const LATENCY_SPARE_SECONDS: f64 = 2.0;
/// Steps that a search takes, and the seconds of each beside its time.
const SEARCH_STEPS: f64 = 12.0;
/// Steps that tuning the rate takes after it.
const TUNING_STEPS: f64 = 3.0;
const SEARCH_STEP_SPARE_SECONDS: f64 = 0.4;
const PRIMITIVES_SECONDS: f64 = 6.0;
const PRIMITIVES_QUICK_SECONDS: f64 = 1.0;

/// What all trials of a study share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Whether the study is a short one.
    pub quick: bool,
    /// Seconds of a trial of throughput.
    pub trial_seconds: f64,
    /// Trials of throughput for each row.
    pub throughput_trials: u32,
    /// Trials of latency for each cell.
    pub latency_trials: u32,
    /// Seconds of one of these.
    pub latency_seconds: f64,
    /// Seconds of each step of the search for a capacity.
    pub search_seconds: f64,
    /// Requests a second of the clients whose latency is taken.
    pub measured_rps: f64,
    /// The round trip that the long path adds, in milliseconds.
    pub long_path_ms: f64,
}

impl crate::study::Settings for Settings {
    const PAPER: Paper = Paper::Antp;
    type Found = Found;
}

/// A subject as the names of tasks have it.
const fn name(subject: Subject) -> &'static str {
    match (subject.phase, subject.suite) {
        (Phase::Plain, _) => "plain",
        (Phase::Negotiation, Some(Suite::Rsa)) => "negotiation-rsa",
        (Phase::Negotiation, _) => "negotiation-ecdh",
        (Phase::Exchange, Some(Suite::Rsa)) => "exchange-rsa",
        (Phase::Exchange, _) => "exchange-ecdh",
        (Phase::Time, _) => "time",
        (Phase::SeparateTag, _) => "separate-tag",
        (Phase::Complete, Some(Suite::Rsa)) => "complete-rsa",
        (Phase::Complete, _) => "complete-ecdh",
    }
}

const fn way(path: Path) -> &'static str {
    match path {
        Path::Short => "short",
        Path::Long => "long",
        Path::Gigabit => "gigabit",
    }
}

impl Measure {
    /// What has one trial: in this order, as a capacity comes before what needs it.
    fn once() -> Vec<Self> {
        let linked = Suite::ALL.map(|suite| Subject::new(Phase::Negotiation, suite));
        let short = Subject::ALL.map(|subject| Measure::Search(subject, Path::Short));
        let linked = linked.map(|subject| Measure::Search(subject, Path::Gigabit));
        std::iter::once(Measure::Primitives).chain(short).chain(linked).collect()
    }

    fn throughput() -> Vec<Self> {
        let linked = Suite::ALL.map(|suite| Subject::new(Phase::Negotiation, suite));
        let short = Subject::ALL.map(|subject| Measure::Throughput(subject, Path::Short));
        short.into_iter().chain(linked.map(|subject| Measure::Throughput(subject, Path::Gigabit))).collect()
    }

    fn latency() -> Vec<Self> {
        let complete = Suite::ALL.map(|suite| Subject::new(Phase::Complete, suite));
        let subjects = || Subject::ALL.into_iter().chain(complete);
        let levels = |subject, path| Level::ALL.map(|level| Measure::Latency(subject, level, path));
        let paths = [Path::Short, Path::Long].into_iter();
        paths.flat_map(|path| subjects().flat_map(move |subject| levels(subject, path))).collect()
    }

    /// The table or the step of the work that it is for.
    const fn part(self) -> &'static str {
        match self {
            Measure::Primitives => "primitives",
            Measure::Search(..) => "search",
            Measure::Throughput(..) => "throughput",
            Measure::Latency(..) => "latency",
        }
    }

    /// The name of its first task; further ones have a number after it.
    fn id(self) -> String {
        let part = self.part();
        match self {
            Measure::Primitives => part.to_owned(),
            Measure::Search(subject, path) | Measure::Throughput(subject, path) => {
                format!("{part}-{}-{}", name(subject), way(path))
            }
            Measure::Latency(subject, level, path) => {
                let level = (level.share() * 100.0).round();
                format!("{part}-{}-{level}-{}", name(subject), way(path))
            }
        }
    }

    /// What a task measures, by its name.
    #[must_use]
    pub fn of(id: &str) -> Option<Self> {
        let all = [Measure::once(), Measure::throughput(), Measure::latency()];
        all.into_iter().flatten().find(|measure| {
            let trial = id.strip_prefix(&measure.id()).map(|rest| rest.strip_prefix('-').unwrap_or(rest));
            trial.is_some_and(|trial| trial.is_empty() || trial.parse::<u32>().is_ok())
        })
    }

    /// The search that it needs, if any.
    const fn needs(self) -> Option<Self> {
        match self {
            Measure::Primitives | Measure::Search(..) => None,
            Measure::Throughput(subject, path) => Some(Measure::Search(subject, path)),
            Measure::Latency(subject, ..) => Some(Measure::Search(subject.background(), Path::Short)),
        }
    }

    /// What may be left out: further trials before first ones, 90 % of a load before 50 %, the long path before the
    /// short one, but not for complete runs, for whose sake it is there.
    const fn priority(self) -> u8 {
        match self {
            Measure::Primitives | Measure::Search(..) | Measure::Throughput(..) => 0,
            Measure::Latency(_, Level::Half, Path::Short | Path::Gigabit) => 0,
            Measure::Latency(Subject { phase: Phase::Complete, .. }, Level::Half, Path::Long) => 0,
            Measure::Latency(_, Level::Most, Path::Short | Path::Gigabit) => 1,
            Measure::Latency(_, Level::Half | Level::Most, Path::Long) => 2,
        }
    }
}

impl Settings {
    /// What is to be measured: searches, and then round after round of trials, so that what changes on the machine
    /// meets all cells.
    #[must_use]
    pub fn tasks(&self) -> Vec<Task> {
        let mut tasks: Vec<Task> = Measure::once().into_iter().map(|measure| self.task(measure, 1)).collect();
        for trial in 1..=self.throughput_trials.max(self.latency_trials) {
            let rounds =
                [(self.throughput_trials, Measure::throughput()), (self.latency_trials, Measure::latency())];
            for (_, measures) in rounds.into_iter().filter(|(count, _)| trial <= *count) {
                tasks.extend(measures.into_iter().map(|measure| self.task(measure, trial)));
            }
        }
        tasks
    }

    fn task(&self, measure: Measure, trial: u32) -> Task {
        let id = match trial {
            1 => measure.id(),
            _ => format!("{}-{trial}", measure.id()),
        };
        // The three kinds of first trials have the numbers 0 to 2.
        let later = u8::try_from(trial.saturating_sub(1) * 3).unwrap_or(u8::MAX);
        let priority = measure.priority().saturating_add(later);
        let task = Task::new(id, measure.part(), self.seconds(measure), priority);
        match measure.needs() {
            Some(search) => task.needing(search.id()),
            None => task,
        }
    }

    fn seconds(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Primitives if self.quick => PRIMITIVES_QUICK_SECONDS,
            Measure::Primitives => PRIMITIVES_SECONDS,
            Measure::Search(..) => {
                let steps = if self.quick { 1.0 } else { SEARCH_STEPS + TUNING_STEPS };
                steps * (self.search_seconds + SEARCH_STEP_SPARE_SECONDS) + TRIAL_SPARE_SECONDS
            }
            Measure::Throughput(..) => self.trial_seconds + TRIAL_SPARE_SECONDS,
            Measure::Latency(..) => self.latency_seconds + LATENCY_SPARE_SECONDS,
        }
    }

    /// How these settings differ from the paper's, in a sentence; `None` if they do not.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        let parts = [
            ("throughput", self.throughput_trials, self.trial_seconds),
            ("latency", self.latency_trials, self.latency_seconds),
        ];
        let mut shorter = parts
            .iter()
            .filter(|(_, count, seconds)| *count < TRIAL_COUNT || *seconds < TRIAL_SECONDS)
            .peekable();
        shorter.peek()?;
        let which = if self.quick { "This is a short study (--quick)" } else { "This study is shorter" };
        let ours =
            shorter.map(|(what, count, seconds)| format!("{count} trials of {what}, {seconds} s each"));
        let doubt = if self.quick { " Differences of some percent say nothing." } else { "" };
        Some(format!(
            "{which}: {}, where the paper has {TRIAL_COUNT} of {TRIAL_SECONDS} s.{doubt}",
            listed(ours)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::antp::tests::settings;

    #[test]
    fn every_capacity_is_found_before_it_is_needed_and_no_less_important() {
        let tasks = settings().tasks();
        for (index, task) in tasks.iter().enumerate() {
            for need in &task.needs {
                let before = tasks[..index].iter().find(|other| other.id == *need);
                assert!(before.is_some_and(|other| other.priority <= task.priority), "{task:?}");
            }
        }
        // Seven rows and two behind a link, each searched for and tried twice; nine rows under two loads on two paths.
        assert_eq!(tasks.len(), 1 + (7 + 2) + 2 * (7 + 2) + 9 * 2 * 2);
        crate::study::task::check(&tasks).unwrap();
    }

    #[test]
    fn tasks_are_found_by_their_names() {
        for task in settings().tasks() {
            let measure = Measure::of(&task.id).unwrap();
            let name = measure.id();
            assert!(task.id == name || task.id == format!("{name}-2"), "{task:?} {measure:?}");
        }
        for id in ["", "latency", "primitives-x", "search-plain", "throughput-plain-short-two"] {
            assert_eq!(Measure::of(id), None, "{id}");
        }
    }

    #[test]
    fn every_row_keeps_a_point_when_time_is_short() {
        let tasks = settings().tasks();
        let kept: Vec<Measure> = tasks
            .iter()
            .filter(|task| task.priority == 0)
            .map(|task| Measure::of(&task.id).unwrap())
            .collect();
        for subject in Subject::ALL {
            assert!(kept.contains(&Measure::Throughput(subject, Path::Short)), "{subject}");
            assert!(kept.contains(&Measure::Latency(subject, Level::Half, Path::Short)), "{subject}");
        }
        for suite in Suite::ALL {
            let complete = Subject::new(Phase::Complete, suite);
            assert!(kept.contains(&Measure::Latency(complete, Level::Half, Path::Long)), "{suite:?}");
        }
        let second = tasks.iter().find(|task| task.id == "throughput-plain-short-2").unwrap();
        assert!(tasks.iter().all(|task| task.id.ends_with("-2") || task.priority < second.priority));
    }

    #[test]
    fn what_is_shorter_than_the_papers_trials_says_so() {
        let short = settings().difference().unwrap();
        assert!(
            short.contains("--quick") && short.contains("2 trials") && short.contains("5 of 100 s"),
            "{short}"
        );
        let whole = Settings {
            quick: false,
            trial_seconds: 100.0,
            throughput_trials: 5,
            latency_trials: 5,
            latency_seconds: 100.0,
            ..settings()
        };
        assert_eq!(whole.difference(), None);
        let fewer = Settings { latency_trials: 4, ..whole.clone() };
        let shorter = Settings { trial_seconds: 99.0, ..whole.clone() };
        let of_latency = Settings { latency_seconds: 15.0, ..whole };
        let said = of_latency.difference().unwrap();
        assert!(said.contains("5 trials of latency, 15 s each") && !said.contains("throughput"), "{said}");
        for settings in [fewer, shorter] {
            assert!(settings.difference().unwrap().starts_with("This study is shorter"));
        }
    }
}
