//! Names by which a page's sections and tables are linked to, and links that are files themselves.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// No name is longer.
const SIZE_MAX: usize = 60;

/// A heading as the name of a place: its letters and digits in lower case.
pub(super) fn slug(heading: &str) -> String {
    let words = heading.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    slug.truncate(SIZE_MAX);
    if slug.is_empty() { "section".to_owned() } else { slug }
}

/// The names that a page has given.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// A name of its own: the slug of a heading behind the name of a part, if there is one, and a number if it is
    /// taken.
    pub(super) fn give(&mut self, part: &str, heading: &str) -> String {
        let first = within(part, heading);
        let numbered = (2..).map(|number| format!("{first}-{number}"));
        let mut names = std::iter::once(first.clone()).chain(numbered);
        let name = names.find(|name| !self.0.contains(name)).expect("there are more numbers than headings");
        self.0.insert(name.clone());
        name
    }
}

/// The name of the first place with this heading in a part of a page.
pub(super) fn within(part: &str, heading: &str) -> String {
    if part.is_empty() { slug(heading) } else { format!("{part}-{}", slug(heading)) }
}

/// A CSV file as a link of its own (RFC 2397), percent-encoded.
pub(super) fn csv_link(csv: &str) -> String {
    let mut link = "data:text/csv;charset=utf-8,".to_owned();
    for octet in csv.bytes() {
        match octet {
            b'0'..=b'9'
            | b'A'..=b'Z'
            | b'a'..=b'z'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b','
            | b'/'
            | b'('
            | b')' => {
                link.push(char::from(octet));
            }
            // Writing to a string cannot fail.
            _ => {
                let _ = write!(link, "%{octet:02X}");
            }
        }
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_letters_and_digits_and_each_is_given_once() {
        assert_eq!(slug("Figure 7: d_CKE under load"), "figure-7-d-cke-under-load");
        assert_eq!(slug("<script>\"\u{e4}"), "script");
        assert_eq!(slug("\u{201c}\u{201d}"), "section");
        assert_eq!(slug(&"long ".repeat(40)).len(), SIZE_MAX);
        let mut names = Names::default();
        let given = ["A b", "a-B", "a b"].map(|heading| names.give("nts", heading));
        assert_eq!(given, ["nts-a-b", "nts-a-b-2", "nts-a-b-3"]);
        assert_eq!(names.give("", "A b"), "a-b");
    }

    #[test]
    fn link_has_nothing_that_ends_an_attribute_or_a_link() {
        let link = csv_link("a,\"b \u{b5}\"\n<&'#%>");
        assert_eq!(link, "data:text/csv;charset=utf-8,a,%22b%20%C2%B5%22%0A%3C%26%27%23%25%3E");
    }
}
