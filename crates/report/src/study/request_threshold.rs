//! Spectracom's test of the request threshold beside ours: Tables 1 and 2 and the third result of its technical note
//! "NTP Server Capacity Testing".
//!
//! Shapes are compared: each row as a share of the most in its table. Absolute figures of other hardware are shown and
//! not compared. For each row of ours it is said what limited it, as a host that cannot offer more is its own limit:
//! the note found out about its Table 1 only by Table 2.

use std::borrow::Cow;

use crate::chart::{Chart, Line, Point, Unit, cross_swatch, diagonal_swatch, swatch};
use crate::columns::{aligned, printable};
use crate::load::compare::{Comparison, against};
use crate::load::{LOAD_STYLE, LoadRecord, Step, words};
use crate::page::{Escaped, Page, Row};
use crate::plot::{NARROW, WIDE};
use crate::published::request_threshold::{
    EARLIER_RPS, HOSTS, SOURCE, TABLE_1, TABLE_2, UPDATED_RPS, updated_ratio,
};
use crate::units::{count, microseconds, percent, rate, ratio, utc};

const TITLE: &str = "The request threshold, beside Spectracom\u{2019}s";
/// Unanswered shares above this one are a limit that was reached.
const LOSS_MAX: f64 = 0.01;
const NOTHING: &str = "";

const HEADINGS_1: [&str; 8] = [
    "Published: specified/s",
    "Seconds",
    "Serviced/s",
    "Of the most",
    "Ours: specified/s",
    "Seconds",
    "Serviced/s",
    "Of the most",
];
const LIMIT: &str = "What limited ours";

/// A step of ours as a row, and what it is compared by.
struct Ours<'a> {
    step: &'a Step,
    /// Answers a second as a share of the most in the table.
    share: f64,
}

fn ours(records: &[LoadRecord]) -> Vec<Ours<'_>> {
    let steps: Vec<&Step> = records.iter().flat_map(|record| &record.steps).collect();
    let most = steps.iter().map(|step| step.answered_rps()).fold(0.0, f64::max);
    let share = |step: &Step| if most > 0.0 { step.answered_rps() / most } else { 0.0 };
    steps.into_iter().map(|step| Ours { step, share: share(step) }).collect()
}

/// Why a host did not do its part, without the remedy that follows in a record: the row is there to show the limit.
fn reason(why: Option<&String>) -> &str {
    let text = words::why(why);
    text.split_once("; ").map_or(text, |(reason, _)| reason)
}

/// What kept a row from being higher.
fn limit(step: &Step) -> String {
    let hosts: Vec<_> = step.hosts.iter().filter(|part| !part.valid).collect();
    let unanswered = step.tally.loss_ratio();
    match hosts[..] {
        [] if !step.valid => format!("the host is its own limit: {}", reason(step.why_invalid.as_ref())),
        [] if unanswered > LOSS_MAX => {
            format!("the server or the path: {} % had no good answer", percent(unanswered))
        }
        [] => "nothing: what was specified was serviced".to_owned(),
        [part] => format!("{} is its own limit: {}", part.name, reason(part.why_invalid.as_ref())),
        [..] => {
            // The record has the details of each; what they have in common stands before the colon.
            let kinds: Vec<&str> = hosts
                .iter()
                .map(|part| reason(part.why_invalid.as_ref()))
                .map(|reason| reason.split_once(':').map_or(reason, |(kind, _)| kind))
                .collect();
            let names: Vec<&str> = hosts.iter().map(|part| part.name.as_str()).collect();
            match kinds.iter().all(|kind| *kind == kinds[0]) {
                true => format!("{} are their own limits: {}", names.join(", "), kinds[0]),
                false => names
                    .iter()
                    .zip(&kinds)
                    .map(|(name, kind)| format!("{name} is its own limit: {kind}"))
                    .collect::<Vec<_>>()
                    .join("; "),
            }
        }
    }
}

/// `94 %`.
fn share(value: f64) -> String {
    format!("{:.0} %", value * 100.0)
}

/// Both Tables 1, row beside row; the last column of words is the limit. Rows whose step is invalid are marked.
fn rows_1(single: &[LoadRecord]) -> Vec<(bool, Vec<String>)> {
    let ours = ours(single);
    let most = TABLE_1.iter().map(|row| row.serviced_rps).max().expect("the table has rows");
    let row = |index: usize| {
        let mut cells = match TABLE_1.get(index) {
            Some(row) => vec![
                count(row.requested_rps.into()),
                row.seconds.to_string(),
                count(row.serviced_rps.into()),
                share(f64::from(row.serviced_rps) / f64::from(most)),
            ],
            None => vec![NOTHING.to_owned(); 4],
        };
        let ours = ours.get(index);
        match ours {
            Some(ours) => cells.extend([
                ours.step.offered_rps.map_or_else(String::new, rate),
                ours.step.seconds.to_string(),
                rate(ours.step.answered_rps()),
                share(ours.share),
                limit(ours.step),
            ]),
            None => cells.extend([NOTHING; 5].map(str::to_owned)),
        }
        (ours.is_none_or(|ours| ours.step.valid), cells)
    };
    (0..TABLE_1.len().max(ours.len())).map(row).collect()
}

/// The published Table 2.
fn published_2() -> (Vec<String>, Vec<Vec<String>>) {
    let mut headings = vec!["Specified/s, each host".to_owned(), "Seconds".to_owned()];
    headings.extend(HOSTS.map(str::to_owned));
    headings.extend(["Total".to_owned(), "Of the most".to_owned()]);
    let most = TABLE_2.iter().map(|row| row.total_rps).max().expect("the table has rows");
    let rows = TABLE_2.iter().map(|row| {
        let total = f64::from(row.total_rps);
        let mut cells = vec![count(row.requested_rps.into()), row.seconds.to_string()];
        cells.extend(row.serviced_rps.map(|rps| with_share(f64::from(rps), total)));
        cells.extend([count(row.total_rps.into()), share(total / f64::from(most))]);
        cells
    });
    (headings, rows.collect())
}

/// Our Table 2: a row for each step, a column for each host that took part in any.
fn ours_2(several: &[LoadRecord]) -> (Vec<String>, Vec<(bool, Vec<String>)>) {
    let rows = ours(several);
    let mut hosts: Vec<&str> = Vec::new();
    for part in rows.iter().flat_map(|row| &row.step.hosts) {
        if !hosts.contains(&part.name.as_str()) {
            hosts.push(&part.name);
        }
    }
    let mut headings = vec!["Specified/s, each host".to_owned(), "Seconds".to_owned()];
    headings.extend(hosts.iter().map(ToString::to_string));
    headings.extend(["Total", "Of the most", "Start skew", LIMIT].map(str::to_owned));
    let cells = |row: &Ours<'_>| {
        let step = row.step;
        let host_count = step.hosts.len().max(1) as f64;
        let total = step.answered_rps();
        let mut cells = vec![
            step.offered_rps.map_or_else(String::new, |offered| rate(offered / host_count)),
            step.seconds.to_string(),
        ];
        cells.extend(hosts.iter().map(|host| {
            let part = step.hosts.iter().find(|part| part.name == *host);
            part.map_or_else(String::new, |part| with_share(step.per_second(part.tally.answered), total))
        }));
        cells.extend([rate(total), share(row.share), start_skew(step), limit(step)]);
        (step.valid, cells)
    };
    (headings, rows.iter().map(cells).collect())
}

/// How far from the common instant the host began that was furthest from it, at worst.
fn start_skew(step: &Step) -> String {
    let worst = step.hosts.iter().map(|part| part.start_skew_us.abs() + part.start_skew_error_us);
    worst.reduce(f64::max).map_or_else(String::new, |us| format!("\u{2264} {}", microseconds(us)))
}

/// `2,452 (25 %)`.
fn with_share(rps: f64, total: f64) -> String {
    match total > 0.0 {
        true => format!("{} ({})", rate(rps), share(rps / total)),
        false => rate(rps),
    }
}

/// What is to be said beside the tables: sentences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remarks {
    /// On the whole study.
    pub study: Vec<String>,
    /// On our Table 2.
    pub several_hosts: Vec<String>,
    /// On the two configurations.
    pub configurations: Vec<String>,
    /// Processors that the server had in both configurations; `None` if nobody knows.
    pub processors: Option<f64>,
}

/// The third result in words: the published one, and ours.
fn third(comparison: Option<&Comparison>) -> [String; 2] {
    let published = format!(
        "Published: an earlier configuration serviced up to {}/s, an updated one about {}/s, a ratio of {}.",
        count(EARLIER_RPS.into()),
        count(UPDATED_RPS.into()),
        ratio(updated_ratio())
    );
    let ours = match comparison {
        Some(comparison) => format!("Ours: {}", comparison.finding()),
        None => "Ours: two configurations were not measured.".to_owned(),
    };
    [published, ours]
}

/// What the server's process needed for a request under both configurations, and whether the ratio of rates tells of
/// the server at all. `processors`: how many the server had; `None` if nobody knows.
fn third_in_detail(old: &LoadRecord, new: &LoadRecord, processors: Option<f64>) -> Vec<String> {
    // A server that uses less of what it has is not at its limit.
    const BUSY: f64 = 0.8;
    let best = [old, new].map(LoadRecord::highest_answered);
    let mut sentences = Vec::new();
    let times = best.map(|step| step?.server?.cpu_us_per_request);
    if let [Some(new_us), Some(old_us)] = [times[1], times[0]]
        && old_us > 0.0
    {
        sentences.push(format!(
            "Processor time of the server for a request: {} against {}, a ratio of {}.",
            microseconds(new_us),
            microseconds(old_us),
            ratio(new_us / old_us)
        ));
    }
    for (name, step) in ["earlier", "updated"].into_iter().zip(best) {
        let (Some(step), Some(processors)) = (step, processors) else { continue };
        let available_seconds = step.seconds * processors;
        let share =
            step.server.filter(|_| available_seconds > 0.0).map(|used| used.cpu_seconds / available_seconds);
        if let Some(share) = share.filter(|&share| share < BUSY) {
            sentences.push(format!(
                "With the {name} configuration the server used {} % of the processor time that it had: something else \
                 was the limit, and the ratio says less than the processor time.",
                percent(share)
            ));
        }
    }
    sentences
}

/// The study for a terminal. `single`: runs from one host, `several`: from several, `old_new`: the same server in an
/// earlier and an updated configuration.
#[must_use]
pub fn text(
    single: &[LoadRecord],
    several: &[LoadRecord],
    old_new: Option<(&LoadRecord, &LoadRecord)>,
    remarks: &Remarks,
) -> String {
    type Cells = Vec<Cow<'static, str>>;
    let cells = |cells: Vec<String>| -> Cells {
        cells.iter().map(|cell| printable(cell).into_owned().into()).collect()
    };
    let mut out = format!("{SOURCE}, beside ours. Compare the shares, not the figures.\n");
    let say = |out: &mut String, sentences: &[String]| {
        for sentence in sentences {
            out.push_str(&printable(sentence));
            out.push('\n');
        }
    };
    say(&mut out, &remarks.study);
    out += "\nTable 1, one host:\n";
    let mut headings: Cells = HEADINGS_1.map(Cow::Borrowed).to_vec();
    headings.push(LIMIT.into());
    let mut lines = vec![headings];
    lines.extend(rows_1(single).into_iter().map(|(_, row)| cells(row)));
    out += &aligned(&lines, |column| column == 8);
    out += "\nTable 2, several hosts, published:\n";
    let (headings, rows) = published_2();
    let mut lines = vec![cells(headings)];
    lines.extend(rows.into_iter().map(cells));
    out += &aligned(&lines, |_| false);
    out += "\nTable 2, several hosts, ours:\n";
    if several.iter().all(|record| record.steps.is_empty()) {
        out += "not measured\n";
    } else {
        let (headings, rows) = ours_2(several);
        let last = headings.len() - 1;
        let mut lines = vec![cells(headings)];
        lines.extend(rows.into_iter().map(|(_, row)| cells(row)));
        out += &aligned(&lines, |column| column == last);
    }
    say(&mut out, &remarks.several_hosts);
    out += "\nTwo configurations:\n";
    let comparison = old_new.map(|(old, new)| against(new, old));
    say(&mut out, &third(comparison.as_ref()));
    say(&mut out, &remarks.configurations);
    say(&mut out, &old_new.map_or_else(Vec::new, |(old, new)| third_in_detail(old, new, remarks.processors)));
    for difference in comparison.iter().flat_map(|comparison| &comparison.differences) {
        out += &printable(&format!("differs: {difference}"));
        out.push('\n');
    }
    out
}

/// The study as a page that needs nothing else; arguments as of [`text`].
#[must_use]
pub fn page(
    single: &[LoadRecord],
    several: &[LoadRecord],
    old_new: Option<(&LoadRecord, &LoadRecord)>,
    remarks: &Remarks,
) -> String {
    let mut page = Page::new(TITLE, LOAD_STYLE);
    opening(&mut page, single, several, &remarks.study);
    page.heading("Table 1: one host");
    shapes(&mut page, single);
    let mut headings = HEADINGS_1.to_vec();
    headings.push(LIMIT);
    page.rows("Table 1", &headings, |column| column == 8, rows_1(single).into_iter().map(marked_right));
    page.add(format_args!(
        "<p>The note\u{2019}s host was its own limit, which it found out by taking several.</p>\n"
    ));
    page.heading("Table 2: several hosts");
    page.add(format_args!("<p>Published:</p>\n"));
    let (headings, rows) = published_2();
    let escaped = |headings: Vec<String>| -> Vec<String> {
        headings.iter().map(|heading| Escaped(heading).to_string()).collect()
    };
    let headings = escaped(headings);
    let borrowed: Vec<&str> = headings.iter().map(String::as_str).collect();
    page.table("Table 2, published", &borrowed, |_| false, rows.into_iter());
    if several.iter().all(|record| record.steps.is_empty()) {
        page.add(format_args!("<p>Ours: not measured.</p>\n"));
    } else {
        page.add(format_args!("<p>Ours, with each host\u{2019}s share of its row:</p>\n"));
        let (headings, rows) = ours_2(several);
        let headings = escaped(headings);
        let borrowed: Vec<&str> = headings.iter().map(String::as_str).collect();
        let last = borrowed.len() - 1;
        page.rows("Table 2, ours", &borrowed, |column| column == last, rows.into_iter().map(marked));
    }
    sentences(&mut page, &remarks.several_hosts);
    page.heading("Two configurations");
    let comparison = old_new.map(|(old, new)| against(new, old));
    sentences(&mut page, &third(comparison.as_ref()));
    sentences(&mut page, &remarks.configurations);
    sentences(
        &mut page,
        &old_new.map_or_else(Vec::new, |(old, new)| third_in_detail(old, new, remarks.processors)),
    );
    let differences = comparison.map(|comparison| comparison.differences).unwrap_or_default();
    if !differences.is_empty() {
        page.add(format_args!("<p>What is not alike:</p>\n<ul>\n"));
        for difference in differences {
            page.add(format_args!("<li>{}</li>\n", Escaped(&difference)));
        }
        page.add(format_args!("</ul>\n"));
    }
    page.finish()
}

/// A paragraph for each.
fn sentences(page: &mut Page, sentences: &[String]) {
    for sentence in sentences {
        page.add(format_args!("<p>{}</p>\n", Escaped(sentence)));
    }
}

/// A row that says nothing about the server looks different.
fn marked((valid, cells): (bool, Vec<String>)) -> Row {
    Row { class: if valid { "" } else { "void" }, cells }
}

/// The same where the published half of the row stands on the left.
fn marked_right((valid, cells): (bool, Vec<String>)) -> Row {
    Row { class: if valid { "" } else { "void-right" }, cells }
}

/// What stands beside what, and where ours comes from.
fn opening(page: &mut Page, single: &[LoadRecord], several: &[LoadRecord], remarks: &[String]) {
    page.add(format_args!(
        "<p>{SOURCE}, tells how many requests a second a time server serviced when more and more were offered. Its \
         hardware is not ours, so shapes are compared: each row as a share of the most in its table.</p>\n"
    ));
    sentences(page, remarks);
    for (name, records) in [("one host", single), ("several hosts", several)] {
        // Runs that differ in nothing but rate and time share a paragraph.
        for (index, record) in records.iter().enumerate() {
            let like = |other: &&LoadRecord| alike(other, record);
            if records[..index].iter().any(|other| like(&other)) {
                continue;
            }
            let run_count = records[index..].iter().filter(like).count();
            let first = match run_count {
                1 => String::new(),
                _ => format!("the first of {run_count} alike: "),
            };
            page.add(format_args!(
                "<p>Ours with {name}: <strong>{}</strong> against <strong>{}</strong> over the path \
                 <strong>{}</strong>, <span class=\"unbroken\">{}</span>, {first}<code>{}</code> (authentick \
                 {}, commit <code>{}</code>) on {}, {}.</p>\n",
                Escaped(&record.label()),
                Escaped(&record.target),
                Escaped(&record.path),
                utc(record.started_unix_s),
                Escaped(&record.command),
                Escaped(&record.version),
                Escaped(&record.commit),
                Escaped(&record.host.cpu),
                Escaped(&record.host.kernel),
            ));
        }
    }
}

/// Whether two runs are of one kind, against one server, by one program on one machine.
fn alike(left: &LoadRecord, right: &LoadRecord) -> bool {
    let what = |record: &LoadRecord| {
        (
            record.label(),
            record.target.clone(),
            record.path.clone(),
            record.version.clone(),
            record.commit.clone(),
        )
    };
    what(left) == what(right) && left.host == right.host && left.parameters.agents == right.parameters.agents
}

/// Table 1 as two lines whose units are the most that each serviced.
fn shapes(page: &mut Page, single: &[LoadRecord]) {
    let most = f64::from(TABLE_1.iter().map(|row| row.serviced_rps).max().expect("the table has rows"));
    let published = TABLE_1.iter().map(|row| Point {
        rate: f64::from(row.requested_rps) / most,
        value: f64::from(row.serviced_rps) / most,
        valid: true,
    });
    let rows = ours(single);
    let unit = rows.iter().map(|row| row.step.answered_rps()).fold(0.0, f64::max);
    let measured = rows.iter().filter(|_| unit > 0.0).map(|row| Point {
        rate: row.step.rate_rps() / unit,
        value: row.share,
        valid: row.step.valid,
    });
    let lines = vec![
        Line { colour: 1, dashes: 1, points: published.collect() },
        Line { colour: 0, dashes: 0, points: measured.collect() },
    ];
    let crosses = lines[1].points.iter().any(|point| !point.valid);
    let chart = Chart {
        label: "Serviced against specified, both as multiples of the most that was serviced; the table has the figures",
        up: "serviced, by the most serviced",
        along: "specified, by the most serviced",
        unit: Unit::Rate,
        has_diagonal: true,
        mark: None,
        lines,
    };
    let [Some(wide), Some(narrow)] = [WIDE, NARROW].map(|size| chart.svg(size)) else { return };
    page.add(format_args!(
        "<figure>\n<ul class=\"legend\">\n<li>{}<span>published</span></li>\n<li>{}<span>ours</span></li>\n\
         <li>{}<span>all that is specified</span></li>\n",
        swatch(1, 1),
        swatch(0, 0),
        diagonal_swatch()
    ));
    if crosses {
        page.add(format_args!("<li>{}<span>the host was its own limit</span></li>\n", cross_swatch()));
    }
    page.add(format_args!(
        "</ul>\n{wide}{narrow}<figcaption>Where a line leaves the dotted one, something is exhausted; the table says \
         what it is in ours.</figcaption>\n</figure>\n"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::ServerUse;
    use crate::load::tests::record;
    use crate::page::assert_whole;

    fn alone() -> LoadRecord {
        let mut record = record();
        record.steps.iter_mut().for_each(|step| step.hosts.clear());
        record
    }

    fn line<'a>(text: &'a str, part: &str) -> &'a str {
        text.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part} is not in\n{text}"))
    }

    #[test]
    fn rows_are_shares_of_the_most_in_their_table() {
        let text = text(&[alone()], &[record()], None, &Remarks::default());
        // 2,371 of 4,484 beside 2,000 of 3,425.
        let row: Vec<&str> = line(&text, "2,371").split_whitespace().take(10).collect();
        assert_eq!(row, ["3,000", "60", "2,371", "53", "%", "2,000", "2", "2,000", "58", "%"]);
        // 9,024 of 9,909, and the hosts' shares of it.
        assert!(
            line(&text, "9,024").contains("2,428 (27 %)")
                && line(&text, "9,024").ends_with("9,024         91 %")
        );
        let total = line(&text, "3,425  ");
        assert!(total.contains("100 %"), "{total}");
    }

    #[test]
    fn what_limited_each_row_is_named() {
        let text = text(&[alone()], &[record()], None, &Remarks::default());
        assert!(line(&text, "2,371").ends_with("nothing: what was specified was serviced"));
        assert!(line(&text, "3,548").ends_with("the server or the path: 14.37 % had no good answer"));
        assert!(line(&text, "4,321").contains("the host is its own limit: generator fell behind: 56.3 %"));
        let row = line(&text, "198.18.0.12:4470 is its own limit");
        assert!(row.contains("generator fell behind: 87.5 %") && row.contains("2,750 (92 %)"), "{row}");
    }

    #[test]
    fn several_hosts_that_are_their_own_limits_are_named_once() {
        let mut step = record().steps[3].clone();
        let why =
            "generator fell behind: 1 % of requests left 2.2 ms late or more; offer less, or use more hosts";
        for part in &mut step.hosts {
            (part.valid, part.why_invalid) = (false, Some(why.to_owned()));
        }
        assert_eq!(
            limit(&step),
            "198.18.0.11:4470, 198.18.0.12:4470 are their own limits: generator fell behind"
        );
        step.hosts[0].why_invalid =
            Some("the generator's host refused 3 operations; use more hosts".to_owned());
        assert_eq!(
            limit(&step),
            "198.18.0.11:4470 is its own limit: the generator's host refused 3 operations; 198.18.0.12:4470 is its \
             own limit: generator fell behind"
        );
        step.hosts.truncate(1);
        assert!(limit(&step).ends_with("refused 3 operations"));
    }

    #[test]
    fn third_result_stands_beside_ours() {
        let (old, mut new) = (record(), record());
        new.capacity_rps = Some(2240.0);
        let text = text(&[], &[], Some((&old, &new)), &Remarks::default());
        assert!(text.contains("9,909/s, an updated one about 7,500/s, a ratio of 0.76."), "{text}");
        assert!(
            text.contains("Ours: Capacity: 2,240 against 2,800 requests a second, a ratio of 0.80."),
            "{text}"
        );
        assert!(text.contains("not measured"));
    }

    #[test]
    fn limit_that_is_not_the_servers_is_found_out() {
        let (mut old, mut new) = (record(), record());
        for (record, cpu_us) in [(&mut old, 2.0), (&mut new, 2.5)] {
            let step = &mut record.steps[2];
            let cpu_seconds = step.seconds * 0.09;
            step.server = Some(ServerUse { cpu_seconds, cpu_us_per_request: Some(cpu_us), resident_size: 0 });
        }
        let sentences = |processors| third_in_detail(&old, &new, processors);
        assert_eq!(
            sentences(None),
            ["Processor time of the server for a request: 2.5 us against 2.0 us, a ratio of 1.25."]
        );
        // Nine tenths of a quota are a limit, nine hundredths of a processor are none.
        assert_eq!(sentences(Some(0.1)).len(), 1);
        let idle = sentences(Some(1.0));
        assert!(idle[2].starts_with("With the updated configuration the server used 9.00 %"), "{idle:?}");
        let remarks = Remarks { processors: Some(1.0), ..Remarks::default() };
        assert!(text(&[], &[], Some((&old, &new)), &remarks).contains(&idle[1]));
        assert!(page(&[], &[], Some((&old, &new)), &remarks).contains(&idle[1]));
    }

    #[test]
    fn page_has_both_tables_and_escapes_names() {
        let mut several = record();
        several.steps[3].hosts[1].name = "<b>\"host\"".to_owned();
        let page = page(&[alone()], &[several], Some((&record(), &record())), &Remarks::default());
        for text in
            ["4,484", "9,909", "a ratio of 0.76", "a ratio of 1.00", "&lt;b&gt;&quot;host&quot;", "<figure>"]
        {
            assert!(page.contains(text), "{text}\n{page}");
        }
        assert!(
            !page.contains("<b>")
                && page.contains("<tr class=\"void\">")
                && page.contains("<tr class=\"void-right\">")
        );
        assert_whole(&page);
    }

    #[test]
    fn nothing_measured_is_said() {
        let page = page(&[], &[], None, &Remarks::default());
        assert!(
            page.contains("Ours: not measured.") && page.contains("two configurations were not measured")
        );
        assert!(page.contains("4,484"));
    }
}
