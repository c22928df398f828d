//! Table of all keys, with the form and an example of each; and the check of a parsed configuration against it.
//!
//! The check comes before anything is deserialized, so that a message about a wrong type or an unknown key is ours: it
//! names key, value, expected form and an example, and never a type of the program. What passes can be deserialized,
//! which fuzzing asserts. Ranges and meanings are checked later, by the resolver.

mod keys;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::values::describe_duration;

pub(super) use self::keys::TOP;

/// Where every key is described.
pub(super) const MANUAL: &str = "see authentick.toml(5) or docs/manual/authentick.toml";

/// A key of a table.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// A value of it, in TOML; empty for tables.
    pub(super) example: &'static str,
    /// Whether its table makes no sense without it.
    is_needed: bool,
}

/// The keys of a table.
pub(super) type Keys = &'static [Key];

/// Forms of values.
pub(super) enum Form {
    Text,
    Flag,
    Integer,
    /// With or without a fraction.
    Number,
    Texts,
    Integers,
    TextOrFlag,
    TextOrTable(Keys),
    Table(Keys),
    Tables(Keys),
    TableOrTables(Keys),
}

impl Form {
    /// The form, for a message.
    const fn describe(&self) -> &'static str {
        match self {
            Form::Text => "text in quotation marks",
            Form::Flag => "true or false",
            Form::Integer => "a whole number",
            Form::Number => "a number",
            Form::Texts => "a list of texts",
            Form::Integers => "a list of whole numbers",
            Form::TextOrFlag => "text in quotation marks, true or false",
            Form::TextOrTable(_) => "text in quotation marks or a table",
            Form::Table(_) => "a table",
            Form::Tables(_) => "a list of tables",
            Form::TableOrTables(_) => "a table or a list of tables",
        }
    }

    /// The keys of the tables that it allows.
    pub(super) const fn keys(&self) -> Option<Keys> {
        match self {
            Form::TextOrTable(keys) | Form::Table(keys) | Form::Tables(keys) | Form::TableOrTables(keys) => {
                Some(keys)
            }
            Form::Text
            | Form::Flag
            | Form::Integer
            | Form::Number
            | Form::Texts
            | Form::Integers
            | Form::TextOrFlag => None,
        }
    }
}

/// A mistake in form: where it is, in octets of the text; what is wrong; and the remedy.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) at: Range<usize>,
    /// The key, with its tables.
    pub(super) key: String,
    pub(super) problem: String,
    pub(super) remedy: String,
}

/// Checks a table against the keys that it may have; `text` has the octets that a span of the table stands for.
///
/// # Errors
/// The first mistake.
pub(super) fn check(table: &DeTable<'_>, text: &dyn Fn(&Range<usize>) -> String) -> Result<(), Misfit> {
    Checker { text }.table("", 0..0, table, TOP)
}

struct Checker<'a> {
    text: &'a dyn Fn(&Range<usize>) -> String,
}

impl Checker<'_> {
    fn table(&self, place: &str, at: Range<usize>, table: &DeTable<'_>, keys: Keys) -> Result<(), Misfit> {
        for (name, value) in table {
            let key = inner(place, name.get_ref());
            match keys.iter().find(|known| known.name == name.get_ref()) {
                Some(known) => self.value(&key, value, known)?,
                None => return Err(self.unknown(&key, name, place, keys)),
            }
        }
        match keys.iter().find(|key| key.is_needed && !table.contains_key(key.name)) {
            None => Ok(()),
            Some(Key { name, example, .. }) => Err(Misfit {
                at,
                key: inner(place, name),
                problem: "missing".to_owned(),
                remedy: format!("add {name} = {example} to the table {place}"),
            }),
        }
    }

    fn value(&self, place: &str, value: &Spanned<DeValue<'_>>, known: &Key) -> Result<(), Misfit> {
        let at = value.span();
        let wrong = || Err(self.misfit(place, value, known));
        match (&known.form, value.get_ref()) {
            (Form::Text | Form::TextOrFlag | Form::TextOrTable(_), DeValue::String(_))
            | (Form::Flag | Form::TextOrFlag, DeValue::Boolean(_)) => Ok(()),
            (Form::Integer | Form::Number, DeValue::Integer(number))
                if i64::from_str_radix(number.as_str(), number.radix()).is_ok() =>
            {
                Ok(())
            }
            (Form::Number, DeValue::Float(number)) if is_finite(number.as_str()) => Ok(()),
            (Form::Texts, DeValue::Array(values)) => {
                values.iter().try_for_each(|value| match value.get_ref() {
                    DeValue::String(_) => Ok(()),
                    _ => Err(self.misfit_within(place, value, known, "text in quotation marks")),
                })
            }
            (Form::Integers, DeValue::Array(values)) => {
                values.iter().try_for_each(|value| match value.get_ref() {
                    DeValue::Integer(number)
                        if i64::from_str_radix(number.as_str(), number.radix()).is_ok() =>
                    {
                        Ok(())
                    }
                    _ => Err(self.misfit_within(place, value, known, "a whole number")),
                })
            }
            (
                Form::TextOrTable(keys) | Form::Table(keys) | Form::TableOrTables(keys),
                DeValue::Table(table),
            ) => self.table(place, at, table, keys),
            (Form::Tables(keys) | Form::TableOrTables(keys), DeValue::Array(tables)) => {
                tables.iter().try_for_each(|table| match table.get_ref() {
                    DeValue::Table(inner) => self.table(place, table.span(), inner, keys),
                    _ => Err(self.misfit_within(place, table, known, "a table")),
                })
            }
            _ => wrong(),
        }
    }

    /// A key that its table does not have.
    fn unknown(
        &self,
        key: &str,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        place: &str,
        keys: Keys,
    ) -> Misfit {
        // A table of its own has its name in a header, in brackets at the beginning of a line.
        let before = (0..name.span().start).rev().map(|at| (self.text)(&(at..at + 1)));
        let first = before.take_while(|octet| octet != "\n").filter(|octet| !octet.trim().is_empty()).last();
        let is_table = first.is_some_and(|octet| octet == "[");
        let what = if is_table { "unknown table" } else { "unknown key" };
        let written = name.get_ref();
        let remedy = if let Some(near) = nearest(written, keys) {
            format!("did you mean {}?", inner(place, near))
        } else if let Some(elsewhere) = elsewhere(written) {
            format!("did you mean {elsewhere}?")
        } else {
            let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
            let (last, others) = names.split_last().unwrap_or((&"", &[]));
            let table =
                if place.is_empty() { "tables are".to_owned() } else { format!("{place} has the keys") };
            match others.is_empty() {
                true => format!("{table} {last}; {MANUAL}"),
                false => format!("{table} {} and {last}; {MANUAL}", others.join(", ")),
            }
        };
        // A key is as long as its author likes, and a message is one line.
        let key = key.chars().map(|c| if c.is_control() { '?' } else { c }).take(100).collect();
        Misfit { at: name.span(), key, problem: what.to_owned(), remedy }
    }

    /// A value of another form than its key has.
    fn misfit(&self, place: &str, value: &Spanned<DeValue<'_>>, known: &Key) -> Misfit {
        let (text, form) = ((self.text)(&value.span()), &known.form);
        let name = known.name;
        let is_short = text.len() <= CHARS_MAX && !text.contains(char::is_control);
        let remedy = match (form, value.get_ref()) {
            (Form::Text, DeValue::Integer(_))
                if is_duration(known.example) && text.parse::<u64>().is_ok() =>
            {
                let seconds = text.parse().map(Duration::from_secs).unwrap_or_default();
                format!("write {name} = \"{}\", if these are seconds", describe_duration(seconds))
            }
            (
                Form::Text | Form::TextOrFlag,
                DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_),
            ) => {
                format!("write {name} = \"{text}\"")
            }
            (Form::Texts, DeValue::String(_)) | (Form::Integers, DeValue::Integer(_)) if is_short => {
                format!("write {name} = [{text}]")
            }
            (Form::Text, DeValue::Array(values)) if values.len() == 1 && is_short => {
                format!("write {name} = {}", (self.text)(&values[0].span()))
            }
            (Form::Integer, DeValue::String(unquoted)) if unquoted.parse::<i64>().is_ok() => {
                format!("write {name} = {unquoted}")
            }
            (Form::Number, DeValue::String(unquoted)) if is_finite(unquoted) => {
                format!("write {name} = {unquoted}")
            }
            (Form::Flag | Form::TextOrFlag, DeValue::String(unquoted)) if is_flag(unquoted) => {
                format!("write {name} = {unquoted}")
            }
            (Form::Table(_), DeValue::Array(tables)) if is_of_tables(tables) => {
                format!("write [{place}] once, and all of its keys below it")
            }
            (Form::Tables(_), DeValue::Table(_)) => format!("write [[{place}]] in place of [{place}]"),
            (Form::Table(_), _) => format!("write [{place}], and its keys below it"),
            _ => format!("write {name} = {}, for example", known.example),
        };
        let shown = shown(&text, value.get_ref());
        let problem = match value.get_ref() {
            DeValue::Integer(_) | DeValue::Float(_) if matches!(form, Form::Integer | Form::Number) => {
                let form = if is_too_large(value.get_ref()) { "one in range" } else { form.describe() };
                format!("invalid number {shown}: expected {form}")
            }
            _ => format!("invalid value {shown}: expected {}", form.describe()),
        };
        Misfit { at: value.span(), key: place.to_owned(), problem, remedy }
    }

    /// A value in a list of another form than the list has.
    fn misfit_within(
        &self,
        place: &str,
        value: &Spanned<DeValue<'_>>,
        known: &Key,
        expected: &str,
    ) -> Misfit {
        let shown = shown(&(self.text)(&value.span()), value.get_ref());
        Misfit {
            at: value.span(),
            key: place.to_owned(),
            problem: format!("invalid value {shown} in the list: expected {expected}"),
            remedy: match known.example.is_empty() {
                true => format!("write [[{place}]], and the keys of one table below it"),
                false => format!("write {} = {}, for example", known.name, known.example),
            },
        }
    }
}

/// Whether text is a number that is finite, or one of TOML's words for what is not.
fn is_finite(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|number| !number.is_infinite() || text.contains("inf"))
}

/// Whether an example, as a configuration has it, is one of a duration.
fn is_duration(example: &str) -> bool {
    humantime::parse_duration(example.trim_matches('"')).is_ok()
}

fn is_flag(text: &str) -> bool {
    text == "true" || text == "false"
}

fn is_too_large(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).is_err(),
        DeValue::Float(number) => !is_finite(number.as_str()),
        DeValue::String(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => false,
    }
}

/// Whether an array is a list of tables, as `[[nts.certificate]]` makes one.
pub(super) fn is_of_tables(array: &DeArray<'_>) -> bool {
    !array.is_empty() && array.iter().all(|value| matches!(value.get_ref(), DeValue::Table(_)))
}

/// How much of a value a message has.
const CHARS_MAX: usize = 60;

/// A value as a message has it: as it is written, unless that is long.
fn shown(text: &str, value: &DeValue<'_>) -> String {
    match value {
        DeValue::Table(_) => "(a table)".to_owned(),
        DeValue::Array(array) if is_of_tables(array) => "(a list of tables)".to_owned(),
        _ if text.chars().count() <= CHARS_MAX && !text.contains(char::is_control) => text.to_owned(),
        DeValue::Array(_) => "(a list)".to_owned(),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {
            let first: String = text.chars().take_while(|c| !c.is_control()).take(CHARS_MAX).collect();
            format!("{first}...")
        }
    }
}

/// The place of a key in the table at `place`.
pub(super) fn inner(place: &str, key: &str) -> String {
    if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") }
}

/// The key of a table that a misspelt one is nearest to, if one is near.
fn nearest(written: &str, keys: Keys) -> Option<&'static str> {
    let plain = written.replace('_', "-").to_ascii_lowercase();
    // Longer keys are told apart by more letters.
    let bound = 1 + plain.chars().count() / 5;
    let near = |key: &Key| {
        let begins = plain.len() >= 3 && key.name.starts_with(&plain);
        let distance = if begins { 0 } else { distance(&plain, key.name) };
        (distance, key.name.len().abs_diff(plain.len()), key.name)
    };
    let ranked = keys.iter().map(near).min();
    let (_, _, name) = ranked.filter(|(distance, ..)| *distance <= bound)?;
    Some(name)
}

/// The place of a key of this name in another of the tables.
fn elsewhere(written: &str) -> Option<String> {
    let plain = written.replace('_', "-").to_ascii_lowercase();
    let has = |table: &&Key| table.form.keys().is_some_and(|keys| keys.iter().any(|key| key.name == plain));
    Some(inner(TOP.iter().find(has)?.name, &plain))
}

/// How many letters have to be added, removed, replaced or swapped with their neighbour to make one word of another:
/// the optimal string alignment distance.
fn distance(from: &str, to: &str) -> usize {
    const CHARS_MAX: usize = 40;
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    if from.len() > CHARS_MAX {
        return usize::MAX;
    }
    let mut rows = vec![(0..=to.len()).collect::<Vec<usize>>()];
    for (i, a) in (1..).zip(&from) {
        let mut row = vec![i];
        for (j, b) in (1..).zip(&to) {
            let above = &rows[i - 1];
            let mut least = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + usize::from(a != b));
            if i > 1 && j > 1 && *a == to[j - 2] && from[i - 2] == *b {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}
