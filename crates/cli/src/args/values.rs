//! Values that several commands take.

use std::ops::{Deref, RangeBounds};
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_wire::ke::AeadId;
use clap::ValueEnum;
use clap::builder::{MapValueParser, PathBufValueParser, TypedValueParser as _, ValueParserFactory};

/// One of several values, as the command line names it.
pub(crate) fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The path of a file or folder that a command writes for its user. Every argument with such a path has this type, and
/// one that is only read does not: a test finds them by it.
#[derive(Clone, Debug)]
pub(crate) struct OutputPath(PathBuf);

impl ValueParserFactory for OutputPath {
    type Parser = MapValueParser<PathBufValueParser, fn(PathBuf) -> OutputPath>;

    fn value_parser() -> Self::Parser {
        PathBufValueParser::new().map(OutputPath)
    }
}

impl Deref for OutputPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for OutputPath {
    fn as_ref(&self) -> &Path {
        self
    }
}

pub(super) fn aead(text: &str) -> Result<AeadId, String> {
    let id = text.parse().map(AeadId).map_err(|_| "no number".to_owned())?;
    match authentick_proto::auth::nts::algorithm(id) {
        Some(_) => Ok(id),
        None => Err("no AEAD algorithm of ours; choose 15, 16, 17 or 30".to_owned()),
    }
}

/// A number in a range, or what the text is not.
pub(super) fn number(text: &str, range: impl RangeBounds<f64>, otherwise: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| otherwise.to_owned())
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    number(text, 0.0..=86_400.0, "no number of seconds from 0 to 86400").map(Duration::from_secs_f64)
}

/// How long something waits: a response that is given no time cannot come.
pub(super) fn timeout(text: &str) -> Result<Duration, String> {
    let expected = "expected a number of seconds above 0, up to 86400";
    seconds(text).ok().filter(|span| !span.is_zero()).ok_or_else(|| expected.to_owned())
}

pub(super) fn step_seconds(text: &str) -> Result<Duration, String> {
    number(text, 0.01..=3600.0, "no number of seconds from 0.01 to 3600").map(Duration::from_secs_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_refused() {
        assert!(aead("15").is_ok() && aead("31").is_err() && aead("x").is_err());
        assert!(seconds("0.5").is_ok() && seconds("-1").is_err() && seconds("nan").is_err());
        assert!(seconds("0").is_ok() && timeout("0.5").is_ok());
        for text in ["0", "-0", "0.0", "1e-12", "-1", "nan", "86401", ""] {
            assert!(timeout(text).is_err_and(|message| message.contains("above 0")), "{text}");
        }
    }
}
