//! `authentick study`: repeats a paper's experiments, and renders them beside what was published.
//!
//! - `threshold`: the runs of Spectracom's note on the request threshold.
//! - `folder`: plan, records and report of a study on the disk.
//! - `helper`: further processes of this program: the server, agents, and single load runs.
//! - `hosts`: agents on this machine that stand for hosts of unequal strength.

mod folder;
mod helper;
mod hosts;
mod threshold;

use crate::args::{PaperArgument, Study, StudyVerb};
use crate::exit::{Exit, Failure};

pub(crate) fn run(study: &Study) -> Result<Exit, Failure> {
    match &study.verb {
        StudyVerb::Run(arguments) => match arguments.paper {
            PaperArgument::Threshold => threshold::run(arguments),
        },
        StudyVerb::Render { folder } => {
            folder::Folder::read(folder)?.render()?;
            Ok(Exit::Done)
        }
    }
}
