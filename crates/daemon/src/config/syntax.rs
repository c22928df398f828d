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

/// The beginning of a text, without what steers a terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(CHARS_MAX).collect()
}
