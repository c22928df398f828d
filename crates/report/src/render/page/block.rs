//! Paragraphs, lists, tables and pictures as HTML.

use std::fmt;

use super::anchor::{csv_link, slug, within};
use super::{Page, escaped};
use crate::render::plot::{NARROW, WIDE};
use crate::render::text::lines_as_they_are as lines;
use crate::render::{
    ABSENT, Block, Drawing, Heading, Key, Layout, Link, Mark, Medium, Prose, Row, Table, Tone, Weight, csv,
};
use crate::units::{plural, typeset, typeset_prose};

/// The cell for a missing value.
const DASH: &str = "\u{2013}";
/// A longer table, or list of terms, of a report with several is folded.
const ROWS_MAX: usize = 12;
/// So many layers of a picture the style sheet can hide.
const LAYER_COUNT: usize = 12;
/// Figures of a larger picture are not on the page.
const DATA_ROWS_MAX: usize = 5_000;

impl Page {
    pub(super) fn block(&mut self, layout: Layout, block: &Block) {
        match block {
            Block::Paragraph(prose, tone) => {
                self.add(format_args!("<p{}>{}</p>\n", class(*tone), markup(prose)));
            }
            Block::Details(name, sentences) => self.folded(Some(name), |page| {
                sentences.iter().for_each(|prose| page.add(format_args!("<p>{}</p>\n", markup(prose))));
            }),
            Block::List(items) => self.list("", items.iter().map(|item| (item, Tone::Plain))),
            Block::Findings(items) => {
                self.list(" class=\"findings\"", items.iter().map(|(item, tone)| (item, *tone)));
            }
            Block::Terms(terms) => self.terms(terms),
            Block::Label(_) => {}
            Block::Table(table) => self.table(layout, table),
            Block::Shown { name, svg, words } => self.shown(name, svg.as_deref(), words),
            Block::Figure { drawing, caption, otherwise } => {
                if let (false, Some(otherwise)) = (self.figure(&**drawing, caption), otherwise) {
                    self.add(format_args!("<p>{}</p>\n", escaped(otherwise)));
                }
            }
        }
    }

    /// What is shown when it is asked for, under a name; without a name it is shown at once.
    fn folded(&mut self, name: Option<&str>, write: impl FnOnce(&mut Self)) {
        if let Some(name) = name {
            self.add(format_args!("<details>\n<summary>{}</summary>\n", escaped(name)));
        }
        write(self);
        if name.is_some() {
            self.add(format_args!("</details>\n"));
        }
    }

    /// A picture and its words, each in a box that scrolls where the page is too narrow.
    fn shown(&mut self, name: &str, svg: Option<&str>, words: &str) {
        self.folded(Some(name), |page| {
            let name = escaped(name);
            if let Some(svg) = svg {
                page.add(format_args!(
                    "<div class=\"scroll\" role=\"group\" aria-label=\"{name}, as a picture\" tabindex=\"0\">\n\
                     {svg}</div>\n"
                ));
            }
            let words = escaped(&lines(words));
            page.add(format_args!(
                "<div class=\"scroll\" role=\"group\" aria-label=\"{name}, in words\" tabindex=\"0\">\n<pre>{words}\
                 </pre>\n</div>\n"
            ));
        });
    }

    fn list<'a>(&mut self, attribute: &str, items: impl Iterator<Item = (&'a Prose, Tone)>) {
        self.add(format_args!("<ul{attribute}>\n"));
        for (item, tone) in items {
            self.add(format_args!("<li{}>{}</li>\n", class(tone), markup(item)));
        }
        self.add(format_args!("</ul>\n"));
    }

    fn terms(&mut self, terms: &[(String, Prose)]) {
        let count = (terms.len() > ROWS_MAX).then(|| plural(terms.len() as u64, "statement"));
        self.folded(count.as_deref(), |page| {
            page.add(format_args!("<dl>\n"));
            for (term, meaning) in terms {
                let term = Prose::from(term.as_str());
                page.add(format_args!("<dt>{}</dt>\n<dd>{}</dd>\n", markup(&term), markup(meaning)));
            }
            page.add(format_args!("</dl>\n"));
        });
    }

    fn table(&mut self, layout: Layout, table: &Table) {
        let is_nested = layout == Layout::Nested;
        if is_nested {
            self.heading(self.table_level, &table.name);
        }
        let count = table.rows.len();
        let count = (is_nested && count > ROWS_MAX && !table.is_open).then(|| plural(count as u64, "row"));
        self.folded(count.as_deref(), |page| page.rows(table));
        for note in &table.notes {
            self.add(format_args!("<p>{}</p>\n", markup(&Prose::from(note.as_str()))));
        }
        self.csv(&table.name, table, format_args!(""));
    }

    /// The figures of a table or a picture as a file that is inside of the page.
    fn csv(&mut self, name: &str, table: &Table, before: fmt::Arguments<'_>) {
        if !self.has_links {
            return;
        }
        let (file, link) = (slug(name), escaped(&csv_link(&csv::lines(table))));
        let name = escaped(name);
        self.add(format_args!(
            "<p class=\"csv\">{before}<a download=\"{file}.csv\" href=\"{link}\" aria-label=\"{name} as CSV\">CSV</a>\
             </p>\n"
        ));
    }

    /// A table in a box of its own, which scrolls where the page is too narrow. Columns of words start on the left,
    /// the others hold numbers.
    fn rows(&mut self, table: &Table) {
        let name = escaped(&table.name);
        let shown = table.shown(Medium::Page);
        let class = |index: usize| if table.columns[index].is_word { " class=\"word\"" } else { "" };
        let open = if table.is_open { " open" } else { "" };
        self.add(format_args!(
            "<div class=\"scroll{open}\" role=\"group\" aria-label=\"{name}\" tabindex=\"0\">\n"
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
                let (class, cell) = (class(index), cell(row, index, table.columns[index].is_word));
                match (position, &row.link) {
                    (0, Some(link)) => {
                        let target = self.target(link);
                        self.add(format_args!(
                            "<th scope=\"row\"{class}><a href=\"#{target}\">{cell}</a></th>"
                        ));
                    }
                    (0, None) => self.add(format_args!("<th scope=\"row\"{class}>{cell}</th>")),
                    _ if row.warned.contains(&index) => {
                        self.add(format_args!("<td class=\"word warning\">{cell}</td>"));
                    }
                    _ => self.add(format_args!("<td{class}>{cell}</td>")),
                }
            }
            self.add(format_args!("</tr>\n"));
        }
        self.add(format_args!("</tbody>\n</table>\n</div>\n"));
    }

    /// The name of the place to which a link leads.
    fn target(&self, link: &Link) -> String {
        within(link.part.unwrap_or(self.part), &link.heading)
    }

    /// A picture in both sizes below its legend, whose boxes hide layers; whether there was anything to draw.
    fn figure(&mut self, drawing: &dyn Drawing, caption: &str) -> bool {
        let [Some(wide), Some(narrow)] = [WIDE, NARROW].map(|size| drawing.svg(size)) else {
            return false;
        };
        self.add(format_args!("<figure>\n<ul class=\"legend\">\n"));
        let keys = drawing.legend();
        let can_hide = keys.iter().filter(|key| key.layer.is_some()).count() > 1;
        for Key { layer, swatch, name } in keys {
            let name = escaped(&name);
            match layer.filter(|layer| can_hide && *layer < LAYER_COUNT) {
                Some(layer) => self.add(format_args!(
                    "<li><label><input type=\"checkbox\" class=\"choice choice-{layer}\" checked />{swatch}\
                     <span>{name}</span></label></li>\n"
                )),
                None => self.add(format_args!("<li>{swatch}<span>{name}</span></li>\n")),
            }
        }
        let caption = markup(&Prose::from(caption));
        self.add(format_args!("</ul>\n{wide}{narrow}<figcaption>{caption}</figcaption>\n"));
        let data = drawing.data();
        if data.rows.len() <= DATA_ROWS_MAX {
            let name = data.name.clone();
            self.csv(&name, &data, format_args!("What is drawn: "));
        }
        self.add(format_args!("</figure>\n"));
        true
    }
}

/// A cell as markup.
fn cell(row: &Row, index: usize, is_word: bool) -> String {
    let cell = row.cells.get(index).map_or("", String::as_str);
    escaped(&match is_word {
        true => typeset_prose(cell),
        false if cell == ABSENT => DASH.to_owned(),
        // Text in parentheses is not part of the number.
        false => typeset(cell).replace("\u{a0}(", " ("),
    })
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
