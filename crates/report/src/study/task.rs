//! The tasks of a study: what is to be measured, how long that takes, and what became of it.

use serde::{Deserialize, Serialize};

use crate::units::{listed, percent, plural};

/// More names than these are counted instead of listed.
const NAMES_MAX: usize = 6;
/// Below this share of the machine's time nobody need know what a host above it took.
const STOLEN_MIN: f64 = 0.01;

/// One thing to measure, which has a record of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its name among the tasks of the study.
    pub id: String,
    /// The part of the study that it belongs to: a table, or a step of the work. Tasks of a part take about the same
    /// share of the time that was expected.
    pub part: String,
    /// The record's name in the folder.
    pub file: String,
    /// How long it is expected to take, in seconds.
    pub seconds: f64,
    /// What is left out first if time is short: the task with the highest number; among equals the last.
    pub priority: u8,
    /// Tasks without whose records this one cannot be measured.
    #[serde(default)]
    pub needs: Vec<String>,
    /// What became of it; null until it was tried.
    #[serde(default)]
    pub end: Option<End>,
}

/// What became of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// How it ended.
    pub outcome: Outcome,
    /// Why it brought nothing that counts; null if it did.
    #[serde(default)]
    pub why: Option<String>,
    /// SHA-256 of its record, 64 hexadecimal digits; null if there is none.
    #[serde(default)]
    pub sha256: Option<String>,
    /// When it was begun, in Unix seconds.
    pub started_unix_s: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Which boot of the machine it ran in; null if the kernel does not tell.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// Processor time that a host above this machine took meanwhile, in seconds over all processors; null if the kernel
    /// does not tell.
    #[serde(default)]
    pub steal_seconds: Option<f64>,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// There is a record, and it counts.
    Measured,
    /// There is a record, and it says nothing about what was to be measured.
    Invalid,
    /// It cannot be measured here, or not as things are.
    Infeasible,
    /// Somebody stopped it.
    Stopped,
    /// There was no time for it.
    Cut,
}

impl Outcome {
    /// Whether the same command tries it again.
    #[must_use]
    pub const fn is_open(self) -> bool {
        match self {
            Outcome::Measured | Outcome::Invalid => false,
            Outcome::Infeasible | Outcome::Stopped | Outcome::Cut => true,
        }
    }

    /// What happened, for the beginning of a sentence about several tasks.
    const fn words(self) -> &'static str {
        match self {
            Outcome::Measured => "measured",
            Outcome::Invalid => "measured, and not counted",
            Outcome::Infeasible => "not measured",
            Outcome::Stopped => "stopped",
            Outcome::Cut => "left out for want of time",
        }
    }
}

impl Task {
    /// A task whose record is called as it is.
    #[must_use]
    pub fn new(id: impl Into<String>, part: impl Into<String>, seconds: f64, priority: u8) -> Self {
        let id = id.into();
        let file = format!("run-{id}.json");
        Task { id, part: part.into(), file, seconds, priority, needs: Vec::new(), end: None }
    }

    /// The same, which needs the record of this one.
    #[must_use]
    pub fn needing(mut self, id: impl Into<String>) -> Self {
        self.needs.push(id.into());
        self
    }

    /// Whether it is to be measured: for the first time, or again.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.end.as_ref().is_none_or(|end| end.outcome.is_open())
    }

    /// SHA-256 of its record, if there is one.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        self.end.as_ref()?.sha256.as_deref()
    }
}

/// Whether this is the name of a file in the folder itself.
fn is_plain(name: &str) -> bool {
    name.ends_with(".json")
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// No two tasks share a name or a record, no record is outside of the folder, what is needed comes before, and what
/// became of a task goes with its record.
pub(super) fn check(tasks: &[Task]) -> Result<(), String> {
    for (index, task) in tasks.iter().enumerate() {
        let Task { id, file, seconds, needs, end, .. } = task;
        let before = &tasks[..index];
        if !is_plain(file) {
            return Err(format!("tasks: {file:?} is not the name of a file in this folder"));
        }
        if before.iter().any(|other| other.id == *id || other.file == *file) {
            return Err(format!("tasks: {id:?} or its record is there twice"));
        }
        if !(*seconds >= 0.0 && seconds.is_finite()) {
            return Err(format!("tasks, {id}: {seconds} seconds cannot be"));
        }
        if let Some(missing) = needs.iter().find(|need| before.iter().all(|other| other.id != **need)) {
            return Err(format!("tasks, {id}: it needs {missing:?}, which does not come before it"));
        }
        if let Some(end) = end {
            check_end(end).map_err(|why| format!("tasks, {id}: {why}"))?;
        }
    }
    Ok(())
}

fn check_end(end: &End) -> Result<(), String> {
    let End { outcome, why, sha256, seconds, steal_seconds, .. } = end;
    let is_digest = |text: &String| text.len() == 64 && text.bytes().all(|octet| octet.is_ascii_hexdigit());
    let is_time = |seconds: f64| seconds >= 0.0 && seconds.is_finite();
    if sha256.as_ref().is_some_and(|text| !is_digest(text)) {
        return Err("its SHA-256 is none".to_owned());
    }
    if !is_time(*seconds) || !steal_seconds.is_none_or(is_time) {
        return Err("the time that it took cannot be".to_owned());
    }
    let is_sound = match outcome {
        Outcome::Measured => sha256.is_some() && why.is_none(),
        Outcome::Invalid => sha256.is_some() && why.is_some(),
        Outcome::Infeasible | Outcome::Cut => sha256.is_none() && why.is_some(),
        Outcome::Stopped => why.is_some(),
    };
    match is_sound {
        true => Ok(()),
        false => Err(format!("it is {}, which does not go with its record", outcome.words())),
    }
}

/// A reason without its figures: those that differ in nothing else are one.
fn kind(why: &str) -> String {
    why.chars().filter(|character| !character.is_ascii_digit() && !matches!(character, '.' | ',')).collect()
}

/// What has to be said of tasks that brought nothing that counts: a sentence for each kind of reason.
pub(super) fn gaps(tasks: &[Task]) -> Vec<String> {
    /// Tasks with one reason, and whether all have the same figures in it.
    struct Reason<'a> {
        outcome: Outcome,
        why: &'a str,
        is_same: bool,
        ids: Vec<&'a str>,
    }
    let mut reasons: Vec<Reason<'_>> = Vec::new();
    let mut untried = 0;
    for task in tasks {
        let Some(end) = &task.end else {
            untried += 1;
            continue;
        };
        let Some(why) = &end.why else { continue };
        let is_like = |known: &&mut Reason<'_>| known.outcome == end.outcome && kind(known.why) == kind(why);
        match reasons.iter_mut().find(is_like) {
            Some(known) => {
                known.is_same &= known.why == why;
                known.ids.push(&task.id);
            }
            None => reasons.push(Reason { outcome: end.outcome, why, is_same: true, ids: vec![&task.id] }),
        }
    }
    reasons.sort_by_key(|reason| reason.outcome);
    let of = format!("of {}", plural(tasks.len() as u64, "task"));
    let mut sentences: Vec<String> = reasons
        .into_iter()
        .map(|Reason { outcome, why, is_same, ids }| {
            let names = match ids.len() {
                ..=NAMES_MAX => listed(ids.iter().map(|&id| id.to_owned())),
                count => {
                    format!("{} and {} more", ids[..NAMES_MAX].join(", "), count - NAMES_MAX)
                }
            };
            let why = why.trim_end_matches('.');
            let whose = if is_same { ":" } else { "; the first:" };
            format!("{} {of} {}: {names}{whose} {why}.", ids.len(), were(ids.len(), outcome.words()))
        })
        .collect();
    if untried > 0 {
        let words = were(untried, "not measured yet");
        sentences.push(format!("{untried} {of} {words}; the same command again measures what is missing."));
    }
    sentences
}

fn were(count: usize, words: &str) -> String {
    format!("{} {words}", if count == 1 { "is" } else { "are" })
}

/// What a host above this machine took while the study measured.
pub(super) fn stolen(tasks: &[Task], cpu_count: u32) -> Option<String> {
    let known = tasks.iter().filter_map(|task| task.end.as_ref()).filter_map(|end| {
        let steal = end.steal_seconds?;
        Some((steal, end.seconds * f64::from(cpu_count)))
    });
    let (steal, all) = known.fold((0.0, 0.0), |sum, (steal, all)| (sum.0 + steal, sum.1 + all));
    let share = if all > 0.0 { steal / all } else { 0.0 };
    (share >= STOLEN_MIN).then(|| {
        format!(
            "While the study measured, this machine, which is a virtual one, did not have {} % of its processor time: \
             others on its host had it.",
            percent(share)
        )
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn ended(outcome: Outcome, why: Option<&str>) -> Option<End> {
        let has_record = !outcome.is_open();
        Some(End {
            outcome,
            why: why.map(str::to_owned),
            sha256: has_record.then(|| "0f".repeat(32)),
            started_unix_s: 1,
            seconds: 2.0,
            boot_id: None,
            steal_seconds: Some(0.0),
        })
    }

    pub(crate) fn tasks() -> Vec<Task> {
        vec![
            Task { end: ended(Outcome::Measured, None), ..Task::new("a", "x", 1.0, 0) },
            Task { end: ended(Outcome::Cut, Some("no time.")), ..Task::new("b", "x", 1.0, 1) },
            Task { end: ended(Outcome::Cut, Some("no time.")), ..Task::new("c", "x", 1.0, 1).needing("a") },
            Task { end: ended(Outcome::Invalid, Some("too late")), ..Task::new("d", "x", 1.0, 0) },
            Task::new("e", "x", 1.0, 0),
        ]
    }

    #[test]
    fn sound_tasks_pass() {
        assert_eq!(check(&tasks()), Ok(()));
        assert_eq!(tasks()[0].file, "run-a.json");
        let open: Vec<bool> = tasks().iter().map(Task::is_open).collect();
        assert_eq!(open, [false, true, true, false, true]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_task() {
        let refused = |change: fn(&mut Vec<Task>), part: &str| {
            let mut tasks = tasks();
            change(&mut tasks);
            let why = check(&tasks).unwrap_err();
            assert!(why.contains(part), "{part:?} is not in {why:?}");
        };
        for file in ["../run-a.json", "/etc/x.json", ".hidden.json", "run", ""] {
            let mut tasks = tasks();
            tasks[0].file = file.to_owned();
            assert!(check(&tasks).unwrap_err().contains("not the name of a file in this folder"), "{file}");
        }
        refused(|tasks| tasks[1].id = "a".to_owned(), "\"a\" or its record is there twice");
        refused(|tasks| tasks[1].file = "run-a.json".to_owned(), "there twice");
        refused(
            |tasks| tasks[2].needs = vec!["e".to_owned()],
            "tasks, c: it needs \"e\", which does not come before",
        );
        refused(|tasks| tasks[0].seconds = f64::NAN, "tasks, a: NaN seconds");
        refused(|tasks| tasks[0].end.as_mut().unwrap().seconds = -1.0, "the time that it took");
        refused(|tasks| tasks[0].end.as_mut().unwrap().sha256 = None, "does not go with its record");
        refused(|tasks| tasks[0].end.as_mut().unwrap().why = Some(String::new()), "does not go with");
        refused(|tasks| tasks[1].end.as_mut().unwrap().why = None, "tasks, b: it is left out");
        refused(|tasks| tasks[1].end.as_mut().unwrap().sha256 = Some("0f".repeat(32)), "does not go with");
        refused(|tasks| tasks[3].end.as_mut().unwrap().why = None, "tasks, d: ");
        refused(|tasks| tasks[3].end.as_mut().unwrap().sha256 = Some("0g".repeat(32)), "SHA-256 is none");
    }

    #[test]
    fn gaps_are_told_by_their_reason() {
        assert_eq!(
            gaps(&tasks()),
            [
                "1 of 5 tasks is measured, and not counted: d: too late.",
                "2 of 5 tasks are left out for want of time: b and c: no time.",
                "1 of 5 tasks is not measured yet; the same command again measures what is missing.",
            ]
        );
        let many: Vec<Task> = (0..9)
            .map(|index| Task {
                end: ended(Outcome::Infeasible, Some("no root")),
                ..Task::new(format!("t{index}"), "x", 1.0, 0)
            })
            .collect();
        assert_eq!(
            gaps(&many),
            ["9 of 9 tasks are not measured: t0, t1, t2, t3, t4, t5 and 3 more: no root."]
        );
        let late = |id: &str, why: &str| Task {
            end: ended(Outcome::Invalid, Some(why)),
            ..Task::new(id, "x", 1.0, 0)
        };
        assert_eq!(
            gaps(&[late("a", "1.5 ms late"), late("b", "20 ms late"), late("c", "deaf")]),
            [
                "2 of 3 tasks are measured, and not counted: a and b; the first: 1.5 ms late.",
                "1 of 3 tasks is measured, and not counted: c: deaf.",
            ]
        );
        assert!(gaps(&tasks()[..1]).is_empty());
    }

    #[test]
    fn stolen_time_is_told_from_a_hundredth_on() {
        let mut tasks = tasks();
        assert_eq!(stolen(&tasks, 2), None);
        // Four tasks of two seconds on two processors.
        tasks[0].end.as_mut().unwrap().steal_seconds = Some(0.15);
        assert_eq!(stolen(&tasks, 2), None);
        tasks[0].end.as_mut().unwrap().steal_seconds = Some(0.16);
        assert!(stolen(&tasks, 2).unwrap().contains("1.00 %"), "{:?}", stolen(&tasks, 2));
        tasks.iter_mut().filter_map(|task| task.end.as_mut()).for_each(|end| end.steal_seconds = None);
        assert_eq!(stolen(&tasks, 2), None);
    }
}
