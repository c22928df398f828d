//! Why a part of a rig cannot be had, by whose fault.

use std::io;
use std::process::ExitStatus;

/// Why a part of a rig cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This machine lacks it, or does not allow it.
    #[error("{what}: {why}")]
    Unavailable {
        /// What it is, as `no network namespaces`.
        what: String,
        /// What the kernel or a program said.
        why: String,
    },
    /// A program failed that was to set something up.
    #[error("{program}: {problem}")]
    Command {
        /// The program.
        program: String,
        /// What it wrote to standard error, or why it did not start.
        problem: String,
    },
    /// The system refused what is allowed and possible otherwise.
    #[error("{what}: {error}")]
    System {
        /// What was asked for.
        what: String,
        /// What the kernel said.
        #[source]
        error: io::Error,
    },
    /// A process ended before it wrote the line that was waited for.
    #[error("it ended ({status}) before {line:?}:\n{log}")]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// What was waited for.
        line: String,
        /// What it wrote instead.
        log: String,
    },
    /// A process took too long to write a line, or to end.
    #[error("waited too long for {what}:\n{log}")]
    TooSlow {
        /// What was waited for.
        what: String,
        /// What it wrote meanwhile.
        log: String,
    },
    /// A certificate cannot be made as it was described.
    #[error("certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The caller asked for what does not exist: a bug of the caller.
    #[error("{0}")]
    Misuse(&'static str),
}

impl Error {
    /// Makes an error of the system's; for `map_err`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |error| Error::System { what, error }
    }

    /// Makes an error say that the machine does not have `what`.
    pub(crate) fn unavailable(what: impl Into<String>, why: &impl ToString) -> Self {
        Error::Unavailable { what: what.into(), why: why.to_string() }
    }
}
