//! Any paper's study: begun or gone on with in its folder, measured, rendered.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use authentick_report::study::{Paper as Stored, antp, ntp_mac, request_threshold};

use crate::Error;
use crate::folder::{Folder, Plan, Report, no_plan, plan_text};
use crate::program::Program;

/// A paper whose experiments are repeated, under the options of one study.
pub trait Paper {
    /// What a folder says of the study that it holds.
    type Plan: Plan;

    /// What is to be measured, if the study begins now.
    fn plan(&self, caller: &Caller<'_>) -> Self::Plan;

    /// Measures what is missing in the folder, and keeps each record as it comes, until the caller says stop.
    ///
    /// # Errors
    /// If nothing more can be measured. What is in the folder stays, and another call goes on.
    fn run(&self, folder: &mut Folder<Self::Plan>, caller: &Caller<'_>) -> Result<(), Error>;
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

/// Carries a study out in the folder `path`, or goes on with it there, and renders what it has.
///
/// # Errors
/// If the folder holds another study, or something cannot be measured, read or written.
pub fn carry_out<P: Paper>(paper: &P, path: &Path, caller: &Caller<'_>) -> Result<Report, Error> {
    let mut folder = Folder::open(path, paper.plan(caller))?;
    paper.run(&mut folder, caller)?;
    folder.publish()
}

/// Renders whichever study is in the folder `path`, from what is there and nothing else.
///
/// # Errors
/// If there is none, or a file of it is not whole.
pub fn render(path: &Path) -> Result<Report, Error> {
    match Stored::of_plan(&plan_text(path)?).map_err(|error| no_plan(path, &error))? {
        Stored::Threshold => Folder::<request_threshold::Plan>::read(path)?.publish(),
        Stored::Mac => Folder::<ntp_mac::Plan>::read(path)?.publish(),
        Stored::Antp => Folder::<antp::Plan>::read(path)?.publish(),
    }
}
