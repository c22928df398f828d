//! Why a study did not go on, and by whose fault.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitStatus;

use authentick_crypto::mac::MacAlgorithm;

/// By whose fault something went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What the user named is not as it should be.
    User,
    /// The server did not answer as it should; it may do so later.
    Server,
    /// This machine does not do or allow something.
    Host,
    /// Ours.
    Program,
}

/// Why a study did not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that the user named, or one in a folder that the user named, is not what it should be.
    #[error("{place}: {problem}; {remedy}")]
    File {
        /// The file, perhaps with the option that named it.
        place: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// Such a file cannot be read or written.
    #[error("{message}")]
    Access {
        /// What was done to which file, and what to do, as a sentence.
        message: String,
        /// Why it cannot.
        kind: ErrorKind,
    },
    /// A run of the program left no record.
    #[error(
        "{what}: the run brought nothing ({status}): {command}; what was measured before it is kept, and the same \
         command goes on"
    )]
    Run {
        /// What was to be measured.
        what: String,
        /// By whose fault, as the program has said by its exit code.
        fault: Fault,
        /// How the run ended.
        status: ExitStatus,
        /// Its command line.
        command: String,
    },
    /// What the user said does not go together: a sentence with the option and the remedy.
    #[error("{0}")]
    Usage(String),
    /// The study may not take as long as its shortest task.
    #[error("{0}")]
    NoTime(String),
    /// The server of this study, which is ours, answered nothing.
    #[error("the server of this study answered nothing")]
    Silence,
    /// The system refused what is allowed and possible otherwise.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A part of the rig cannot be had.
    #[error("{what}: {error}")]
    Rig {
        /// What it is for.
        what: &'static str,
        /// Why not.
        #[source]
        error: authentick_rig::Error,
    },
    /// Somebody computes another tag than we do, so there is nothing to compare in the bench of MACs.
    #[error("{algorithm}: {who} computes another tag than we do, so there is nothing to compare")]
    OtherTag {
        /// By which algorithm.
        algorithm: MacAlgorithm,
        /// Who.
        who: &'static str,
    },
    /// OpenSSL refuses an algorithm, and says why.
    #[error("OpenSSL cannot compute {0} here: {1}")]
    OpenSsl(MacAlgorithm, String),
    /// The process of that bench without AES and SHA instructions does not measure, and why.
    #[error("the process without AES and SHA instructions does not measure: {0}")]
    Masked(String),
    /// That process was given an order that it does not know: this one.
    #[error("no order of a bench: {0:?}")]
    Order(String),
    /// What should have worked did not: a mistake of ours.
    #[error("{0}")]
    Bug(String),
}

impl Error {
    /// By whose fault.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Error::File { .. }
            | Error::Access { .. }
            | Error::Usage(_)
            | Error::Order(_)
            | Error::NoTime(_) => Fault::User,
            Error::Run { fault, .. } => *fault,
            Error::Silence => Fault::Server,
            Error::System(_) | Error::Rig { .. } | Error::OpenSsl(..) => Fault::Host,
            Error::OtherTag { .. } | Error::Masked(_) | Error::Bug(_) => Fault::Program,
        }
    }

    /// Whether it is for want of rights.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        let kind = match self {
            Error::Access { kind, .. } => *kind,
            Error::System(error) | Error::Rig { error: authentick_rig::Error::System { error, .. }, .. } => {
                error.kind()
            }
            Error::Run { .. }
            | Error::File { .. }
            | Error::Usage(_)
            | Error::NoTime(_)
            | Error::Silence
            | Error::Rig { .. }
            | Error::OtherTag { .. }
            | Error::OpenSsl(..)
            | Error::Masked(_)
            | Error::Order(_)
            | Error::Bug(_) => return false,
        };
        kind == ErrorKind::PermissionDenied
    }

    /// Makes an error of the rig's; for `map_err`.
    pub(crate) fn rig(what: &'static str) -> impl FnOnce(authentick_rig::Error) -> Self {
        move |error| Error::Rig { what, error }
    }

    /// A file with the wrong content.
    pub(crate) fn wrong(file: &Path, problem: &str, remedy: &str) -> Self {
        Error::File {
            place: file.display().to_string(),
            problem: problem.to_owned(),
            remedy: remedy.to_owned(),
        }
    }

    /// A file of a study that cannot be read.
    pub(crate) fn unreadable(file: &Path, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => "run as a user who may read it",
            ErrorKind::InvalidData => "it is to be JSON in UTF-8; restore it",
            _ => "name a folder that can be read",
        };
        let message = format!("cannot read {}: {error}; {remedy}", file.display());
        Error::Access { message, kind: error.kind() }
    }

    /// A file or folder of a study that cannot be written.
    pub(crate) fn unwritable(file: &Path, error: &io::Error) -> Self {
        let message = format!("cannot write {}: {error}; name a folder that can be written", file.display());
        Error::Access { message, kind: error.kind() }
    }
}
