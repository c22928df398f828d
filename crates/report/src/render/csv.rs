//! Tables as CSV (RFC 4180, with line feeds).

use std::borrow::Cow;

use super::{Heading, Table};

/// A heading and the rows, each on a line of its own.
pub(crate) fn lines(table: &Table) -> String {
    let headings = table.columns.iter().map(|column| {
        let Heading(heading, _) = &column.heading;
        quoted(heading)
    });
    let mut out = headings.collect::<Vec<_>>().join(",") + "\n";
    for row in &table.rows {
        out += &row.cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",");
        out.push('\n');
    }
    out
}

/// A text as a field of a CSV line, in quotes where RFC 4180 asks for them.
fn quoted(field: &str) -> Cow<'_, str> {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")).into(),
        false => field.into(),
    }
}
