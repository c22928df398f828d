//! What every HTML page here is made of: the frame, headings, tables, and text that cannot become markup.
//!
//! Style and charts stand in the page, there is no script. Every text that comes from a record goes through
//! [`Escaped`]; the page also forbids the browser to load or run anything, should that fail.

use std::fmt::{self, Write as _};

use crate::units::typeset;

/// What stands where there is no value.
pub(crate) const ABSENT: &str = "\u{2013}";
/// The style that all pages share. Colours follow the reader's preference for light or dark.
pub(crate) const STYLE: &str = include_str!("page.css");

/// A page that grows section by section.
pub(crate) struct Page(String);

/// One line of a table.
pub(crate) struct Row {
    /// The class that the style sheet knows it by; empty: none.
    pub(crate) class: &'static str,
    pub(crate) cells: Vec<String>,
}

impl Page {
    /// Starts a page; neither argument comes from a record.
    pub(crate) fn new(title: &str, style: &str) -> Self {
        Page(format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        ))
    }

    /// Ends the page; returns its text.
    pub(crate) fn finish(mut self) -> String {
        self.0.push_str("</body>\n</html>\n");
        self.0
    }

    pub(crate) fn add(&mut self, text: fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("writing to a string cannot fail");
    }

    /// A heading, which does not come from a record.
    pub(crate) fn heading(&mut self, text: &str) {
        self.add(format_args!("<h2>{text}</h2>\n"));
    }

    /// A table in a box of its own, which scrolls where the page is too narrow. Columns of words start on
    /// the left, the others hold numbers. Every cell is escaped here.
    pub(crate) fn table(
        &mut self,
        label: &str,
        headings: &[&str],
        is_word: impl Fn(usize) -> bool,
        rows: impl Iterator<Item = Vec<String>>,
    ) {
        self.rows(label, headings, is_word, rows.map(|cells| Row { class: "", cells }));
    }

    /// The same with a class for each row.
    pub(crate) fn rows(
        &mut self,
        label: &str,
        headings: &[&str],
        is_word: impl Fn(usize) -> bool,
        rows: impl Iterator<Item = Row>,
    ) {
        let class = |column: usize| if is_word(column) { " class=\"word\"" } else { "" };
        self.add(format_args!(
            "<div class=\"scroll\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">\n"
        ));
        self.add(format_args!("<table>\n<thead><tr>"));
        for (column, heading) in headings.iter().enumerate() {
            self.add(format_args!("<th scope=\"col\"{}>{heading}</th>", class(column)));
        }
        self.add(format_args!("</tr></thead>\n<tbody>\n"));
        for row in rows {
            match row.class {
                "" => self.add(format_args!("<tr>")),
                class => self.add(format_args!("<tr class=\"{class}\">")),
            }
            for (column, cell) in row.cells.iter().enumerate() {
                let (class, cell) = (class(column), Escaped(cell));
                match column {
                    0 => self.add(format_args!("<th scope=\"row\"{class}>{cell}</th>")),
                    _ => self.add(format_args!("<td{class}>{cell}</td>")),
                }
            }
            self.add(format_args!("</tr>\n"));
        }
        self.add(format_args!("</tbody>\n</table>\n</div>\n"));
    }
}

/// A number for a page, or a dash.
pub(crate) fn cell(text: Option<String>) -> String {
    text.map_or_else(|| ABSENT.to_owned(), |text| typeset(&text))
}

/// Text that stands for itself in HTML, in an element or a quoted attribute.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(['&', '<', '>', '"', '\'']) {
            let Some(special) = part.chars().next_back() else { continue };
            let reference = match special {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                '\'' => "&#39;",
                _ => {
                    f.write_str(part)?;
                    continue;
                }
            };
            f.write_str(&part[..part.len() - special.len_utf8()])?;
            f.write_str(reference)?;
        }
        Ok(())
    }
}

/// Fails if one of the elements that pages are made of is opened and not closed, or the other way round.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_whole(page: &str) {
    const ELEMENTS: [&str; 16] = [
        "p", "table", "div", "figure", "ul", "li", "svg", "dl", "dt", "dd", "td", "th", "tr", "text", "h2",
        "h3",
    ];
    for element in ELEMENTS {
        let count = |text: String| page.matches(&text).count();
        let opened = count(format!("<{element}>")) + count(format!("<{element} "));
        assert_eq!(opened, count(format!("</{element}>")), "{element}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "<script>alert('x')</script>\"&";

    #[test]
    fn text_is_escaped_and_otherwise_kept() {
        assert_eq!(
            Escaped(HOSTILE).to_string(),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;"
        );
        assert_eq!(Escaped("no µ special").to_string(), "no µ special");
        assert_eq!(Escaped("").to_string(), "");
    }
}
