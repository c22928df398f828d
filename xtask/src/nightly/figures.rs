//! Figures that commands print about what they tried, in lines such as `assurance: load-runs = 1000000 runs`.
//!
//! NAME is of small letters, digits, `-` and `_`; NUMBER is decimal, with or without a fraction; UNIT is the rest of
//! the line. A whole number is a count, and counts of one name are added up: a command may run ten times. A number with
//! a fraction is a measurement, and comes once.

use serde::{Deserialize, Serialize};

/// What such a line begins with.
const MARK: &str = "assurance: ";

/// One named number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: Value,
    pub(crate) unit: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Value {
    Count(u64),
    Measurement(f64),
}

impl Figure {
    pub(crate) fn count(name: &str, value: u64, unit: &str) -> Self {
        Figure { name: name.to_owned(), value: Value::Count(value), unit: unit.to_owned() }
    }

    /// `load-runs: 1,000,000 runs`
    pub(crate) fn shown(&self) -> String {
        match self.value {
            Value::Count(count) => format!("{}: {} {}", self.name, grouped(count), self.unit),
            Value::Measurement(number) => format!("{}: {number} {}", self.name, self.unit),
        }
    }
}

/// A count with its digits in groups of three.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Adds the figures in `text` to `figures`, in the order in which they are named first.
pub(crate) fn collect(text: &str, figures: &mut Vec<Figure>) -> Result<(), String> {
    for line in text.lines() {
        // libtest begins the line itself if it does not hold back what a test prints.
        let line = match line.split_once(" ... ") {
            Some((test, rest)) if test.starts_with("test ") => rest,
            Some(_) | None => line,
        };
        let Some(said) = line.strip_prefix(MARK) else { continue };
        let figure = parse(said).ok_or_else(|| format!("`{line}` is no figure: NAME = NUMBER UNIT"))?;
        add(figure, figures)?;
    }
    Ok(())
}

/// Adds a count to the one of this name, or a new figure.
pub(crate) fn add(figure: Figure, figures: &mut Vec<Figure>) -> Result<(), String> {
    let Some(known) = figures.iter_mut().find(|known| known.name == figure.name) else {
        figures.push(figure);
        return Ok(());
    };
    let is_same_unit = known.unit == figure.unit;
    if let (Value::Count(sum), Value::Count(count), true) = (&mut known.value, figure.value, is_same_unit) {
        *sum = sum.checked_add(count).ok_or_else(|| format!("{} is too large", figure.name))?;
        return Ok(());
    }
    Err(format!("{} is given twice, and not as counts of one unit", figure.name))
}

fn parse(said: &str) -> Option<Figure> {
    let (name, rest) = said.split_once(" = ")?;
    let (number, unit) = rest.split_once(' ')?;
    let is_name = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || b"-_".contains(&octet);
    let is_number = number.starts_with(|first: char| first.is_ascii_digit())
        && number.ends_with(|last: char| last.is_ascii_digit())
        && number.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.');
    if name.is_empty() || !name.bytes().all(is_name) || !is_number || unit.trim() != unit || unit.is_empty() {
        return None;
    }
    let value = match number.contains('.') {
        true => Value::Measurement(number.parse().ok()?),
        false => Value::Count(number.parse().ok()?),
    };
    Some(Figure { name: name.to_owned(), value, unit: unit.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(text: &str) -> Result<Vec<String>, String> {
        let mut figures = Vec::new();
        collect(text, &mut figures)?;
        Ok(figures.iter().map(Figure::shown).collect())
    }

    #[test]
    fn figures_are_found_between_other_lines_and_after_the_name_of_a_test() {
        let text = "running 2 tests\nassurance: seeds = 1234567 seeds\ntest a::b ... assurance: t_max = 3.25 of 5\n\
            test c ... ok\nno assurance: here = 1 x\n";
        assert_eq!(collected(text).unwrap(), ["seeds: 1,234,567 seeds", "t_max: 3.25 of 5"]);
    }

    #[test]
    fn counts_of_one_name_add_up_and_measurements_do_not() {
        let twice = "assurance: seeds = 40 seeds\nassurance: seeds = 2 seeds\n";
        assert_eq!(collected(twice).unwrap(), ["seeds: 42 seeds"]);
        for text in [
            "assurance: t = 1.5 s\nassurance: t = 1.5 s\n",
            "assurance: t = 1 s\nassurance: t = 1.5 s\n",
            "assurance: t = 1 s\nassurance: t = 1 ms\n",
            "assurance: t = 18446744073709551615 s\nassurance: t = 1 s\n",
        ] {
            assert!(collected(text).is_err(), "{text}");
        }
    }

    #[test]
    fn line_that_is_almost_a_figure_is_an_error() {
        for said in [
            "",
            "seeds",
            "seeds = 4",
            "seeds = 4 ",
            "Seeds = 4 seeds",
            "a b = 4 seeds",
            "seeds = four seeds",
            "seeds = -4 seeds",
            "seeds = 1e9 seeds",
            "seeds = 1,000 seeds",
            "seeds = .5 s",
            "seeds = 1. s",
            "seeds = 1.2.3 s",
            "seeds=4 seeds",
            "seeds = 4  seeds",
            " = 4 seeds",
            "seeds = 99999999999999999999 x",
        ] {
            assert!(collected(&format!("assurance: {said}\n")).is_err(), "{said}");
        }
    }

    #[test]
    fn digits_are_grouped() {
        let shown = [0, 999, 1_000, 12_345, 1_000_000].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,000,000"]);
    }
}
