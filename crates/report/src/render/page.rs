//! Sections as one self-contained HTML page: style and pictures are inline, there is no script.
//!
//! Every text goes through [`escaped`]; the page also forbids the browser to load or run anything, should that fail.
//! Colours follow the reader's preference for light or dark.

use std::fmt::{self, Write as _};

use super::plot::{NARROW, WIDE};
use super::{
    ABSENT, Block, Drawing, Heading, Layout, Mark, Medium, Prose, Report, Section, Table, Tone, Weight,
};
use crate::units::{typeset, typeset_prose};

/// The cell for a missing value.
const DASH: &str = "\u{2013}";

const fn style(layout: Layout) -> &'static str {
    match layout {
        Layout::Brief => include_str!("page.css"),
        Layout::Flat => concat!(include_str!("page.css"), include_str!("load.css")),
        Layout::Nested => {
            concat!(include_str!("page.css"), include_str!("load.css"), include_str!("mac.css"))
        }
    }
}

pub(super) fn report(title: &str, layout: Layout, sections: &[Section]) -> String {
    let mut page = Page::begun(title, layout);
    page.sections(layout, sections);
    page.ended()
}

/// Reports one after the other, with contents that link to them. Their headings are a level lower.
pub(super) fn joined(title: &str, front: &Report, parts: &[(&str, Report)]) -> String {
    let mut page = Page::begun(title, Layout::Nested);
    page.sections(front.layout, &front.sections);
    page.add(format_args!("<nav aria-label=\"Contents\">\n<ul>\n"));
    for (id, part) in parts {
        page.add(format_args!("<li><a href=\"#{}\">{}</a></li>\n", escaped(id), escaped(&part.title)));
    }
    page.add(format_args!("</ul>\n</nav>\n"));
    for (id, part) in parts {
        let (id, title) = (escaped(id), escaped(&part.title));
        page.add(format_args!("<section id=\"{id}\" aria-label=\"{title}\">\n<h2>{title}</h2>\n"));
        page.level = 3;
        page.sections(part.layout, &part.sections);
        page.add(format_args!("</section>\n"));
    }
    page.ended()
}

/// A page that grows block by block.
struct Page {
    html: String,
    /// Of headings of sections; those of tables are one lower.
    level: u8,
}

impl Page {
    fn begun(title: &str, layout: Layout) -> Self {
        let (title, style) = (escaped(title), style(layout));
        let mut page = Page { html: String::new(), level: 2 };
        page.add(format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        ));
        page
    }

    fn ended(self) -> String {
        self.html + "</body>\n</html>\n"
    }

    fn sections(&mut self, layout: Layout, sections: &[Section]) {
        for section in sections {
            let mut blocks = section.shown(Medium::Page).peekable();
            if !section.heading.is_empty() && (blocks.peek().is_some() || layout == Layout::Nested) {
                let (level, heading) = (self.level, escaped(&section.heading));
                self.add(format_args!("<h{level}>{heading}</h{level}>\n"));
            }
            blocks.for_each(|block| self.block(layout, block));
        }
    }

    fn add(&mut self, text: fmt::Arguments<'_>) {
        self.html.write_fmt(text).expect("writing to a string cannot fail");
    }

    fn block(&mut self, layout: Layout, block: &Block) {
        match block {
            Block::Paragraph(prose, tone) => {
                self.add(format_args!("<p{}>{}</p>\n", class(*tone), markup(prose)));
            }
            Block::List(items) => self.list("", items.iter().map(|item| (item, Tone::Plain))),
            Block::Findings(items) => {
                self.list(" class=\"findings\"", items.iter().map(|(item, tone)| (item, *tone)));
            }
            Block::Terms(terms) => {
                self.add(format_args!("<dl>\n"));
                for (term, meaning) in terms {
                    let term = Prose::from(term.as_str());
                    self.add(format_args!("<dt>{}</dt>\n<dd>{}</dd>\n", markup(&term), markup(meaning)));
                }
                self.add(format_args!("</dl>\n"));
            }
            Block::Label(_) => {}
            Block::Table(table) => self.table(layout, table),
            Block::Figure { drawing, caption, otherwise } => {
                if let (false, Some(otherwise)) = (self.figure(&**drawing, caption), otherwise) {
                    self.add(format_args!("<p>{}</p>\n", escaped(otherwise)));
                }
            }
        }
    }

    fn list<'a>(&mut self, attribute: &str, items: impl Iterator<Item = (&'a Prose, Tone)>) {
        self.add(format_args!("<ul{attribute}>\n"));
        for (item, tone) in items {
            self.add(format_args!("<li{}>{}</li>\n", class(tone), markup(item)));
        }
        self.add(format_args!("</ul>\n"));
    }

    /// A table in a box of its own, which scrolls where the page is too narrow. Columns of words start on the left,
    /// the others hold numbers.
    fn table(&mut self, layout: Layout, table: &Table) {
        let name = escaped(&table.name);
        if layout == Layout::Nested {
            let level = self.level + 1;
            self.add(format_args!("<h{level}>{name}</h{level}>\n"));
        }
        let shown = table.shown(Medium::Page);
        let class = |index: usize| if table.columns[index].is_word { " class=\"word\"" } else { "" };
        self.add(format_args!(
            "<div class=\"scroll\" role=\"region\" aria-label=\"{name}\" tabindex=\"0\">\n"
        ));
        self.add(format_args!("<table>\n<thead><tr>"));
        for &index in &shown {
            // What a unit or a sign belongs to stays beside it.
            let Heading(heading, _) = &table.columns[index].heading;
            let heading = escaped(heading);
            let heading = heading.replace(" %", "\u{a0}%").replace(" / ", "\u{a0}/\u{a0}");
            self.add(format_args!("<th scope=\"col\"{}>{heading}</th>", class(index)));
        }
        self.add(format_args!("</tr></thead>\n<tbody>\n"));
        for row in &table.rows {
            self.add(format_args!("<tr{}>", row_class(row.weight)));
            for (position, &index) in shown.iter().enumerate() {
                let cell = row.cells.get(index).map_or("", String::as_str);
                let cell = match table.columns[index].is_word {
                    true => typeset_prose(cell),
                    false if cell == ABSENT => DASH.to_owned(),
                    // Text in parentheses is not part of the number.
                    false => typeset(cell).replace("\u{a0}(", " ("),
                };
                let (class, cell) = (class(index), escaped(&cell));
                match position {
                    0 => self.add(format_args!("<th scope=\"row\"{class}>{cell}</th>")),
                    _ => self.add(format_args!("<td{class}>{cell}</td>")),
                }
            }
            self.add(format_args!("</tr>\n"));
        }
        self.add(format_args!("</tbody>\n</table>\n</div>\n"));
        for note in &table.notes {
            self.add(format_args!("<p>{}</p>\n", markup(&Prose::from(note.as_str()))));
        }
    }

    /// A picture in both sizes below its legend; whether there was anything to draw.
    fn figure(&mut self, drawing: &dyn Drawing, caption: &str) -> bool {
        let [Some(wide), Some(narrow)] = [WIDE, NARROW].map(|size| drawing.svg(size)) else {
            return false;
        };
        self.add(format_args!("<figure>\n<ul class=\"legend\">\n"));
        for (swatch, name) in drawing.legend() {
            self.add(format_args!("<li>{swatch}<span>{}</span></li>\n", escaped(&name)));
        }
        let caption = markup(&Prose::from(caption));
        self.add(format_args!("</ul>\n{wide}{narrow}<figcaption>{caption}</figcaption>\n</figure>\n"));
        true
    }
}

const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Warning => " class=\"warning\"",
        Tone::Lead => " class=\"finding\"",
    }
}

const fn row_class(weight: Weight) -> &'static str {
    match weight {
        Weight::Plain => "",
        Weight::Void => " class=\"void\"",
        Weight::VoidRight => " class=\"void-right\"",
        Weight::Total => " class=\"total\"",
        Weight::VoidTotal => " class=\"total void\"",
    }
}

fn markup(prose: &Prose) -> String {
    let mut out = String::new();
    for (mark, text) in &prose.0 {
        let typeset = typeset_prose(text);
        out += &match mark {
            Mark::Plain => escaped(&typeset),
            Mark::Strong => format!("<strong>{}</strong>", escaped(&typeset)),
            Mark::Code => format!("<code>{}</code>", escaped(text)),
            Mark::Unbroken => format!("<span class=\"unbroken\">{}</span>", escaped(text)),
            Mark::Sub => format!("<sub>{}</sub>", escaped(text)),
        };
    }
    out
}

/// Text that stands for itself in HTML, in an element or a quoted attribute.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// Fails if a page is not whole, or has as markup what the records of tests have as text.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_escaped(page: &str) {
    assert_whole(page);
    assert!(!page.contains("<b>") && !page.contains("<script") && !page.contains("<i>"));
    assert!(page.contains("A &lt;b&gt;processor") && page.contains("&lt;script&gt;"));
}

/// Fails unless a page has two figures in two sizes, with three marks in each legend.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_two_figures(page: &str) {
    assert_eq!(page.matches("<figure>").count(), 2);
    assert_eq!(page.matches("class=\"plot ").count(), 4);
    assert_eq!(page.matches("class=\"swatch\"").count(), 6);
}

/// Fails if one of the elements of a page is opened and not closed, or the other way round.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_whole(page: &str) {
    const ELEMENTS: [&str; 19] = [
        "p", "table", "div", "figure", "ul", "li", "svg", "dl", "dt", "dd", "td", "th", "tr", "text", "h2",
        "h3", "h4", "section", "nav",
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
    fn joined_reports_are_linked_and_their_headings_are_a_level_lower() {
        let part = |title: &str| {
            let sections = vec![Section::of(HOSTILE, [Block::paragraph("words")])];
            Report::new(title, Layout::Nested, sections)
        };
        let front = Report::new("", Layout::Nested, vec![Section::of("Front", [Block::paragraph("words")])]);
        let page = joined("All", &front, &[("one", part("First")), ("two", part(HOSTILE))]);
        assert_whole(&page);
        assert!(page.find("<h2>Front").unwrap() < page.find("<nav").unwrap());
        assert!(page.contains("<a href=\"#one\">First</a>") && page.contains("<section id=\"one\""));
        assert_eq!([page.matches("<h1>").count(), page.matches("<h2>").count()], [1, 3]);
        assert_eq!(page.matches("<h3>&lt;script&gt;").count(), 2);
        assert!(!page.contains("<script"));
    }

    #[test]
    fn text_is_escaped_and_otherwise_kept() {
        assert_eq!(escaped(HOSTILE), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;");
        assert_eq!(escaped("no µ special"), "no µ special");
        assert_eq!(escaped(""), "");
    }
}
