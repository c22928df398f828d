//! Why a part of a rig cannot be had, by whose fault.

use std::fmt;
use std::io;
use std::process::ExitStatus;

/// Why a part of a rig cannot be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// This machine lacks it, or does not allow it.
    Unavailable {
        /// What it is, as `no network namespaces`.
        what: String,
        /// What the kernel or a program said.
        why: String,
    },
    /// A program failed that was to set something up.
    Command {
        /// The program.
        program: String,
        /// What it wrote to standard error, or why it did not start.
        problem: String,
    },
    /// The system refused what is allowed and possible otherwise.
    System {
        /// What was asked for.
        what: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// A process ended before it wrote the line that was waited for.
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// What was waited for.
        line: String,
        /// What it wrote instead.
        log: String,
    },
    /// A process took too long to write a line, or to end.
    TooSlow {
        /// What was waited for.
        what: String,
        /// What it wrote meanwhile.
        log: String,
    },
    /// A certificate cannot be made as it was described.
    Certificate(rcgen::Error),
    /// The caller asked for what does not exist: a bug of the caller.
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unavailable { what, why } => write!(f, "{what}: {why}"),
            Error::Command { program, problem } => write!(f, "{program}: {problem}"),
            Error::System { what, error } => write!(f, "{what}: {error}"),
            Error::Ended { status, line, log } => write!(f, "it ended ({status}) before {line:?}:\n{log}"),
            Error::TooSlow { what, log } => write!(f, "waited too long for {what}:\n{log}"),
            Error::Certificate(error) => write!(f, "certificate: {error}"),
            Error::Misuse(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::System { error, .. } => Some(error),
            Error::Certificate(error) => Some(error),
            Error::Unavailable { .. }
            | Error::Command { .. }
            | Error::Ended { .. }
            | Error::TooSlow { .. }
            | Error::Misuse(_) => None,
        }
    }
}

impl From<rcgen::Error> for Error {
    fn from(error: rcgen::Error) -> Self {
        Error::Certificate(error)
    }
}
