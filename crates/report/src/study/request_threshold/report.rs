//! The report on the study of the request threshold.

use super::verdicts::tally;
use super::{Plan, Records, Remarks, tables};
use crate::load::LoadRecord;
use crate::load::compare::{Comparison, against};
use crate::published::request_threshold::{EARLIER_RPS, SOURCE, UPDATED_RPS, updated_ratio};
use crate::render::{Layout, Medium, Prose, Report, Section};
use crate::run::Host;
use crate::stored::Stored;
use crate::units::{count, microseconds, percent, ratio, utc};

/// Headings that verdicts link to.
pub(super) const TABLE_1: &str = "Table 1: one host";
pub(super) const TABLE_2: &str = "Table 2: several hosts";
pub(super) const THIRD: &str = "Two configurations";

const TITLE: &str = "The request threshold, beside Spectracom\u{2019}s";

/// The report on a study.
#[must_use]
pub fn report(plan: &Plan, records: &Records) -> Report {
    Report::new(TITLE, Layout::Flat, sections(plan, records)).tallied(tally(plan, records))
}

/// Both tables and the third result of the note beside ours.
#[must_use]
pub fn sections(plan: &Plan, records: &Records) -> Vec<Section> {
    with(records, &plan.remarks())
}

/// The report on records without a plan, with these remarks.
#[must_use]
pub fn compared(records: &Records, remarks: &Remarks) -> Report {
    Report::new(TITLE, Layout::Flat, with(records, remarks))
}

fn with(records: &Records, remarks: &Remarks) -> Vec<Section> {
    let mut one = Section::new(TABLE_1);
    one.label("Table 1, one host");
    one.add(tables::shapes(&records.one_host));
    one.show([tables::table_1(&records.one_host)]);
    let own = "The note\u{2019}s host was its own limit, which it found out by taking several.";
    one.say_in(Medium::Page, own);

    let mut several = Section::new(TABLE_2);
    several.label("Table 2, several hosts, published");
    several.say_in(Medium::Page, "Published:");
    several.show([tables::published_2()]);
    several.label("Table 2, several hosts, ours");
    match records.several_hosts.iter().flatten().all(|record| record.steps.is_empty()) {
        true => {
            several.say_in(Medium::Text, "not measured");
            several.say_in(Medium::Page, "Ours: not measured.");
        }
        false => {
            let ours = "Ours, with each host\u{2019}s share of its row:";
            several.say_in(Medium::Page, ours);
            several.show([tables::ours_2(&records.several_hosts)]);
        }
    }
    several.say_all(remarks.several_hosts.iter().map(String::as_str));

    let mut third = Section::new(THIRD);
    third.label("Two configurations");
    let pair = records.old.as_ref().zip(records.new.as_ref());
    let comparison = pair.map(|(old, new)| against(new, old));
    third.say_all(self::third(comparison.as_ref()));
    third.say_all(remarks.configurations.iter().map(String::as_str));
    third.say_all(pair.into_iter().flat_map(|(old, new)| third_in_detail(old, new, remarks.processors)));
    if let Some(comparison) = comparison.filter(Comparison::has_differences) {
        third.say_in(Medium::Page, "What is not alike:");
        comparison.add_differences(&mut third);
    }
    vec![opening(records, &remarks.study), one, several, third]
}

/// What is compared with what, and the origin of our figures.
fn opening(records: &Records, remarks: &[String]) -> Section {
    let mut section = Section::default();
    let compare = format!("{SOURCE}, beside ours. Compare the shares, not the figures.");
    section.say_in(Medium::Text, compare);
    let about = format!(
        "{SOURCE}, tells how many requests a second a time server serviced when more and more were offered. Its \
         hardware is not ours, so shapes are compared: each row as a share of the most in its table."
    );
    section.say_in(Medium::Page, about);
    section.say_all(remarks.iter().map(String::as_str));
    for (name, records) in [("one host", &records.one_host), ("several hosts", &records.several_hosts)] {
        let records: Vec<&LoadRecord> = records.iter().flatten().collect();
        // Runs that differ in nothing but rate and time share a paragraph.
        for (index, record) in records.iter().enumerate() {
            let like = |other: &&&LoadRecord| alike(other, record);
            if records[..index].iter().any(|other| like(&other)) {
                continue;
            }
            let run_count = records[index..].iter().filter(like).count();
            let first = match run_count {
                1 => String::new(),
                _ => format!("the first of {run_count} alike: "),
            };
            let prose = Prose::from(format!("Ours with {name}: "))
                .strong(record.label())
                .plain(" against ")
                .strong(&record.target)
                .plain(" over the path ")
                .strong(&record.path)
                .plain(", ")
                .unbroken(utc(record.started_unix_s))
                .plain(format!(", {first}"))
                .code(&record.command);
            let prose = record.provenance().program(prose, "");
            let host = format!(" on {}, {}.", record.host.cpu, record.host.kernel);
            section.say_in(Medium::Page, prose.plain(host));
        }
    }
    section
}

/// Whether two runs are of one kind, against one server, by one program on one machine.
fn alike(left: &LoadRecord, right: &LoadRecord) -> bool {
    fn kind(record: &LoadRecord) -> (String, [&str; 4], &Host, &[String]) {
        let LoadRecord { target, path, version, commit, host, parameters, .. } = record;
        (record.label(), [target, path, version, commit], host, &parameters.agents)
    }
    kind(left) == kind(right)
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
    // A server that does not use all of its share is not at its limit.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::ServerUse;
    use crate::load::tests::record;
    use crate::render::page::assert_whole;
    use crate::units::typeset_prose;

    fn of(
        one_host: Vec<LoadRecord>,
        several_hosts: Vec<LoadRecord>,
        old_new: Option<(&LoadRecord, &LoadRecord)>,
        remarks: &Remarks,
    ) -> Report {
        let (old, new) = old_new.unzip();
        let (old, new) = (old.cloned(), new.cloned());
        let [one_host, several_hosts] =
            [one_host, several_hosts].map(|rows| rows.into_iter().map(Some).collect());
        compared(&Records { one_host, several_hosts, old, new }, remarks)
    }

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
        let text = of([alone()].into(), [record()].into(), None, &Remarks::default()).text();
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
        let text = of([alone()].into(), [record()].into(), None, &Remarks::default()).text();
        assert!(line(&text, "2,371").ends_with("nothing: what was specified was serviced"));
        assert!(line(&text, "3,548").ends_with("the server or the path: 14.37 % had no good answer"));
        assert!(line(&text, "4,321").contains("the host is its own limit: generator fell behind: 56.3 %"));
        let row = line(&text, "198.18.0.12:4470 is its own limit");
        assert!(row.contains("generator fell behind: 87.5 %") && row.contains("2,750 (92 %)"), "{row}");
    }

    #[test]
    fn third_result_stands_beside_ours() {
        let (old, mut new) = (record(), record());
        new.capacity.as_mut().unwrap().at_least = Some(2240.0);
        let text = of(Vec::new(), Vec::new(), Some((&old, &new)), &Remarks::default()).text();
        assert!(text.contains("9,909/s, an updated one about 7,500/s, a ratio of 0.76."), "{text}");
        assert!(
            text.contains(
                "Ours: Capacity: from 2,240 to 2,900 against from 2,800 to 2,900 requests a second, a ratio of 0.80;"
            ),
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
            let cpu_us_per_request = Some(cpu_us);
            step.server = Some(ServerUse { cpu_seconds, cpu_us_per_request, ..ServerUse::default() });
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
        let report = of(Vec::new(), Vec::new(), Some((&old, &new)), &remarks);
        assert!(report.text().contains(&idle[1]));
        assert!(report.page().contains(&typeset_prose(&idle[1])));
    }

    #[test]
    fn page_has_both_tables_and_escapes_names() {
        let mut several = record();
        several.steps[3].hosts[1].name = "<b>\"host\"".to_owned();
        let page =
            of([alone()].into(), [several].into(), Some((&record(), &record())), &Remarks::default()).page();
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

    /// Rows stand beside the published ones by their order, whichever are missing.
    #[test]
    fn row_that_is_missing_leaves_the_others_in_their_place() {
        let mut single = alone();
        single.steps.truncate(1);
        let records = Records { one_host: vec![None, None, Some(single)], ..Records::default() };
        let text = compared(&records, &Remarks::default()).text();
        assert!(line(&text, "2,371").ends_with("not measured"), "{text}");
        assert!(line(&text, "3,548").contains("1,000"), "{text}");
    }

    #[test]
    fn nothing_measured_is_said() {
        let page = of(Vec::new(), Vec::new(), None, &Remarks::default()).page();
        assert!(
            page.contains("Ours: not measured.") && page.contains("two configurations were not measured")
        );
        assert!(page.contains("4,484"));
    }
}
