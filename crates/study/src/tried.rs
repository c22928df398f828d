//! What becomes of one measurement, and how often it is repeated.

use crate::paper::Found;
use crate::{Caller, Error};

/// What became of something that was to be measured.
pub(crate) enum Tried<T> {
    /// It was.
    Done(T),
    /// It was stopped.
    Stopped,
    /// The server answered nothing, and why.
    Silent(String),
}

impl<T> Tried<T> {
    /// What a task brought, by what it measured.
    pub(crate) fn kept(self, kept: impl FnOnce(T) -> Found) -> Found {
        match self {
            Tried::Done(measured) => kept(measured),
            Tried::Stopped => Found::Stopped(None),
            Tried::Silent(why) => Found::Infeasible(format!("nothing comes of it: {why}")),
        }
    }
}

/// Measures up to so many times, until what comes of it says something about the server; else what came last.
pub(crate) fn until_valid<T>(
    caller: &Caller<'_>,
    attempt_count: u32,
    mut measure: impl FnMut() -> Result<Tried<T>, Error>,
    why_invalid: impl Fn(&T) -> Option<&str>,
) -> Result<Tried<T>, Error> {
    let mut attempt = 1;
    loop {
        let found = match measure()? {
            Tried::Done(found) => found,
            other @ (Tried::Stopped | Tried::Silent(_)) => return Ok(other),
        };
        match why_invalid(&found) {
            Some(why) if attempt < attempt_count => {
                caller.console.note(&format!("again, as it does not count: {why}"));
            }
            Some(_) | None => return Ok(Tried::Done(found)),
        }
        attempt += 1;
    }
}
