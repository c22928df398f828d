//! `authentick study`: repeats a paper's experiments, and renders them beside what was published.
//!
//! - `threshold`: the runs of Spectracom's note on the request threshold.
//! - `mac`: the bench of MACs, beside the nine tables of the drafts.
//! - `antp`: the phases of ANTP, under load and over two paths.
//! - `folder`: plan, records and report of a study on the disk.
//! - `helper`: further processes of this program: the server, agents, and single load runs.
//! - `hosts`: agents on this machine that stand for hosts of unequal strength.

mod antp;
mod folder;
mod helper;
mod hosts;
mod mac;
mod threshold;

use authentick_report::study::plan::Paper;

use crate::args::{PaperArgument, Study, StudyVerb};
use crate::exit::{Exit, Failure};

pub(crate) fn run(study: &Study) -> Result<Exit, Failure> {
    match &study.verb {
        StudyVerb::Run(arguments) => match arguments.paper {
            PaperArgument::Threshold => threshold::run(arguments),
            PaperArgument::Mac => mac::run(arguments),
            PaperArgument::Antp => antp::run(arguments),
        },
        StudyVerb::Render { folder } => {
            match folder::paper(folder)? {
                Paper::Threshold => folder::Folder::read(folder)?.render()?,
                Paper::Mac => mac::render(folder)?,
                Paper::Antp => antp::render(folder)?,
            }
            Ok(Exit::Done)
        }
    }
}
