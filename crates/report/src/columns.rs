//! Cells to lines: aligned for a terminal, separated by commas for other programs.

use std::borrow::Cow;
use std::fmt::Write as _;

const GAP: &str = "  ";

/// Lines of cells whose columns line up: words start on the left, numbers end on the right. Nothing stands behind the
/// last cell of a line. A line may have fewer cells than another.
pub(crate) fn aligned<'a, L: AsRef<[Cow<'a, str>]>>(lines: &[L], is_word: impl Fn(usize) -> bool) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for line in lines {
        for (column, cell) in line.as_ref().iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(column) {
                Some(known) => *known = width.max(*known),
                None => widths.push(width),
            }
        }
    }
    let mut out = String::new();
    for line in lines {
        let start = out.len();
        for (column, (cell, &width)) in line.as_ref().iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { GAP };
            let written = match is_word(column) {
                true => write!(out, "{gap}{cell:<width$}"),
                false => write!(out, "{gap}{cell:>width$}"),
            };
            written.expect("writing to a string cannot fail");
        }
        out.truncate(start + out[start..].trim_end().len());
        out.push('\n');
    }
    out
}

/// `text` without characters that could steer a terminal.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    match text.contains(char::is_control) {
        true => text.replace(char::is_control, "\u{fffd}").into(),
        false => text.into(),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_start_and_numbers_end_in_the_same_column() {
        let lines = [["a", "1", "x"], ["bcd", "200", ""]].map(|line| line.map(Cow::Borrowed));
        assert_eq!(aligned(&lines, |column| column != 1), "a      1  x\nbcd  200\n");
        let ragged = [vec![Cow::Borrowed("a")], vec![Cow::Borrowed("bc"), Cow::Borrowed("d")]];
        assert_eq!(aligned(&ragged, |_| false), " a\nbc  d\n");
    }
}
