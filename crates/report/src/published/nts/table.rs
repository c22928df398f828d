//! A checked reader of the tables of figures beside this module: CSV with a comment on top.
//!
//! Lines that begin with `#` say what the columns are. Then stand the names of the columns, then rows of numbers, each
//! finite and not negative. Nothing is quoted.

use thiserror::Error;

/// A table that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct Malformed {
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong there, and what belongs there.
    pub problem: String,
}

/// A row: the number of its line, and its values in the order of the columns.
pub(super) type Row<const N: usize> = (usize, [f64; N]);

/// Reads the rows of a table with these columns.
///
/// # Errors
/// If the columns have other names or another order, there is no row, or a row has another number of fields, or a field
/// that is no number of at least zero.
pub(super) fn read<const N: usize>(text: &str, columns: [&str; N]) -> Result<Vec<Row<N>>, Malformed> {
    let mut lines = (1..).zip(text.lines()).skip_while(|(_, line)| line.starts_with('#'));
    let (line, heading) = lines.next().unwrap_or((1, ""));
    if !heading.split(',').eq(columns) {
        return Err(Malformed { line, problem: format!("the columns have to be {}", columns.join(",")) });
    }
    let rows: Vec<Row<N>> =
        lines.map(|(line, row)| Ok((line, values(line, row)?))).collect::<Result<_, Malformed>>()?;
    if rows.is_empty() {
        return Err(Malformed { line, problem: "no row follows".to_owned() });
    }
    Ok(rows)
}

fn values<const N: usize>(line: usize, row: &str) -> Result<[f64; N], Malformed> {
    let malformed = |problem| Malformed { line, problem };
    let fields: Vec<f64> =
        row.split(',').map(|field| value(field).map_err(malformed)).collect::<Result<_, _>>()?;
    let count = fields.len();
    <[f64; N]>::try_from(fields).map_err(|_| malformed(format!("{count} fields stand where {N} belong")))
}

fn value(field: &str) -> Result<f64, String> {
    let number = field.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("\"{field}\" is no number of at least 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(text: &str) -> Result<Vec<Row<2>>, Malformed> {
        read(text, ["a", "b"])
    }

    #[test]
    fn rows_come_with_their_lines() {
        assert_eq!(
            two("# a comment\n# and more\na,b\n1,2.5\n0,3\n"),
            Ok(vec![(4, [1.0, 2.5]), (5, [0.0, 3.0])])
        );
    }

    #[test]
    fn wrong_tables_are_refused_with_line_and_problem() {
        for (text, line, problem) in [
            ("", 1, "the columns have to be a,b"),
            ("a\n1\n", 1, "the columns have to be a,b"),
            ("# c\nb,a\n1,2\n", 2, "the columns have to be a,b"),
            ("a,b\n", 1, "no row follows"),
            ("a,b\n1,2\n3\n", 3, "1 fields stand where 2 belong"),
            ("a,b\n1,2,3\n", 2, "3 fields stand where 2 belong"),
            ("a,b\n1,\n", 2, "\"\" is no number of at least 0"),
            ("a,b\n1,-2\n", 2, "\"-2\" is no number"),
            ("a,b\n1,inf\n", 2, "\"inf\" is no number"),
            ("a,b\nNaN,1\n", 2, "\"NaN\" is no number"),
            ("a,b\n1,2\n# late\n", 3, "\"# late\" is no number"),
            ("a,b\n1,2\n\n3,4\n", 3, "\"\" is no number"),
        ] {
            let error = two(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}");
            assert!(error.problem.contains(problem), "{text:?}: {error}");
        }
    }
}
