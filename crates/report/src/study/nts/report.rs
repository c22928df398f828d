//! The report on the study of NTS.

use super::answers::{Evidence, answer};
use super::figures::{Cells, Derived};
use super::record::{Relayed, UnloadedRecord};
use super::verdicts::tally;
use super::{Cell, Plan, Records, beyond, ladder, operations, tables};
use crate::published::nts::statement::{Statement, all};
use crate::published::nts::{DATA_SOURCE, SOURCE};
use crate::render::{Block, Layout, Medium, Prose, Report, Section};
use crate::stored::Stored;
use crate::units::{microseconds, percent, plural, time};

/// From this share on it is nearly all.
const MOST: f64 = 0.9;

/// Headings that verdicts link to.
pub(super) const TABLE_2: &str = "Table II: without load";
pub(super) const FIGURE_4: &str = "Figure 4: at the client";
pub(super) const FIGURE_5: &str = "Figure 5: at the server";

const TITLE: &str = "The NTS study\u{2019}s measurements, beside ours";

/// The report on what has been measured: the records of tasks that count.
#[must_use]
pub fn report(plan: &Plan, records: &Records) -> Report {
    Report::new(TITLE, Layout::Nested, sections(plan, records)).tallied(tally(plan, records))
}

/// The paper's Table II and Figures 4 and 5 with ours beside them, equation (6), paths, operations alone, the figures
/// under load, what goes beyond the paper, and every statement.
#[must_use]
pub fn sections(plan: &Plan, records: &Records) -> Vec<Section> {
    let evidence = Evidence::of(records);
    let Evidence { cells, alone, ladders, beyond } = &evidence;
    let mut first = Section::default();
    let compare = format!("{SOURCE}, beside ours. Compare shapes and ratios, not times.");
    first.say_in(Medium::Text, compare);
    let about = format!(
        "{SOURCE}, tells what NTS costs client and server. Its hardware is not ours: shapes and ratios are compared."
    );
    first.say_in(Medium::Page, about);
    let mut how = opening(plan, cells).into_iter();
    first.say_all(how.next());
    first.fold("How it was measured, and what is missing", how);
    let mut sections = vec![first];
    let derived = cells.main().and_then(|(_, record)| Derived::of(record));
    let follows: Vec<String> =
        derived.iter().flat_map(findings).chain(ladder::found::in_short(ladders)).collect();
    if !follows.is_empty() {
        sections.push(Section::of("What follows", [Block::findings(follows)]));
    }
    if let Some((cell, record)) = cells.main() {
        let tables = [tables::table_2(record), tables::readings(record)].map(Block::Table);
        let which = Block::paragraph(of_cell(cell, record));
        sections.push(Section::of(TABLE_2, [which, tables::picture(record)].into_iter().chain(tables)));
        sections.push(Section::of(FIGURE_4, tables::figure_4(record)));
        sections.push(Section::of(FIGURE_5, tables::figure_5(record)));
        if let Some(derived) = &derived {
            let table = Block::Table(tables::equation_6(derived));
            sections.push(Section::of("Equation (6), and a plain transfer beside it", [table]));
        }
        sections.push(Section::of("Paths and key stores", [Block::Table(tables::cells(cells))]));
    }
    sections.extend(operations::section(alone, cells));
    sections.extend(ladder::sections(ladders));
    sections.extend(beyond::section(beyond));
    let terms = all().map(|statement| (statement.place(), said(statement, &evidence)));
    let about = format!(
        "Every statement of the paper with a number or a claim, what {DATA_SOURCE} say of it, and what we measure."
    );
    let blocks = [Block::paragraph(about), Block::Terms(terms.collect())];
    sections.push(Section::of("What the paper says, and what its data say", blocks));
    sections
}

/// What was measured, how, and on what.
fn opening(plan: &Plan, cells: &Cells<'_>) -> Vec<String> {
    let mut sentences = vec![
        format!("Ours on {}", plan.provenance().made()),
        format!(
            "Without load one client exchanges keys, and asks for time with NTS and without, in rotating order; {} are \
             not counted. Under load a measured client and a background of others exchange keys, each step at a server \
             that was started for it.",
            plural(u64::from(plan.settings.warm_ups), "round")
        ),
    ];
    sentences.extend(plan.settings.difference());
    sentences.extend(plan.found.remarks.iter().cloned());
    sentences.extend(plan.gaps().into_iter().chain(plan.stolen()));
    let failed: u32 = cells.iter().map(|(_, record)| record.failed).sum();
    if failed > 0 {
        sentences.push(format!(
            "{} of ours brought no good answer, and {} in no figure.",
            plural(u64::from(failed), "exchange"),
            if failed == 1 { "is" } else { "are" }
        ));
    }
    sentences
}

/// Which cell stands beside what was published.
fn of_cell(cell: Cell, record: &UnloadedRecord) -> String {
    let UnloadedRecord { isolated, memcached, relayed, clock_ns, .. } = record;
    let keys =
        memcached.as_ref().map_or_else(|| "a file".to_owned(), |version| format!("memcached {version}"));
    let place =
        if *isolated { "in network namespaces of their own" } else { "on this machine\u{2019}s loopback" };
    let path = relayed.as_ref().map_or_else(String::new, |Relayed { delay_us, echo_us, late_mean_us, .. }| {
        format!(
            " A relay holds packets for {} in each direction; an echo takes {} there and back, and packets leave {} \
             late on average.",
            microseconds(*delay_us),
            microseconds(*echo_us),
            microseconds(*late_mean_us)
        )
    });
    let other = match cell {
        Cell::Study => "",
        Cell::Other(..) => {
            " This is not the paper\u{2019}s set-up, which was not measured here, but what comes closest to it."
        }
    };
    format!(
        "Client and server {place}, keys in {keys}, a round trip of {}.{path}{other} A reading of the server\u{2019}s \
         clock costs {}, which is taken off each of its stages.",
        cell.way().name(),
        time(*clock_ns)
    )
}

fn findings(derived: &Derived) -> Vec<String> {
    let share = |of: f64| percent(of / 100.0);
    let mut findings = vec![
        format!(
            "An authenticated transfer takes {} % longer than a plain one that was measured beside it. The paper has \
             9.73 %; its data say 10.2 %, over a plain transfer that nobody measured.",
            share(derived.increase())
        ),
        format!(
            "With a key exchange of its own it takes {} % longer, where the paper has 117 % and its data 297 %.",
            share(derived.increase_with_exchange())
        ),
        format!(
            "The server works {:.1} times as long on a request with NTS as on a plain one; theirs, 40.8 times, as it \
             read a file for each.",
            derived.server_factor()
        ),
    ];
    if derived.round_trip > 0.0 {
        let verdict = match derived.network_share() < MOST {
            true => "the paper\u{2019}s \u{201c}nearly all by the network\u{201d} does not hold here",
            false => "nearly all of it is by the network, as the paper says",
        };
        findings.push(format!(
            "Three round trips are {} % of d_CKE over this path: {verdict}.",
            percent(derived.network_share())
        ));
    }
    findings
}

/// A statement, its data, and ours.
fn said(statement: &Statement, evidence: &Evidence<'_>) -> Prose {
    let prose = Prose::default();
    let prose = match statement.printed {
        Some(printed) => prose.plain(printed).plain(" "),
        None => prose,
    };
    prose.strong("Its data: ").plain(statement.data).strong(" Ours: ").plain(answer(statement, evidence))
}
