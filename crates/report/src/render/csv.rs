//! Fields of CSV lines (RFC 4180).

use std::borrow::Cow;

/// A field of a CSV line; empty if there is no value.
pub(crate) fn optional(value: Option<impl ToString>) -> Cow<'static, str> {
    value.map_or(Cow::Borrowed(""), |value| value.to_string().into())
}

/// A text as a field of a CSV line, in quotes where RFC 4180 asks for them.
pub(crate) fn quoted(field: &str) -> Cow<'_, str> {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")).into(),
        false => field.into(),
    }
}
