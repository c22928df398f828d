//! Reading and writing what is stored: JSON whose field `format` says what the other fields mean.
//!
//! Every record and every plan of a study is [`Stored`]: read, checked and refused in one way, with one error, and able
//! to say where it comes from ([`Provenance`]). Fields that a later version adds are ignored.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::render::Prose;
use crate::run::Host;
use crate::study::Paper;
use crate::units::{listed, plural, trimmed, utc};

/// What is kept in a file of its own.
pub trait Stored: DeserializeOwned {
    /// The name and version of its format.
    const FORMAT: &'static str;
    /// The versions that are read: those before it, oldest first, and [`Stored::FORMAT`].
    const KNOWN: &'static [&'static str] = &[Self::FORMAT];
    /// What the file should be, for the error.
    const WHAT: &'static str;

    /// Where it comes from.
    fn provenance(&self) -> Provenance<'_>;

    /// Which part of it is impossible, if any; says where.
    ///
    /// # Errors
    /// If figures contradict each other or are impossible.
    fn check(&self) -> Result<(), String>;

    /// Takes in what the text of an earlier version says in fields that there are no more.
    ///
    /// # Errors
    /// If such a field is of the wrong type.
    fn convert(&mut self, text: &str) -> serde_json::Result<()> {
        let _ = text;
        Ok(())
    }
}

/// Where a record comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance<'a> {
    /// The command line that made it.
    pub command: &'a str,
    /// The version of authentick.
    pub version: &'a str,
    /// The commit that it was built from.
    pub commit: &'a str,
    /// When it was begun, in Unix seconds.
    pub started_unix_s: u64,
    /// What it ran on; a plan does not tell.
    pub host: Option<&'a Host>,
}

const GIB: f64 = (1_u64 << 30) as f64;

impl Host {
    /// The processors that the process could use: `2 of 4 processors, a quota of 0.2 processors`.
    #[must_use]
    pub fn processors(&self) -> String {
        let count = match self.online_cpu_count.filter(|&online| online != self.cpu_count) {
            Some(online) => format!("{} of {}", self.cpu_count, plural(u64::from(online), "processor")),
            None => plural(u64::from(self.cpu_count), "processor"),
        };
        let quota = self.cpu_quota_millicpus.map_or_else(String::new, |millicpus| {
            let cpus = trimmed(f64::from(millicpus) / 1000.0, 3);
            format!(", a quota of {cpus} processors")
        });
        count + &quota
    }
}

impl Provenance<'_> {
    /// What it ran on: `Some CPU, 4 processors, 23.5 GiB of memory, Linux 6.12`.
    pub(crate) fn host(&self) -> String {
        self.host.map_or_else(String::new, |host| {
            let Host { cpu, memory_octets, kernel, .. } = host;
            let gib = |octets: u64| format!("{:.1} GiB of memory, ", octets as f64 / GIB);
            let memory = memory_octets.map(gib).unwrap_or_default();
            format!("{cpu}, {}, {memory}{kernel}", host.processors())
        })
    }

    /// Host, time, program and command, as the middle and the end of a sentence.
    pub(crate) fn made(&self) -> String {
        let Provenance { command, version, commit, started_unix_s, .. } = self;
        let (host, started) = (self.host(), utc(*started_unix_s));
        format!("{host}, {started}, by authentick {version} (commit {commit}): {command}.")
    }

    /// Adds the sentence that tells of a run. `engine` follows the commit.
    pub(crate) fn told(&self, prose: Prose, engine: &str) -> Prose {
        let prose = prose.plain("The run started on ").unbroken(utc(self.started_unix_s));
        let prose = prose.plain(" with the command ").code(self.command);
        self.program(prose, engine).plain(format!(" on {}.", self.host()))
    }

    /// Adds the program in parentheses.
    pub(crate) fn program(&self, prose: Prose, engine: &str) -> Prose {
        prose
            .plain(format!(" (authentick {}, commit ", self.version))
            .code(self.commit)
            .plain(format!("{engine})"))
    }
}

/// Why a text is not what it should be. It is always the fault of the file, or of the user who named it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Its `format` is `found`; those that are read here are `known`.
    #[error(
        "format: {found:?} is not known here; this version reads {}",
        listed(known.iter().map(|name| format!("{name:?}")))
    )]
    Format {
        /// What the file says.
        found: String,
        /// What it may say.
        known: &'static [&'static str],
    },
    /// It is no JSON, or a field is missing or of the wrong type; says where.
    #[error("not {what}: {error}")]
    Json {
        /// What it should be.
        what: &'static str,
        /// What is wrong.
        #[source]
        error: serde_json::Error,
    },
    /// A figure is impossible, or contradicts another: says which.
    #[error("{0}")]
    Unsound(String),
    /// It is the plan of this paper, not of the one that was asked for.
    #[error("paper: this is a study of {:?}", .0.name())]
    Paper(Paper),
}

/// The name of the format that a stored text says it is in. The rest only has to be JSON.
///
/// # Errors
/// If the text is no JSON object with a string `format`; says where.
pub fn format_of(text: &str) -> Result<String, serde_json::Error> {
    #[derive(Deserialize)]
    struct Head {
        format: String,
    }
    from_json(text).map(|head: Head| head.format)
}

/// Reads JSON, which editors may have put a byte order mark before.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text.trim_start_matches('\u{feff}'))
}

/// The magnitudes between which the quotient of two stored numbers, and what a report makes of it, is a number, too;
/// nobody measures anything beyond them.
const MAGNITUDES: std::ops::RangeInclusive<f64> = 1e-100..=1e30;

/// Refuses a number of which a report could make one that is none; `at` is where the value stands.
fn check_magnitudes(value: &Value, at: &str) -> Result<(), Error> {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float == 0.0 || MAGNITUDES.contains(&float.abs()) => Ok(()),
            Some(_) | None => {
                Err(Error::Unsound(format!("{at}: {number} cannot be; the file was changed or is damaged")))
            }
        },
        Value::Array(values) => {
            let mut each = values.iter().enumerate();
            each.try_for_each(|(index, value)| check_magnitudes(value, &format!("{at}/{index}")))
        }
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            let between = if at.is_empty() { "" } else { "/" };
            check_magnitudes(value, &format!("{at}{between}{name}"))
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

/// Reads a text that is to be of this kind. The format comes first: what another one lacks is no fault of the file.
///
/// # Errors
/// If the text is no JSON, is in another format, lacks a field, or holds what cannot be.
pub fn read<T: Stored>(text: &str) -> Result<T, Error> {
    let json = |error| Error::Json { what: T::WHAT, error };
    let mut record: T = parse(text, T::WHAT, T::KNOWN)?;
    if T::KNOWN.len() > 1 && format_of(text).map_err(json)? != T::FORMAT {
        record.convert(text).map_err(json)?;
    }
    check_magnitudes(&from_json(text).map_err(json)?, "")?;
    record.check().map_err(Error::Unsound)?;
    Ok(record)
}

/// The same without checking its contents.
pub(crate) fn parse<T: DeserializeOwned>(
    text: &str,
    what: &'static str,
    known: &'static [&'static str],
) -> Result<T, Error> {
    let json = |error| Error::Json { what, error };
    let found = format_of(text).map_err(json)?;
    if !known.contains(&found.as_str()) {
        return Err(Error::Format { found, known });
    }
    from_json(text).map_err(json)
}

/// A record or plan as indented JSON with a line end after it.
///
/// # Panics
/// If it is no JSON, as nothing that is stored can be.
#[must_use]
pub fn pretty(stored: &impl Serialize) -> String {
    serde_json::to_string_pretty(stored).expect(ALWAYS_JSON) + "\n"
}

/// The same on one line, for what is long.
pub(crate) fn compact(stored: &impl Serialize) -> String {
    serde_json::to_string(stored).expect(ALWAYS_JSON) + "\n"
}

const ALWAYS_JSON: &str = "strings, numbers and lists of them are always JSON";

/// How a record is read and written. `#[serde(tag = "format", rename = ..)]` at the record says the same name. An
/// earlier version may be read too; what it says otherwise is then converted.
macro_rules! stored {
    (
        $record:ident = $name:literal, $what:literal, $write:ident, $check:expr
        $(, $earlier:literal => $convert:expr)?
    ) => {
        impl crate::stored::Stored for $record {
            const FORMAT: &'static str = $name;
            $(const KNOWN: &'static [&'static str] = &[$earlier, $name];)?
            const WHAT: &'static str = $what;

            fn provenance(&self) -> crate::stored::Provenance<'_> {
                crate::stored::Provenance {
                    command: &self.command,
                    version: &self.version,
                    commit: &self.commit,
                    started_unix_s: self.started_unix_s,
                    host: Some(&self.host),
                }
            }

            fn check(&self) -> Result<(), String> {
                $check(self)
            }
            $(
                fn convert(&mut self, text: &str) -> serde_json::Result<()> {
                    $convert(self, text)
                }
            )?
        }

        impl $record {
            /// Reads a record.
            ///
            /// # Errors
            /// If the text is no JSON, is in another format, lacks a field, or holds what cannot be.
            pub fn from_json(text: &str) -> Result<Self, crate::stored::Error> {
                crate::stored::read(text)
            }

            /// The record as JSON with a line end after it.
            #[must_use]
            pub fn to_json(&self) -> String {
                crate::stored::$write(self)
            }
        }
    };
}
pub(crate) use stored;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Count {
        count: u32,
    }

    #[test]
    fn format_is_found_wherever_it_stands_and_whatever_else_there_is() {
        for text in [r#"{"format": "a/1"}"#, r#"{"count": [], "format": "a/1", "else": {}}"#] {
            assert_eq!(format_of(text).unwrap(), "a/1", "{text}");
        }
        for text in ["", "[]", "{}", r#"{"format": 1}"#, r#"{"format": "a/1""#] {
            assert!(format_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn byte_order_mark_before_a_record_is_taken() {
        let text = format!("\u{feff}{}", include_str!("../tests/golden/load.json"));
        assert!(crate::Record::from_json(&text).is_ok());
        assert!(crate::load::LoadRecord::from_json(&text).is_ok());
    }

    /// Rates, ratios and times that were made of them were shown as `inf`.
    #[test]
    fn number_of_which_a_report_would_make_none_is_refused_with_its_place() {
        for (pointer, number) in [
            ("/steps/0/seconds", 5e-324),
            ("/steps/2/server/cpu_seconds", f64::MIN),
            ("/capacity/at_least", 1e-101),
            ("/steps/1/latency_us/p99", 1e31),
        ] {
            let mut record: Value = serde_json::from_str(include_str!("../tests/golden/load.json")).unwrap();
            *record.pointer_mut(pointer).unwrap() = number.into();
            let error = read::<crate::load::LoadRecord>(&record.to_string()).unwrap_err();
            assert!(matches!(&error, Error::Unsound(_)), "{pointer}: {error}");
            assert!(error.to_string().starts_with(&format!("{}: ", &pointer[1..])), "{pointer}: {error}");
        }
    }

    #[test]
    fn other_format_is_told_before_what_it_lacks() {
        let read = |text| parse::<Count>(text, "a count", &["a/1"]);
        assert_eq!(read(r#"{"format": "a/1", "count": 7}"#).unwrap(), Count { count: 7 });
        let other = read(r#"{"format": "a/2"}"#).unwrap_err();
        assert!(matches!(&other, Error::Format { found, .. } if found == "a/2"), "{other}");
        let lacking = read(r#"{"format": "a/1"}"#).unwrap_err();
        assert!(
            matches!(&lacking, Error::Json { error, .. } if error.to_string().contains("missing field `count`"))
        );
        assert!(lacking.to_string().starts_with("not a count: "), "{lacking}");
    }
}
