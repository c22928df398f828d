//! What stands first on a page of several studies: what authentication costs, what was measured on what, and what could
//! not be.

use super::field::{FieldRecord, headlines};
use super::tally::{self, Tally, Verdict, counted};
use super::{Outcome, Paper, Plan, Settings, Task};
use crate::render::{Block, Layout, Link, Report, Section, Table, Tone};
use crate::run::Host;
use crate::stored::Stored;
use crate::units::{capital, plural};

/// How far a study has come.
#[derive(Clone, Debug)]
pub struct Stand {
    paper: Paper,
    /// On what, when and by which command.
    made: String,
    /// When it was begun, in seconds of Unix.
    started_unix_s: u64,
    /// Of which commit the program was that began it.
    commit: String,
    /// On what machine.
    machine: Host,
    tasks: Vec<Task>,
    /// What brought nothing that counts, in sentences.
    gaps: Vec<String>,
    /// What became of the paper's tables and figures.
    tally: Option<Tally>,
}

impl Stand {
    /// That of a study with this plan.
    #[must_use]
    pub fn of<S: Settings>(plan: &Plan<S>) -> Self {
        let made = plan.provenance().made();
        Stand {
            paper: S::PAPER,
            made,
            started_unix_s: plan.started_unix_s,
            commit: plan.commit.clone(),
            machine: plan.machine.clone(),
            tasks: plan.tasks.clone(),
            gaps: plan.gaps(),
            tally: None,
        }
    }

    /// With what its report says of the paper's tables and figures.
    #[must_use]
    pub fn judged(self, report: &Report) -> Self {
        Stand { tally: report.tally().cloned(), ..self }
    }

    fn count(&self, is_in: impl Fn(Option<Outcome>) -> bool) -> usize {
        self.tasks.iter().filter(|task| is_in(task.end.as_ref().map(|end| end.outcome))).count()
    }
}

/// The sections before the studies themselves; `field` is what the study of that name has measured, if it is among
/// them.
#[must_use]
pub fn front(stands: &[Stand], field: Option<&FieldRecord>) -> Report {
    let mut first = Section::default();
    match field.map(headlines) {
        Some((sentences, picture)) => {
            first.add(Block::findings(sentences));
            picture.into_iter().for_each(|picture| first.add(picture));
        }
        None => first
            .say("Without a study of the field there is nothing to say about schemes and servers together."),
    }
    let tallies: Vec<(&Stand, &Tally)> =
        stands.iter().filter_map(|stand| Some((stand, stand.tally.as_ref()?))).collect();
    if !tallies.is_empty() {
        let all: usize = tallies.iter().map(|(_, tally)| tally.len()).sum();
        let counted = counted(&tallies.iter().map(|(_, tally)| *tally).collect::<Vec<_>>());
        let papers = plural(tallies.len() as u64, "paper");
        let said = format!("Of {all} tables, figures and results of {papers}, {counted}.");
        first.add(Block::Paragraph(said.into(), Tone::Lead));
        first.add(Block::Table(by_paper(&tallies)));
    }
    if let Some(earliest) = stands.iter().min_by_key(|stand| stand.started_unix_s) {
        first.say(format!("Begun on {}{}", earliest.made, others(earliest, stands)));
    }
    let mut sections = vec![first];
    if !tallies.is_empty() {
        let mut verdicts = Section::new(tally::HEADING);
        for (stand, tally) in &tallies {
            let (title, name) = (stand.paper.title(), stand.paper.name());
            verdicts.add(Block::Table(tally.table(format!("{name}: {title}"), Some(name))));
        }
        sections.push(verdicts);
    }
    sections.push(Section::of("What was measured", [Block::Table(table(stands))]));
    let gaps: Vec<String> = stands
        .iter()
        .flat_map(|stand| stand.gaps.iter().map(|gap| format!("{}: {gap}", stand.paper.name())))
        .collect();
    if !gaps.is_empty() {
        sections.push(Section::of("What was not", [Block::list(gaps)]));
    }
    Report::new("", Layout::Nested, sections)
}

/// What is to be known of studies that another program, or another machine, has measured.
fn others(earliest: &Stand, stands: &[Stand]) -> &'static str {
    let is_one_machine = stands.iter().all(|stand| stand.machine == earliest.machine);
    let is_one_build = stands.iter().all(|stand| stand.commit == earliest.commit);
    match (is_one_machine, is_one_build) {
        (true, true) => "",
        (true, false) => " Others are of another build: each study says of which.",
        (false, true) => " Others are of another machine: each study says of which.",
        (false, false) => " Others are of another machine or another build: each study says of which.",
    }
}

/// How many of each paper's tables and figures are reproduced.
fn by_paper(tallies: &[(&Stand, &Tally)]) -> Table {
    let table = Table::of("Tables and figures of the papers", tallies)
        .linked(|(stand, _)| Link { part: Some(stand.paper.name()), heading: tally::HEADING.to_owned() })
        .words("Study", |(stand, _)| stand.paper.name())
        .words("Counted", |(_, tally)| tally.what)
        .number("All", |(_, tally)| tally.len());
    Verdict::ALL
        .into_iter()
        .fold(table, |table, verdict| {
            table.number(capital(verdict.word()), |(_, tally)| tally.count(verdict))
        })
        .table()
}

fn table(stands: &[Stand]) -> Table {
    use Outcome::{Cut, Infeasible, Invalid, Measured, Stopped};
    Table::of("What was measured, by study", stands)
        .words("Study", |stand| stand.paper.name())
        .words("Of", |stand| stand.paper.title())
        .number("Tasks", |stand| stand.tasks.len())
        .number("Measured", |stand| stand.count(|outcome| outcome == Some(Measured)))
        .number("Measured, and not counted", |stand| stand.count(|outcome| outcome == Some(Invalid)))
        .number("Could not be", |stand| stand.count(|outcome| outcome == Some(Infeasible)))
        .number("Left out, or not yet", |stand| {
            stand.count(|outcome| matches!(outcome, None | Some(Cut | Stopped)))
        })
        .table()
}

#[cfg(test)]
mod tests {
    use super::super::task::tests::tasks;
    use super::super::{Plan, field, nts};
    use super::*;

    fn stands() -> [Stand; 2] {
        let nts: Plan<nts::Settings> = Plan { tasks: tasks(), ..nts::tests::plan() };
        let report = nts::report(&nts, &nts::tests::all_records());
        [Stand::of(&nts).judged(&report), Stand::of(&field::tests::plan())]
    }

    #[test]
    fn earliest_study_says_when_all_was_begun_and_other_builds_are_told() {
        let begun = |times: [u64; 2], commits: [&str; 2]| {
            let mut stands = stands();
            for (stand, (time, commit)) in stands.iter_mut().zip(times.into_iter().zip(commits)) {
                (stand.started_unix_s, stand.commit) = (time, commit.to_owned());
                stand.made = format!("day {time}.");
            }
            front(&stands, None).text().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let text = begun([9, 4], ["a", "a"]);
        assert!(text.contains("Begun on day 4.") && !text.contains("another build"), "{text}");
        let text = begun([4, 9], ["a", "b"]);
        assert!(text.contains("Begun on day 4. Others are of another build"), "{text}");
        let mut stands = stands();
        stands[1].machine.cpu += "+";
        let text = front(&stands, None).text();
        assert!(text.contains("of another machine"), "{text}");
    }

    #[test]
    fn front_has_three_sentences_a_picture_and_how_far_each_study_has_come() {
        let report = front(&stands(), Some(&field::tests::record()));
        let text = report.text();
        let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "authentick 0.1.0 keeps 96 %",
            "Under NTS, AEAD 15 a second of processor time is worth",
            "A key exchange costs authentick 100.0 us",
            "Begun on A <b>processor",
            "Of 9 tables, figures and results of 1 paper, 7 are reproduced here, 2 differ, and 0 could not be measured",
            "Figure 7 reproduced Ours bends above 2,000",
            "nts: 2 of 5 tasks are left out for want of time: b and c: no time.",
        ] {
            assert!(whole.contains(part), "{part}\n{text}");
        }
        let page = report.page();
        assert_eq!(page.matches("<figure>").count(), 1);
        assert!(page.contains("<a href=\"#nts-figure-8-key-exchanges-that-failed\">Figure 8</a>"), "{page}");
        assert!(page.contains("<a href=\"#nts-table-by-table-figure-by-figure\">nts</a>"), "{page}");
        let row = text.lines().rfind(|line| line.starts_with("nts ")).unwrap();
        let counts: Vec<&str> = row.split_whitespace().rev().take(5).collect();
        assert_eq!(counts, ["3", "0", "1", "1", "5"], "{row}");
    }

    #[test]
    fn without_the_field_there_is_no_picture_and_it_is_said() {
        let report = front(&stands()[..1], None);
        assert!(report.text().contains("Without a study of the field"));
        assert!(!report.page().contains("<figure>"));
        assert!(front(&[], None).text().contains("What was measured"));
    }
}
