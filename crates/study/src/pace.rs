//! How long what is left of a study takes, and what of it fits into a ceiling.
//!
//! Tasks of a part have taken some multiple of the time that was expected of them; so will those that are left. Where
//! nothing of a part has ended, the multiple of the whole study does.

use std::collections::BTreeMap;

use authentick_report::study::{Outcome, Task};

/// Until tasks of so many expected seconds have ended, a study has no multiple of its own.
const KNOWN_FROM_SECONDS: f64 = 1.0;

/// Seconds that were expected of tasks, and those that they took.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    expected: f64,
    taken: f64,
}

impl Spent {
    fn add(&mut self, expected: f64, taken: f64) {
        self.expected += expected;
        self.taken += taken;
    }

    fn multiple(self) -> Option<f64> {
        (self.expected >= KNOWN_FROM_SECONDS).then(|| self.taken / self.expected)
    }
}

/// What the tasks of a study have taken so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace<'a> {
    parts: BTreeMap<&'a str, Spent>,
    all: Spent,
    /// What was spent on tasks that brought no record, too.
    seconds: f64,
}

impl<'a> Pace<'a> {
    pub(crate) fn of(tasks: &'a [Task]) -> Self {
        let mut pace = Pace::default();
        for task in tasks {
            let Some(end) = &task.end else { continue };
            pace.seconds += end.seconds;
            match end.outcome {
                Outcome::Measured | Outcome::Invalid => {
                    pace.parts.entry(&task.part).or_default().add(task.seconds, end.seconds);
                    pace.all.add(task.seconds, end.seconds);
                }
                // What did not end says nothing about what does.
                Outcome::Infeasible | Outcome::Stopped | Outcome::Cut => {}
            }
        }
        pace
    }

    /// Seconds that the study has measured.
    pub(crate) fn spent(&self) -> f64 {
        self.seconds
    }

    /// Seconds that a task is going to take.
    pub(crate) fn seconds(&self, task: &Task) -> f64 {
        let part = self.parts.get(task.part.as_str()).and_then(|spent| spent.multiple());
        task.seconds * part.or(self.all.multiple()).unwrap_or(1.0)
    }

    /// Which of these tasks fit into so many seconds: by priority, and among equals by order. One whose record needs
    /// that of a task that does not fit is left out, too. What is `done` takes no time.
    pub(crate) fn fitting(&self, tasks: &[Task], done: impl Fn(&Task) -> bool, seconds: f64) -> Vec<bool> {
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&index| tasks[index].priority);
        let mut fits = vec![false; tasks.len()];
        let mut left = seconds;
        for index in order {
            let task = &tasks[index];
            let is_there = |id: &String| {
                tasks.iter().position(|other| other.id == *id).is_some_and(|needed| fits[needed])
            };
            let wanted = if done(task) { 0.0 } else { self.seconds(task) };
            if wanted <= left && task.needs.iter().all(is_there) {
                left -= wanted;
                fits[index] = true;
            }
        }
        fits
    }
}

/// `50 s`, `12 min`, `3.5 h`.
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use authentick_report::study::End;

    use super::*;

    fn task(id: &str, part: &str, seconds: f64, priority: u8) -> Task {
        Task::new(id, part, seconds, priority)
    }

    fn end(outcome: Outcome, seconds: f64) -> Option<End> {
        Some(End {
            outcome,
            why: None,
            sha256: None,
            started_unix_s: 0,
            seconds,
            boot_id: None,
            steal_seconds: None,
        })
    }

    fn names<'a>(tasks: &'a [Task], fits: &[bool]) -> Vec<&'a str> {
        tasks.iter().zip(fits).filter(|(_, fits)| **fits).map(|(task, _)| task.id.as_str()).collect()
    }

    #[test]
    fn least_important_and_last_is_left_out_first() {
        let tasks = [
            task("a", "x", 10.0, 1),
            task("b", "x", 10.0, 0),
            task("c", "x", 10.0, 1),
            task("d", "x", 5.0, 2),
        ];
        let fitting = |seconds| {
            let fits = Pace::of(&tasks).fitting(&tasks, |_| false, seconds);
            names(&tasks, &fits).concat()
        };
        assert_eq!(fitting(35.0), "abcd");
        assert_eq!(fitting(34.9), "abc");
        assert_eq!(fitting(29.9), "abd", "what is shorter fits");
        assert_eq!(fitting(14.0), "b");
        assert_eq!(fitting(15.0), "bd");
        assert_eq!(fitting(4.0), "");
    }

    #[test]
    fn what_needs_a_task_that_is_left_out_is_left_out() {
        let tasks = [
            task("search", "x", 10.0, 0),
            task("trial", "x", 1.0, 0).needing("search"),
            task("other", "x", 1.0, 1),
        ];
        let pace = Pace::of(&tasks);
        assert_eq!(names(&tasks, &pace.fitting(&tasks, |_| false, 5.0)), ["other"]);
        assert_eq!(names(&tasks, &pace.fitting(&tasks, |_| false, 11.0)), ["search", "trial"]);
        // What is there already takes no time.
        let done = |task: &Task| task.id == "search";
        assert_eq!(names(&tasks, &pace.fitting(&tasks, done, 2.0)), ["search", "trial", "other"]);
    }

    #[test]
    fn each_part_has_a_pace_of_its_own() {
        let mut tasks = [
            task("a", "slow", 10.0, 0),
            task("b", "quick", 10.0, 0),
            task("c", "slow", 4.0, 0),
            task("d", "quick", 4.0, 0),
            task("e", "new", 4.0, 0),
            task("f", "new", 4.0, 0),
        ];
        assert!((Pace::of(&tasks).seconds(&tasks[2]) - 4.0).abs() < 1e-9, "nothing is known yet");
        tasks[0].end = end(Outcome::Measured, 30.0);
        tasks[1].end = end(Outcome::Invalid, 10.0);
        tasks[5].end = end(Outcome::Infeasible, 100.0);
        let pace = Pace::of(&tasks);
        let seconds: Vec<f64> = tasks[2..5].iter().map(|task| pace.seconds(task)).collect();
        assert_eq!(seconds, [12.0, 4.0, 8.0]);
        assert!((pace.spent() - 140.0).abs() < 1e-9);
    }

    /// From the first third on, what is left is known to a fifth, though each part takes another multiple of its time
    /// and each task a little more or less of that.
    #[test]
    fn time_left_is_known_from_the_first_third_on() {
        let mut tasks: Vec<Task> = (0..90)
            .map(|index| {
                let part = ["search", "throughput", "latency"][index % 3];
                task(&format!("t{index}"), part, 2.0 + (index % 5) as f64, 0)
            })
            .collect();
        let took = |index: usize, task: &Task| {
            let multiple = [0.5, 1.2, 2.5][index % 3];
            task.seconds * multiple * (0.8 + 0.1 * (index % 4) as f64)
        };
        let all: Vec<f64> = tasks.iter().enumerate().map(|(index, task)| took(index, task)).collect();
        let total: f64 = all.iter().sum();
        let mut checked = 0;
        for index in 0..tasks.len() {
            let spent: f64 = all[..index].iter().sum();
            if (total / 3.0..total * 0.97).contains(&spent) {
                let pace = Pace::of(&tasks);
                let left: f64 = tasks[index..].iter().map(|task| pace.seconds(task)).sum();
                assert!((left / (total - spent) - 1.0).abs() < 0.2, "{index}: {left} of {}", total - spent);
                checked += 1;
            }
            tasks[index].end = end(Outcome::Measured, all[index]);
        }
        assert!(checked > 40);
    }

    #[test]
    fn times_are_told_in_units_that_fit() {
        assert_eq!([4.0, 89.9, 90.0, 720.0, 5400.0].map(span), ["4 s", "90 s", "2 min", "12 min", "1.5 h"]);
    }
}
