//! Reading and writing what is stored: JSON whose field `format` says what the other fields mean.
//!
//! What the formats are, and how their errors read, is said where each of them is defined.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The name of the format that a stored text says it is in. Nothing else of it need make sense but the JSON.
///
/// # Errors
/// If the text is no JSON object with a string `format`; says where.
pub fn format_of(text: &str) -> Result<String, serde_json::Error> {
    #[derive(Deserialize)]
    struct Head {
        format: String,
    }
    serde_json::from_str(text).map(|head: Head| head.format)
}

/// Why a text cannot be read as what it should be.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// Its `format` is this one.
    Format(String),
    /// It is no JSON, or a field is missing or of the wrong type; says where.
    Json(serde_json::Error),
}

/// Reads a text that is to be in the format of this name. The format comes first: what another one lacks is no fault
/// of the file.
pub(crate) fn read<T: DeserializeOwned>(text: &str, format: &str) -> Result<T, Unreadable> {
    let found = format_of(text).map_err(Unreadable::Json)?;
    if found != format {
        return Err(Unreadable::Format(found));
    }
    serde_json::from_str(text).map_err(Unreadable::Json)
}

/// A record or plan as indented JSON with a line end after it.
pub(crate) fn pretty(stored: &impl Serialize) -> String {
    let mut text =
        serde_json::to_string_pretty(stored).expect("strings, numbers and lists of them are always JSON");
    text.push('\n');
    text
}

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
    fn other_format_is_told_before_what_it_lacks() {
        let read = |text| read::<Count>(text, "a/1");
        assert_eq!(read(r#"{"format": "a/1", "count": 7}"#).unwrap(), Count { count: 7 });
        assert!(matches!(read(r#"{"format": "a/2"}"#), Err(Unreadable::Format(found)) if found == "a/2"));
        let Err(Unreadable::Json(error)) = read(r#"{"format": "a/1"}"#) else { panic!("a field is missing") };
        assert!(error.to_string().contains("missing field `count`"), "{error}");
    }
}
