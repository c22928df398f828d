//! What holds of everything that is made of a record, whatever stands in it.

use std::fmt::Debug;

use crate::render::Report;

/// Checks what is shown of one record.
pub(super) struct Judge {
    /// Whether words of the record itself look like numbers that are none.
    is_doubtful: bool,
}

/// What formatting makes of a number that is none.
fn is_no_number(word: &str) -> bool {
    matches!(word, "NaN" | "inf" | "Infinity")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphanumeric())
}

impl Judge {
    /// Of a record, which is given as JSON.
    pub(super) fn of(json: &str) -> Self {
        Judge { is_doubtful: words(json).any(is_no_number) }
    }

    /// A record and what became of it by being written and read. The reader of JSON may be wrong by the last bit of a
    /// number.
    pub(super) fn same<T: Debug>(&self, left: &T, right: &T) {
        let (left, right) = (format!("{left:?}"), format!("{right:?}"));
        if left == right {
            return;
        }
        let words = |text: &str| -> Vec<String> {
            text.split([' ', ',', '(', ')', '[', ']', '{', '}']).map(str::to_owned).collect()
        };
        let (left, right) = (words(&left), words(&right));
        assert_eq!(left.len(), right.len());
        for (left, right) in left.iter().zip(&right).filter(|(left, right)| left != right) {
            let numbers = left.parse::<f64>().ok().zip(right.parse::<f64>().ok());
            let alike =
                numbers.is_some_and(|(left, right)| (left - right).abs() <= left.abs() * 4.0 * f64::EPSILON);
            assert!(alike, "{left} was written, and {right} read");
        }
    }

    pub(super) fn report(&self, report: &Report) {
        self.text(&report.text());
        self.text(&report.markdown());
        let page = report.page();
        self.numbers(&page);
        assert_closed(&page);
    }

    /// What is shown on a terminal.
    pub(super) fn text(&self, text: &str) {
        self.numbers(text);
        let control = text.chars().find(|char| char.is_control() && *char != '\n');
        assert_eq!(control, None, "a control character: {text:?}");
    }

    /// Rows of as many cells as there are headings.
    pub(super) fn csv(&self, csv: &str) {
        self.numbers(csv);
        let (mut is_quoted, mut cell_count, mut wanted) = (false, 1, None);
        for char in csv.chars() {
            match char {
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => cell_count += 1,
                '\n' if !is_quoted => {
                    assert_eq!(*wanted.get_or_insert(cell_count), cell_count, "a row of other cells: {csv}");
                    cell_count = 1;
                }
                _ => {}
            }
        }
        assert!(!is_quoted, "a quote that does not end: {csv}");
    }

    fn numbers(&self, shown: &str) {
        let wrong = words(shown).any(is_no_number);
        if wrong && !self.is_doubtful {
            let line = shown.lines().find(|line| words(line).any(is_no_number));
            panic!("a number that is none: {line:?}");
        }
    }
}

/// Fails unless the elements of a page are closed in the reverse order in which they were opened, and no `>` stands
/// outside of them.
fn assert_closed(page: &str) {
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").expect("it begins with its type");
    let mut open: Vec<&str> = Vec::new();
    while let Some(at) = rest.find('<') {
        assert!(open.last() == Some(&"style") || !rest[..at].contains('>'), "a loose >: {}", &rest[..at]);
        rest = &rest[at + 1..];
        let mut is_quoted = false;
        let end = rest.find(|char| {
            is_quoted ^= char == '"';
            char == '>' && !is_quoted
        });
        let (tag, after) = rest.split_at(end.unwrap_or_else(|| panic!("a tag without end: {rest:.80}")));
        rest = &after[1..];
        let name = tag.trim_end_matches('/').split([' ', '\n']).next().unwrap_or_default();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "it is closed, and was not opened last");
        } else if !tag.ends_with('/') && !matches!(name, "meta" | "br") {
            let is_name = !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric());
            assert!(is_name, "no element: {tag:.80}");
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0], "they are not closed");
    assert!(page.ends_with("</html>\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_closed(body: &str) -> bool {
        let page = format!("<!DOCTYPE html>\n<html>{body}</html>\n");
        std::panic::catch_unwind(|| assert_closed(&page)).is_ok()
    }

    #[test]
    fn pages_with_an_element_that_is_not_closed_are_seen() {
        assert!(is_closed("<meta a=\"b\"><p class=\"x>y\">a &gt; b<br><i/></p>"));
        for body in ["<p>", "</p>", "<p><i></p></i>", "a > b", "<p", "< >", "<p class=\"x>a</p>"] {
            assert!(!is_closed(body), "{body}");
        }
    }

    #[test]
    fn numbers_that_are_none_controls_and_rows_of_other_lengths_are_seen() {
        let fails = |check: fn(&Judge)| std::panic::catch_unwind(|| check(&Judge::of("{}"))).is_err();
        assert!(fails(|judge| judge.text("inf /s")) && fails(|judge| judge.text("x -NaN %")));
        assert!(fails(|judge| judge.text("a\u{1b}[2J")) && !fails(|judge| judge.text("information\n")));
        assert!(fails(|judge| judge.csv("a,b\n1\n")) && fails(|judge| judge.csv("a,b\n1,\"2\n")));
        assert!(!fails(|judge| judge.csv("a,b\n1,\"2,\n\"\n")));
        assert!(fails(|judge| judge.same(&(1.5, "a"), &(1.6, "a"))));
        assert!(!fails(|judge| judge.same(&1.1, &(1.1 + f64::EPSILON))));
        Judge::of("{\"cpu\": \"inf\"}").text("inf");
    }
}
