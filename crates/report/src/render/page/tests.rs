//! What holds of every page, and what is in which place.

use super::*;
use crate::render::{Block, Count, Dots, Link, Marker, Report, Section, Series, Table, Tone, Value, csv};

const HOSTILE: &str = "<script>alert('x')</script>\"&";

/// Fails if a page is not whole, or has as markup what the records of tests have as text.
#[track_caller]
pub(crate) fn assert_escaped(page: &str) {
    assert_whole(page);
    assert!(!page.contains("<b>") && !page.contains("<script") && !page.contains("<i>"));
    assert!(page.contains("A &lt;b&gt;processor") && page.contains("&lt;script&gt;"));
}

/// Fails unless a page has two figures in two sizes, with three marks in each legend.
#[track_caller]
pub(crate) fn assert_two_figures(page: &str) {
    assert_eq!(page.matches("<figure>").count(), 2);
    assert_eq!(page.matches("class=\"plot ").count(), 4);
    assert_eq!(page.matches("class=\"swatch\"").count(), 6);
}

/// Fails if one of the elements of a page is opened and not closed, or the other way round; if a link leads nowhere, or
/// a place is there twice; if a mark of a picture says no figure; or if a table or a picture has no CSV that reads back
/// as its cells.
#[track_caller]
pub(crate) fn assert_whole(page: &str) {
    const ELEMENTS: [&str; 26] = [
        "p", "table", "div", "figure", "ul", "li", "svg", "dl", "dt", "dd", "td", "th", "tr", "text", "h2",
        "h3", "h4", "section", "nav", "details", "summary", "label", "g", "a", "title", "main",
    ];
    for element in ELEMENTS {
        let count = |text: String| page.matches(&text).count();
        let opened = count(format!("<{element}>")) + count(format!("<{element} "));
        assert_eq!(opened, count(format!("</{element}>")), "{element}");
    }
    let of = |start: &str| -> Vec<String> {
        let rest = page.split(start).skip(1);
        rest.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let names = of(" id=\"");
    for (index, name) in names.iter().enumerate() {
        assert!(!names[..index].contains(name), "{name} is there twice");
    }
    for target in of("href=\"#") {
        assert!(names.contains(&target), "nothing is called {target}");
    }
    page.split("<svg class=\"plot").skip(1).for_each(|rest| {
        assert_titled(rest.split("</svg>").next().unwrap());
    });
    if !names.is_empty() {
        assert_csv(page);
    }
}

/// Fails unless each mark of a picture says what it is of, itself or with others in a group.
#[track_caller]
pub(crate) fn assert_titled(svg: &str) {
    let (mut groups, mut is_titled) = (0, false);
    let tags: Vec<&str> = svg.split('<').skip(1).collect();
    for (index, tag) in tags.iter().enumerate() {
        let next = tags.get(index + 1).is_some_and(|next| next.starts_with("title>"));
        if tag.starts_with("g ") {
            (groups, is_titled) = (groups + 1, next);
        } else if tag.starts_with("/g>") {
            (groups, is_titled) = (groups - 1, false);
        }
        let class = tag.split("class=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("");
        let is_mark =
            class.split(' ').any(|class| ["series", "dot", "cross", "bar", "whisker"].contains(&class));
        assert!(!is_mark || next || is_titled, "<{tag} says nothing");
    }
    assert_eq!(groups, 0);
}

/// Octets of a percent-encoded link.
fn decoded(link: &str) -> String {
    let (mut octets, mut rest) = (Vec::new(), link.bytes());
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            octet => octet,
        });
    }
    String::from_utf8(octets).unwrap()
}

/// The cells of a CSV file, line by line.
fn cells(csv: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut cell, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut rest = csv.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '"' if is_quoted && rest.peek() == Some(&'"') => cell.push(rest.next().unwrap()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => line.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                line.push(std::mem::take(&mut cell));
                lines.push(std::mem::take(&mut line));
            }
            char => cell.push(char),
        }
    }
    lines
}

/// The CSV files of a page, in their order.
fn files(page: &str) -> Vec<Vec<Vec<String>>> {
    let links = page.split("href=\"data:text/csv;charset=utf-8,").skip(1);
    links.map(|rest| cells(&decoded(rest.split('"').next().unwrap()))).collect()
}

/// Each table and picture has a file whose lines are as long as its heading.
#[track_caller]
fn assert_csv(page: &str) {
    let files = files(page);
    assert_eq!(files.len(), page.matches("<table>").count() + page.matches("<figure>").count());
    for file in files {
        assert!(file.iter().all(|line| line.len() == file[0].len()), "{file:?}");
    }
}

fn part(title: &str) -> Report {
    let sections = vec![Section::of(HOSTILE, [Block::paragraph("words")])];
    Report::new(title, Layout::Nested, sections)
}

fn table(name: &str, rows: usize) -> Table {
    let table = Table::of(name, 0..rows).words("what", |row| format!("{HOSTILE}, {row}"));
    table.number("so, many", |row| row * 1000).table()
}

fn dots() -> Dots {
    let series = |name: &str, colour| Series {
        name: name.to_owned(),
        marker: Marker::Circle,
        colour,
        values: vec![Value::of(vec![1.0, 2.0], vec![3.0])],
    };
    Dots {
        label: HOSTILE.to_owned(),
        along: "along",
        count: Count::Rate,
        names: vec![HOSTILE.to_owned()],
        series: vec![series("first", 0), series(HOSTILE, 1)],
    }
}

fn page_of(blocks: impl IntoIterator<Item = Block>) -> String {
    Report::new("One", Layout::Nested, vec![Section::of("Only", blocks)]).page()
}

#[test]
fn joined_reports_are_linked_and_their_headings_are_a_level_lower() {
    let link = Link { part: Some("two"), heading: HOSTILE.to_owned() };
    let linking = Table::of("Links", [()]).linked(|()| link.clone()).words("where", |()| HOSTILE).table();
    let front = Section::of("Front", [Block::Table(linking)]);
    let front = Report::new("", Layout::Nested, vec![front]);
    let second = part(HOSTILE).beside(["study.json".to_owned(), "run-1.json".to_owned()]);
    let page = joined("All", &front, &[("one", part("First")), ("two", second)]);
    assert_whole(&page);
    assert!(page.find("<h2 id=\"front\">Front").unwrap() < page.find("<nav").unwrap());
    assert!(page.contains("<a href=\"#one\">First</a>") && page.contains("<section id=\"one\""));
    assert_eq!([page.matches("<h1>").count(), page.matches("<h2").count()], [1, 3]);
    assert_eq!(page.matches(">&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;</h3>").count(), 2);
    assert!(page.contains("<a href=\"#two-script-alert-x-script\">&lt;script&gt;"), "{page}");
    assert!(page.contains("<a href=\"two/run-1.json\">run-1.json</a>"), "{page}");
    assert!(!page.contains("<script"));
}

#[test]
fn text_is_escaped_and_otherwise_kept() {
    assert_eq!(escaped(HOSTILE), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;");
    assert_eq!(escaped("no µ special"), "no µ special");
    assert_eq!(escaped(""), "");
}

#[test]
fn csv_of_a_table_reads_back_as_its_cells() {
    let table = table("Many", 3);
    let page = page_of([Block::Table(table.clone())]);
    assert_whole(&page);
    let [file] = &files(&page)[..] else { panic!("{page}") };
    assert_eq!(file[0], ["what", "so, many"]);
    let rows: Vec<&Vec<String>> = table.rows.iter().map(|row| &row.cells).collect();
    assert_eq!(file[1..].iter().collect::<Vec<_>>(), rows);
    assert_eq!(cells(&csv::lines(&table)), *file);
    assert!(page.contains("download=\"many.csv\" href=\"data:"), "{page}");
}

#[test]
fn long_tables_and_methods_are_folded_and_short_ones_are_not() {
    let folded = |block| page_of([block]).matches("<details>").count();
    assert_eq!([12, 13].map(|rows| folded(Block::Table(table("Many", rows)))), [0, 1]);
    let mut section = Section::new("Method");
    section.fold("How it was measured", [HOSTILE]);
    section.fold("Nothing", [""; 0]);
    assert_eq!(section.sentences(), [HOSTILE]);
    let page = Report::new("One", Layout::Nested, vec![section]).page();
    assert!(page.contains("<details>\n<summary>How it was measured</summary>\n<p>&lt;script"), "{page}");
    assert!(!page.contains("Nothing"));
    let terms =
        |count: usize| Block::Terms((0..count).map(|_| (HOSTILE.to_owned(), HOSTILE.into())).collect());
    assert_eq!([12, 13].map(|count| folded(terms(count))), [0, 1]);
}

#[test]
fn series_can_be_hidden_without_a_script() {
    let page = page_of([Block::figure(dots(), HOSTILE)]);
    assert_whole(&page);
    for layer in [0, 1] {
        assert_eq!(page.matches(&format!("class=\"choice choice-{layer}\" checked />")).count(), 1);
        // In both sizes.
        assert_eq!(page.matches(&format!("<g class=\"layer-{layer}\">")).count(), 2);
        assert!(
            page.contains(&format!(".choice-{layer}:not(:checked)) .layer-{layer},")),
            "no rule of {layer}"
        );
    }
    let mut single = dots();
    single.series.truncate(1);
    assert!(!page_of([Block::figure(single, "One.")]).contains("type=\"checkbox\""));
    assert!(!page.contains("<script"));
}

#[test]
fn contents_link_to_each_section_of_a_long_report() {
    let sections = |count: usize| {
        let of = |number: usize| Section::of(&format!("Part {number}"), [Block::paragraph("words")]);
        let opening = Section::of("", [Block::Paragraph("words".into(), Tone::Lead)]);
        Report::new("One", Layout::Nested, std::iter::once(opening).chain((0..count).map(of)).collect())
    };
    assert!(!sections(3).page().contains("<nav"));
    let page = sections(3).beside(["study.json".to_owned()]).page();
    assert_whole(&page);
    assert!(page.contains("<li><a href=\"#part-2\">Part 2</a></li>") && page.contains("#records\">Records<"));
    assert!(page.find("<nav").unwrap() < page.find("<h2").unwrap());
    assert!(page.contains("<li><a href=\"study.json\">study.json</a></li>"), "{page}");
}

/// The luminance of a colour `#rrggbb`, by WCAG 2.2.
fn luminance(colour: &str) -> f64 {
    let of = |place: usize| {
        let value = f64::from(u8::from_str_radix(&colour[place..place + 2], 16).unwrap()) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * of(1) + 0.7152 * of(3) + 0.0722 * of(5)
}

#[test]
fn colours_of_text_and_marks_have_a_contrast_of_four_and_a_half_in_light_and_dark() {
    let [_, light, dark] = style(Layout::Nested).split(":root {").collect::<Vec<_>>()[..3] else { panic!() };
    for sheet in [light, dark] {
        let colour = |name: &str| {
            let rest = sheet.split(&format!("--{name}: ")).nth(1).unwrap_or_else(|| panic!("no {name}"));
            luminance(rest.split(';').next().unwrap())
        };
        let series = (0..6).map(|number| format!("series-{number}"));
        for name in ["ink", "faint-ink", "focus"].map(str::to_owned).into_iter().chain(series) {
            for behind in ["paper", "panel"].map(colour) {
                let (low, high) = (colour(&name).min(behind), colour(&name).max(behind));
                let contrast = (high + 0.05) / (low + 0.05);
                assert!(contrast >= 4.5, "{name}: {contrast:.2}");
            }
        }
    }
}
