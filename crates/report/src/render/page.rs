//! Sections as one self-contained HTML page: style and pictures are inline, there is no script.
//!
//! Every text goes through [`escaped`]; the page also forbids the browser to load or run anything, should that fail.
//! Colours follow the reader's preference for light or dark. Long tables and methods are folded, series of pictures can
//! be hidden, and every table and picture has its figures as a CSV file inside of the page.
//!
//! - `anchor`: what links lead to.
//! - `block`: paragraphs, tables and pictures.

use std::fmt::{self, Write as _};

mod anchor;
mod block;
#[cfg(test)]
mod tests;

use self::anchor::{Names, within};
use super::{Block, Layout, Medium, Report, Section};
use crate::units::plural;

#[cfg(test)]
pub(crate) use self::tests::{assert_escaped, assert_titled, assert_two_figures, assert_whole};

/// A page with fewer headings has no contents.
const CONTENTS_MIN: usize = 4;
const RECORDS: &str = "Records";

/// Style of what only some reports have.
const SHOWN_STYLE: &str = include_str!("shown.css");

const fn style(layout: Layout) -> &'static str {
    match layout {
        Layout::Brief => include_str!("page.css"),
        Layout::Flat => concat!(include_str!("page.css"), include_str!("load.css")),
        Layout::Nested => {
            concat!(include_str!("page.css"), include_str!("load.css"), include_str!("mac.css"))
        }
    }
}

pub(super) fn report(report: &Report) -> String {
    let Report { title, layout, sections, tally, files } = report;
    let has_links = *layout == Layout::Nested || tally.is_some() || !files.is_empty();
    let is_shown =
        |section: &Section| section.shown(Medium::Page).any(|block| matches!(block, Block::Shown { .. }));
    let extra = if sections.iter().any(is_shown) { SHOWN_STYLE } else { "" };
    let mut page = Page::begun(title, *layout, extra, has_links);
    page.report(report);
    page.ended()
}

/// Reports one after the other, with contents that link to them. Their headings are a level lower.
pub(super) fn joined(title: &str, front: &Report, parts: &[(&'static str, Report)]) -> String {
    let mut page = Page::begun(title, Layout::Nested, "", true);
    page.sections(front.layout, &front.sections);
    page.add(format_args!("<nav aria-label=\"Contents\">\n<ul>\n"));
    for (id, part) in parts {
        page.add(format_args!("<li><a href=\"#{}\">{}</a>\n", escaped(id), escaped(&part.title)));
        page.part = id;
        page.contents(part);
        page.add(format_args!("</li>\n"));
    }
    page.add(format_args!("</ul>\n</nav>\n"));
    for (id, part) in parts {
        let (name, title) = (escaped(id), escaped(&part.title));
        page.add(format_args!("<section id=\"{name}\" aria-label=\"{title}\">\n<h2>{title}</h2>\n"));
        page.level = 3;
        page.part = id;
        page.report(part);
        page.add(format_args!("</section>\n"));
    }
    page.ended()
}

/// A page that grows block by block.
struct Page {
    html: String,
    /// Of headings of sections.
    level: u8,
    /// Of headings of tables.
    table_level: u8,
    /// The report that is being written, where there are several; else empty.
    part: &'static str,
    names: Names,
    /// Whether places have names, and tables and pictures CSV: not in reports on runs of load, which have files of it.
    has_links: bool,
}

impl Page {
    fn begun(title: &str, layout: Layout, extra: &str, has_links: bool) -> Self {
        let (title, style) = (escaped(title), style(layout));
        let mut page = Page {
            html: String::new(),
            level: 2,
            table_level: 3,
            part: "",
            names: Names::default(),
            has_links,
        };
        page.add(format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{style}{extra}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        ));
        page
    }

    fn ended(self) -> String {
        self.html + "</main>\n</body>\n</html>\n"
    }

    fn add(&mut self, text: fmt::Arguments<'_>) {
        self.html.write_fmt(text).expect("writing to a string cannot fail");
    }

    /// Its opening, contents if it is long, and the rest.
    fn report(&mut self, report: &Report) {
        let opening = report.sections.iter().take_while(|section| section.heading.is_empty()).count();
        let (opening, rest) = report.sections.split_at(opening);
        self.sections(report.layout, opening);
        // Contents of several reports stand before all of them.
        if self.has_links && self.part.is_empty() && headings(report).len() >= CONTENTS_MIN {
            self.add(format_args!("<nav aria-label=\"Contents\">\n"));
            self.contents(report);
            self.add(format_args!("</nav>\n"));
        }
        self.sections(report.layout, rest);
        self.records(report);
    }

    /// Links to its sections.
    fn contents(&mut self, report: &Report) {
        self.add(format_args!("<ul>\n"));
        for heading in headings(report) {
            let name = within(self.part, heading);
            self.add(format_args!("<li><a href=\"#{name}\">{}</a></li>\n", escaped(heading)));
        }
        self.add(format_args!("</ul>\n"));
    }

    fn sections(&mut self, layout: Layout, sections: &[Section]) {
        for section in sections {
            let is_headed = is_headed(layout, section);
            if is_headed {
                self.heading(self.level, &section.heading);
            }
            // Without a heading above them those of tables are no lower.
            self.table_level = self.level + u8::from(is_headed);
            section.shown(Medium::Page).for_each(|block| self.block(layout, block));
        }
    }

    fn heading(&mut self, level: u8, heading: &str) {
        let name = if self.has_links { self.names.give(self.part, heading) } else { String::new() };
        let name = if name.is_empty() { name } else { format!(" id=\"{name}\"") };
        self.add(format_args!("<h{level}{name}>{}</h{level}>\n", escaped(heading)));
    }

    /// Links to the files that the report is made of, which lie beside the page or in a folder there.
    fn records(&mut self, report: &Report) {
        if report.files.is_empty() {
            return;
        }
        self.heading(self.level, RECORDS);
        let count = plural(report.files.len() as u64, "file");
        self.add(format_args!(
            "<details>\n<summary>{count} beside this page, of which it is made</summary>\n<ul class=\"files\">\n"
        ));
        let folder = if self.part.is_empty() { String::new() } else { format!("{}/", self.part) };
        for file in &report.files {
            let (target, name) = (escaped(&format!("{folder}{file}")), escaped(file));
            self.add(format_args!("<li><a href=\"{target}\">{name}</a></li>\n"));
        }
        self.add(format_args!("</ul>\n</details>\n"));
    }
}

/// Whether a section has a heading on the page.
fn is_headed(layout: Layout, section: &Section) -> bool {
    let has_blocks = section.shown(Medium::Page).next().is_some();
    !section.heading.is_empty() && (has_blocks || layout == Layout::Nested)
}

/// The headings of a report's sections, with that of its records.
fn headings(report: &Report) -> Vec<&str> {
    let of_sections = report.sections.iter().filter(|section| is_headed(report.layout, section));
    let records = (!report.files.is_empty()).then_some(RECORDS);
    of_sections.map(|section| section.heading.as_str()).chain(records).collect()
}

/// Text that stands for itself in HTML or SVG, in an element or a quoted attribute.
#[must_use]
pub fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}
