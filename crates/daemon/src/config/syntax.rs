//! Mistakes in the syntax of TOML, in words of ours: the parser's are for those who know its grammar.

use super::schema::MANUAL;

/// How much of a line a message has.
const CHARS_MAX: usize = 60;

/// What is wrong with a line, and the remedy; `found` is what the parser's `message` is about.
pub(super) fn describe(message: &str, found: &str, line: &str) -> (String, String) {
    let message = message.trim().split('\n').next().unwrap_or_default();
    let (what, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    let what = match what.contains("escape") {
        true => "a backslash before a character that it does not go with".to_owned(),
        false => what.replace("basic string", "text").replace("literal string", "text"),
    };
    let what = if what.contains("recurse") { "tables in tables without end".to_owned() } else { what };
    let shown = clean(line);
    let shown = if shown.is_empty() { "the end of the file".to_owned() } else { format!("`{shown}`") };
    if what == "duplicate key" {
        let name = clean(found.trim_matches(['[', ']', '"', ' ']));
        return match line.starts_with('[') {
            true => (
                format!("the table {} is there twice", clean(line.split('#').next().unwrap_or(line).trim())),
                "write all of its keys below the first one".to_owned(),
            ),
            false => (format!("the key {name} is there twice"), "keep one of the two".to_owned()),
        };
    }
    let literal = |text: &str| text.split('`').nth(1).map(str::to_owned);
    let remedy = match literal(expected) {
        _ if what.contains("backslash") => {
            "write \\\\ for a backslash, or put the text between single quotation marks".to_owned()
        }
        _ if what.contains("must be quoted") || what.contains("text") || what.contains("string") => {
            "put text between quotation marks, as in user = \"authentick\"".to_owned()
        }
        Some(literal) if !literal.chars().any(char::is_control) => format!("add the missing {literal}"),
        _ => format!("write KEY = VALUE, text in quotation marks, lists in brackets; {MANUAL}"),
    };
    (format!("invalid TOML in {shown}: {what}"), remedy)
}

/// The line that begins a list without an end: its number, from 1, and its key. The parser gave up in line `number`,
/// because the file ended (`is_at_the_end`) or because the line does not continue the list. A line that looks like an
/// element of it lacks a comma instead.
pub(super) fn open_list<'t>(
    lines: &[&'t str],
    number: usize,
    is_at_the_end: bool,
) -> Option<(usize, &'t str)> {
    let last = lines.get(number - 1).map_or("", |line| line.trim());
    let begins = |line: &&'t str| {
        let (key, value) = line.split_once('=')?;
        value.trim_start().starts_with('[').then(|| key.trim())
    };
    let is_element = last.starts_with(['"', '\'']) || last.starts_with(|c: char| c.is_ascii_digit());
    if is_element && !is_at_the_end {
        return None;
    }
    let mut depth = 0;
    for (index, line) in lines.iter().enumerate().take(number).rev() {
        let key = begins(line);
        // The line where the parser gave up belongs to the list only if it begins it.
        if index + 1 < number || key.is_some() {
            depth += depth_of(line);
        }
        match key {
            Some(key) if depth > 0 => return Some((index + 1, key)),
            // This list is closed; the line that it is on may be the one where the parser gave up.
            Some(_) if index + 1 < number => return None,
            Some(_) => depth = 0,
            None => {}
        }
    }
    None
}

/// What is wrong with a line that begins a list without an end, and the remedy.
pub(super) fn describe_open_list(line: &str, key: &str) -> (String, String) {
    let problem = format!("invalid TOML in `{}`: the list of {} is not closed", clean(line), clean(key));
    (problem, "add the missing ] at its end".to_owned())
}

/// By how many brackets a line opens more lists than it closes.
fn depth_of(line: &str) -> i32 {
    let (mut depth, mut quotation) = (0, None);
    for letter in line.chars() {
        match (letter, quotation) {
            ('"' | '\'', None) => quotation = Some(letter),
            (_, Some(mark)) if letter == mark => quotation = None,
            ('#', None) => break,
            ('[', None) => depth += 1,
            (']', None) => depth -= 1,
            _ => {}
        }
    }
    depth
}

/// The beginning of a text, without what steers a terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(CHARS_MAX).collect()
}
