//! Any paper's study: begun or gone on with in its folder, measured task by task, rendered.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use authentick_net::clock::unix_seconds;
use authentick_report::Report;
use authentick_report::study::front::Stand;
use authentick_report::study::{End, FILE, Outcome, Paper as Stored, Plan, Settings, Task};
use authentick_report::units::plural;

use crate::Error;
use crate::all::{is_of_all, render_all};
use crate::antp::Antp;
use crate::field::Field;
use crate::folder::{Folder, Rendered, digest, no_plan, plan_text, publish};
use crate::machine::{boot_id, steal_seconds};
use crate::ntp_mac::NtpMac;
use crate::nts::Nts;
use crate::pace::{Pace, span};
use crate::program::Program;
use crate::request_threshold::RequestThreshold;

/// A paper whose experiments are repeated, under the options of one study.
pub trait Paper {
    /// What must not change while a study goes on.
    type Settings: Settings + PartialEq;

    /// What tasks share: servers, hosts, certificates. It ends what it started when it is dropped.
    type Rig<'a>
    where
        Self: 'a;

    /// What is to be measured, if the study begins now.
    fn plan(&self) -> Planned<Self::Settings>;

    /// What this host cannot do of it, or does otherwise, and why: sentences. Looking for it may take a moment.
    fn obstacles(&self) -> Vec<String>;

    /// What tasks share. It is made when the first task is measured.
    ///
    /// # Errors
    /// If it cannot be had; then nothing is measured.
    fn rig<'a>(
        &'a self,
        folder: &mut Folder<Self::Settings>,
        caller: Caller<'a>,
    ) -> Result<Self::Rig<'a>, Error>;

    /// Carries out one task. The engine keeps what it brings.
    ///
    /// # Errors
    /// If it failed in a way that ends the study. What is in the folder stays, and another call goes on.
    fn run(
        &self,
        task: &Task,
        rig: &mut Self::Rig<'_>,
        folder: &mut Folder<Self::Settings>,
    ) -> Result<Found, Error>;

    /// What is rendered from the folder: from its plan and its records alone.
    ///
    /// # Errors
    /// If a record is not whole.
    fn render(folder: &Folder<Self::Settings>) -> Result<Report, Error>;
}

/// What a study is going to measure.
pub struct Planned<S: Settings> {
    /// What must not change while it goes on.
    pub settings: S,
    /// What is known already of what turns out on the way.
    pub found: S::Found,
    /// The tasks, in the order of measuring.
    pub tasks: Vec<Task>,
}

/// What a task brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A record that counts, and a line for whoever watches.
    Measured {
        /// The record.
        record: String,
        /// What it says, in half a sentence.
        line: String,
    },
    /// A record that says nothing about what was to be measured.
    Invalid {
        /// The record.
        record: String,
        /// Why it does not count.
        why: String,
    },
    /// It cannot be measured here, or not as things are.
    Infeasible(String),
    /// It was stopped. What there is by then is kept, and measured again by the same command.
    Stopped(Option<String>),
}

/// What a study has of whoever carries it out.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The program, which a study starts again and again.
    pub program: &'a Program,
    /// Where it says what happens meanwhile.
    pub console: &'a dyn Console,
    /// Becomes true when the study is to stop.
    pub stop: &'a AtomicBool,
}

impl Caller<'_> {
    /// Whether the study is to stop.
    #[must_use]
    pub fn says_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Where a study says what happens while it measures.
pub trait Console {
    /// Something was measured.
    fn note(&self, line: &str);

    /// Something happened that whoever reads the results must know.
    fn warn(&self, line: &str);

    /// So many rounds of so many are done.
    fn progress(&self, done: u32, of: u32);
}

/// Carries a study out in the folder `path`, or goes on with it there, and renders what it has. `ceiling`: how long it
/// may measure in all, what it took before it was interrupted included.
///
/// # Errors
/// If the folder is in use, or holds another study, or something cannot be measured, read or written. What was measured
/// is kept.
pub fn carry_out<P: Paper>(
    paper: &P,
    path: &Path,
    ceiling: Option<Duration>,
    caller: &Caller<'_>,
) -> Result<Rendered, Error> {
    publish_report::<P>(&measured(paper, path, ceiling, WithoutTime::Fails, caller)?)
}

/// Carries a study out like [`carry_out`], as one of several that share a ceiling. With no time left for any task of
/// it, its folder says so of each, which is no failure. Returns whether anything of it is measured.
///
/// # Errors
/// Those of [`carry_out`], but for want of time.
pub(crate) fn carry_out_shared<P: Paper>(
    paper: &P,
    path: &Path,
    share: Option<Duration>,
    caller: &Caller<'_>,
) -> Result<bool, Error> {
    let folder = measured(paper, path, share, WithoutTime::Goes, caller)?;
    publish_report::<P>(&folder)?;
    Ok(folder.plan.tasks.iter().any(|task| task.end.as_ref().is_some_and(|end| end.sha256.is_some())))
}

/// What becomes of a study with no time for any of its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WithoutTime {
    Fails,
    /// Each task is cut.
    Goes,
}

/// The folder of a study, with what there was time for measured.
fn measured<P: Paper>(
    paper: &P,
    path: &Path,
    ceiling: Option<Duration>,
    without_time: WithoutTime,
    caller: &Caller<'_>,
) -> Result<Folder<P::Settings>, Error> {
    let mut folder = Folder::open(path, plan(paper, caller))?;
    folder.reopen_what_is_missing()?;
    let tasks = &folder.plan.tasks;
    if let (WithoutTime::Fails, Some(why)) = (without_time, nothing_fits(tasks, ceiling)) {
        return Err(Error::NoTime(why));
    }
    announce(tasks, ceiling, caller);
    measure(paper, &mut folder, ceiling, caller)?;
    Ok(folder)
}

fn publish_report<P: Paper>(folder: &Folder<P::Settings>) -> Result<Rendered, Error> {
    let report = rendered::<P>(folder)?;
    publish(folder.path(), &report.text(), &report.markdown(), &report.page())
}

/// The report on a folder, with links to its plan and its records.
fn rendered<P: Paper>(folder: &Folder<P::Settings>) -> Result<Report, Error> {
    let tasks = folder.plan.tasks.iter();
    let records = tasks.filter(|task| task.sha256().is_some()).map(|task| task.file.clone());
    Ok(P::render(folder)?.beside(std::iter::once(FILE.to_owned()).chain(records)))
}

/// The plan of a study that begins now.
fn plan<P: Paper>(paper: &P, caller: &Caller<'_>) -> Plan<P::Settings> {
    let Program { version, commit, command, host, .. } = caller.program;
    let Planned { settings, found, tasks } = paper.plan();
    Plan {
        paper: P::Settings::PAPER,
        version: version.clone(),
        commit: commit.clone(),
        command: command.clone(),
        started_unix_s: unix_seconds(),
        machine: host.clone(),
        settings,
        found,
        tasks,
    }
}

/// Measures what is open, task after task, until the caller says stop.
fn measure<P: Paper>(
    paper: &P,
    folder: &mut Folder<P::Settings>,
    ceiling: Option<Duration>,
    caller: &Caller<'_>,
) -> Result<(), Error> {
    let count = folder.plan.tasks.len();
    let order = order(&folder.plan.tasks, ceiling);
    let mut rig = None;
    for (place, &index) in order.iter().enumerate() {
        if caller.says_stop() {
            break;
        }
        if !folder.plan.tasks[index].is_open() {
            continue;
        }
        if let Some(why) = no_time(&folder.plan.tasks, &order[..place], index, ceiling) {
            folder.plan.tasks[index].end = Some(End { why: Some(why), ..ended(Outcome::Cut) });
            folder.keep_plan()?;
            continue;
        }
        let (start, steal) = (Instant::now(), steal_seconds());
        let task = folder.plan.tasks[index].clone();
        let end = ended(Outcome::Stopped);
        let brought = match &mut rig {
            Some(rig) => attempt(paper, &task, rig, folder, caller),
            None => match paper.rig(folder, *caller) {
                Ok(made) => attempt(paper, &task, rig.insert(made), folder, caller),
                Err(error) => Err(error),
            },
        }?;
        let stolen = steal_seconds().zip(steal).map(|(after, before)| (after - before).max(0.0));
        let end = End { seconds: start.elapsed().as_secs_f64(), steal_seconds: stolen, ..end };
        let line = keep(folder, index, brought, end)?;
        let left = left(&folder.plan.tasks, &order, place + 1, ceiling);
        caller.console.note(&format!("[{}/{count}, {} left] {line}", place + 1, span(left)));
    }
    Ok(())
}

/// Carries out a task; a server that does not answer is no reason to give up the others.
fn attempt<P: Paper>(
    paper: &P,
    task: &Task,
    rig: &mut P::Rig<'_>,
    folder: &mut Folder<P::Settings>,
    caller: &Caller<'_>,
) -> Result<Found, Error> {
    match paper.run(task, rig, folder) {
        Err(_) if caller.says_stop() => Ok(Found::Stopped(None)),
        found => found,
    }
}

/// How a task ended that begins now.
fn ended(outcome: Outcome) -> End {
    End {
        outcome,
        why: None,
        sha256: None,
        started_unix_s: unix_seconds(),
        seconds: 0.0,
        boot_id: boot_id(),
        steal_seconds: None,
    }
}

/// Keeps what a task brought: its record first, and then that it ended. Returns what is to be said of it.
fn keep<S: Settings>(folder: &mut Folder<S>, index: usize, found: Found, end: End) -> Result<String, Error> {
    const STOPPED: &str = "it was stopped while it was measured";
    let (id, file) = (folder.plan.tasks[index].id.clone(), folder.plan.tasks[index].file.clone());
    let (outcome, record, why, line) = match found {
        Found::Measured { record, line } => (Outcome::Measured, Some(record), None, line),
        Found::Invalid { record, why } => {
            let line = format!("{id}: it does not count: {why}");
            (Outcome::Invalid, Some(record), Some(why), line)
        }
        Found::Infeasible(why) => {
            let line = format!("{id}: not measured: {why}");
            (Outcome::Infeasible, None, Some(why), line)
        }
        Found::Stopped(record) => {
            (Outcome::Stopped, record, Some(STOPPED.to_owned()), format!("{id}: stopped"))
        }
    };
    if let Some(record) = &record {
        folder.keep(&file, record)?;
    }
    let sha256 = record.map(|record| digest(&record));
    folder.plan.tasks[index].end = Some(End { outcome, why, sha256, ..end });
    folder.keep_plan()?;
    Ok(line)
}

/// Which open tasks are measured within the ceiling, as the time that others took lets expect. Those that were `tried`
/// take no more of it, unless there was no time for them.
fn fitting(tasks: &[Task], tried: &[usize], ceiling: Option<Duration>) -> Vec<bool> {
    let Some(ceiling) = ceiling else { return vec![true; tasks.len()] };
    let pace = Pace::of(tasks);
    let left = (ceiling.as_secs_f64() - pace.spent()).max(0.0);
    let is_cut = |task: &Task| task.end.as_ref().is_some_and(|end| end.outcome == Outcome::Cut);
    let is_tried = |task: &Task| !is_cut(task) && tried.iter().any(|&index| tasks[index].id == task.id);
    pace.fitting(tasks, |task| !task.is_open() || is_tried(task), left)
}

/// Why there is no time for this task, if so.
fn no_time(tasks: &[Task], tried: &[usize], index: usize, ceiling: Option<Duration>) -> Option<String> {
    let ceiling = ceiling?;
    let fits = fitting(tasks, tried, Some(ceiling))[index];
    (!fits).then(|| {
        format!(
            "the study may take {} (--minutes); the same command with more measures it",
            span(ceiling.as_secs_f64())
        )
    })
}

/// The order of measuring: that of the plan. Where time is short, what matters most comes first, so that an expectation
/// that is wrong costs what matters least.
fn order(tasks: &[Task], ceiling: Option<Duration>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    if ceiling.is_some() {
        order.sort_by_key(|&index| tasks[index].priority);
    }
    order
}

/// Seconds that tasks are going to take, in this order from a place on, that are open and fit.
fn left(tasks: &[Task], order: &[usize], from: usize, ceiling: Option<Duration>) -> f64 {
    let (tried, rest) = order.split_at(from);
    let (pace, fits) = (Pace::of(tasks), fitting(tasks, tried, ceiling));
    let open = rest.iter().filter(|&&index| tasks[index].is_open() && fits[index]);
    open.map(|&index| pace.seconds(&tasks[index])).fold(0.0, |sum, seconds| sum + seconds)
}

/// That there is no time for any of these tasks, if so.
fn nothing_fits(tasks: &[Task], ceiling: Option<Duration>) -> Option<String> {
    let fits = fitting(tasks, &[], ceiling);
    if tasks.iter().zip(fits).any(|(task, fits)| fits || !task.is_open()) {
        return None;
    }
    let least = tasks.iter().map(|task| task.seconds).fold(f64::INFINITY, f64::min);
    Some(format!(
        "--minutes: there is no time to measure anything in {}; the shortest of {} takes about {}, and all of them {}",
        span(ceiling.unwrap_or_default().as_secs_f64()),
        plural(tasks.len() as u64, "task"),
        span(least),
        span(tasks.iter().map(|task| task.seconds).sum())
    ))
}

/// Says how much there is to measure, how long that takes, and what there is no time for.
fn announce(tasks: &[Task], ceiling: Option<Duration>, caller: &Caller<'_>) {
    let fits = fitting(tasks, &[], ceiling);
    let (open, cut): (Vec<_>, Vec<_>) =
        tasks.iter().zip(fits).filter(|(task, _)| task.is_open()).partition(|(_, fits)| *fits);
    if !open.is_empty() {
        let (count, seconds) =
            (plural(open.len() as u64, "task"), left(tasks, &order(tasks, ceiling), 0, ceiling));
        caller.console.note(&format!("{count} to measure, about {}", span(seconds)));
    }
    if !cut.is_empty() {
        let names: Vec<&str> = cut.iter().map(|(task, _)| task.id.as_str()).collect();
        let count = plural(cut.len() as u64, "task");
        caller.console.warn(&format!("no time for {count} (--minutes): {}", names.join(", ")));
    }
}

/// Renders whichever study is in the folder `path`, or all that are in folders below it, from what is there and nothing
/// else.
///
/// # Errors
/// If there is none, or a file of it is not whole.
pub fn render(path: &Path) -> Result<Rendered, Error> {
    if is_of_all(path) {
        for paper in Stored::ALL.into_iter().filter(|paper| path.join(paper.name()).join(FILE).exists()) {
            render(&path.join(paper.name()))?;
        }
        return render_all(path);
    }
    let report = report_of(path)?;
    publish(path, &report.text(), &report.markdown(), &report.page())
}

/// The report on the study in a folder.
pub(crate) fn report_of(path: &Path) -> Result<Report, Error> {
    whole_of(path).map(|(report, _)| report)
}

/// The report on the study in a folder, and how far that has come.
pub(crate) fn whole_of(path: &Path) -> Result<(Report, Stand), Error> {
    fn of<P: Paper>(path: &Path) -> Result<(Report, Stand), Error> {
        let folder = Folder::read(path)?;
        let report = rendered::<P>(&folder)?;
        let stand = Stand::of(&folder.plan).judged(&report);
        Ok((report, stand))
    }
    match Stored::of_plan(&plan_text(path)?).map_err(|error| no_plan(path, &error))? {
        Stored::Threshold => of::<RequestThreshold>(path),
        Stored::Mac => of::<NtpMac>(path),
        Stored::Nts => of::<Nts>(path),
        Stored::Antp => of::<Antp>(path),
        Stored::Field => of::<Field>(path),
    }
}
