//! What the study here says to each statement of the paper.

use super::beyond::Beyond;
use super::figures::{Cells, Derived, Reading, sample};
use super::ladder::{Climb, Ladders, found as under_load};
use super::operations::Alone;
use super::{Cell, Records, Store, Way};
use crate::load::Cause;
use crate::published::nts::statement::{Answer, Part, Statement};
use crate::published::nts::{FIGURE_4, FIGURE_5, Measure, TABLE_2};
use crate::units::{count, joined, listed, percent, rate, time};

fn ns(value: f64) -> String {
    time(value.round() as u64)
}

/// All that was measured.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) cells: Cells<'a>,
    pub(super) alone: Alone<'a>,
    pub(super) ladders: Ladders<'a>,
    pub(super) beyond: Beyond<'a>,
}

impl<'a> Evidence<'a> {
    pub(super) fn of(records: &'a Records) -> Self {
        Evidence {
            cells: Cells::new(&records.unloaded),
            alone: Alone::new(&records.operations),
            ladders: Ladders::new(records),
            beyond: Beyond::new(records),
        }
    }
}

/// The answer to a statement, in sentences.
pub(super) fn answer(statement: &Statement, evidence: &Evidence<'_>) -> String {
    let parts = match statement.answer {
        Answer::Recomputed => {
            return "recomputed from their data, as above; there is nothing to measure.".to_owned();
        }
        Answer::Settled(why) | Answer::NotHere(why) => return why.to_owned(),
        Answer::Measured(parts) => parts,
    };
    let here = parts.iter().copied().filter(|part| *part != Part::Field);
    let (measured, open): (Vec<Part>, Vec<Part>) = here.partition(|part| is_measured(*part, evidence));
    let Evidence { cells, alone, ladders, beyond } = evidence;
    let first = of_ladders(statement.id, ladders).or_else(|| found(statement.id, cells));
    let said = [first, alone.answer(statement.id, cells), beyond.answer(statement.id)];
    let found = joined(said.into_iter().flatten(), " ").or_else(|| {
        let tables = || "measured; see Table II, the figures and the table of paths above.".to_owned();
        (!measured.is_empty()).then(tables)
    });
    let missing = (!open.is_empty()).then(|| missing(&open));
    let elsewhere = parts.contains(&Part::Field).then(|| FIELD.to_owned());
    joined([found, missing, elsewhere].into_iter().flatten(), " ").unwrap_or_default()
}

/// Where what other servers make of it is to be found.
const FIELD: &str = "Other servers, their rates and what authentication costs each of them are in the study of the \
                     field: authentick study run field.";

fn is_measured(part: Part, evidence: &Evidence<'_>) -> bool {
    let Evidence { cells, alone, ladders, beyond } = evidence;
    match part {
        Part::Unloaded => cells.main().is_some(),
        Part::RoundTrips => Way::ALL.iter().filter(|way| over(**way, cells).is_some()).count() > 1,
        Part::LookUp => cells.get(Cell::Study).is_some(),
        Part::Operations => !alone.is_empty(),
        Part::LadderToScale => ladders.has(true),
        Part::LadderWholeCore => ladders.has(false),
        Part::TransfersPerExchange => beyond.has_sessions(),
        Part::TransfersAlone => beyond.has_rates(),
        Part::Field => false,
    }
}

/// What was not measured in this run.
fn missing(parts: &[Part]) -> String {
    let names = parts.iter().map(|part| format!("\u{201c}{}\u{201d}", part.name()));
    format!("not measured in this run: {}.", listed(names))
}

/// The first cell over this path.
fn over(way: Way, cells: &Cells<'_>) -> Option<Cell> {
    Store::ALL.map(|store| Cell::Other(store, way)).into_iter().find(|cell| cells.get(*cell).is_some())
}

/// What was found, with figures; `None` where the tables say it all.
fn found(id: &str, cells: &Cells<'_>) -> Option<String> {
    let (cell, record) = cells.main()?;
    let derived = Derived::of(record)?;
    let medians = |measure: Measure| {
        let [equations, program] = Reading::ALL.map(|reading| cells.median(cell, measure, reading));
        Some(format!("{} by the equations, {} as their program did", ns(equations?), ns(program?)))
    };
    let table = |symbol: Measure| Some(format!("the median is {}.", medians(symbol)?));
    let ends = |measures: &[Measure]| {
        let of = |measure: &Measure| {
            let sample = sample(record, *measure, Reading::Program);
            let (min, max) = (sample.values().first()?, sample.values().last()?);
            Some(format!("{} has {} to {}", measure.symbol(), time(*min), time(*max)))
        };
        Some(format!("{}, as their program did.", listed(measures.iter().filter_map(of))))
    };
    Some(match id {
        "table-2-d-cke" => table(Measure::Cke)?,
        "table-2-d-cntp" => table(TABLE_2[1].measure)?,
        "table-2-d-sntp" => format!("the median is {}.", ns(derived.server[0])),
        "table-2-d-ske" => table(Measure::Ske)?,
        "table-2-d-snts" => table(Measure::Snts)?,
        "figure-4" => ends(&FIGURE_4.map(|ends| ends.measure))?,
        "figure-5" => ends(&FIGURE_5.map(|ends| ends.measure))?,
        "unloaded-setup" => format!(
            "{} key exchanges, {} transfers with NTS and {} without.",
            record.exchanges.len(),
            record.transfers.len(),
            record.plain.len()
        ),
        "d-cntp-0-79-ms" | "d-cntp" => format!(
            "a plain transfer takes {}, measured; equation (6) has {}.",
            ns(derived.plain),
            ns(derived.equation_6)
        ),
        "transfer-9-73-percent" => format!(
            "the increase is {} %, the symmetric difference {} %.",
            percent(derived.increase() / 100.0),
            percent(derived.difference() / 100.0)
        ),
        "abstract-116-percent" | "exchange-117-percent" => format!(
            "the increase is {} %, the paper\u{2019}s symmetric difference {} %, and the increase with three transfers \
             for an exchange, computed, {} %.",
            percent(derived.increase_with_exchange() / 100.0),
            percent(derived.difference_with_exchange() / 100.0),
            percent(derived.increase_one_in_three() / 100.0)
        ),
        "server-overhead" => format!(
            "a request with NTS takes the server {:.1} times as long as a plain one.",
            derived.server_factor()
        ),
        "look-ups-in-the-capture" => format!(
            "{} of {} are the look-up, over a path of our own to a resolver.",
            ns(derived.look_up),
            ns(derived.authenticated_of_program)
        ),
        "three-times-by-the-network" => by_the_network(cells)?,
        "round-trips-of-an-exchange" => round_trips(cells)?,
        _ => return None,
    })
}

/// What was found under load; `None` of a statement that is of something else.
fn of_ladders(id: &str, ladders: &Ladders<'_>) -> Option<String> {
    let climbs = || ladders.climbed().filter(|climb| climb.counted().next().is_some());
    let each = |said: &dyn Fn(&Climb<'_>) -> Option<String>| joined(climbs().filter_map(said), " ");
    let figure = |number: u8| under_load::of_figure(ladders, number);
    climbs().next()?;
    match id {
        "capacity-2000" => each(&|climb| Some(under_load::bend(climb))),
        "ladder" => each(&|climb| Some(under_load::about(climb))),
        "measured-client-only" => each(&|climb| Some(recorded(climb))),
        "three-transfers" => each(&|climb| Some(followed(climb))),
        "transfers-offered" => each(&transferred),
        "too-few-transfers" => each(&|climb| Some(few(climb))),
        "figure-7" => figure(7),
        "figure-8" => figure(8),
        "figure-8-classes" => each(&|climb| Some(classes(climb))),
        "figure-9" => figure(9),
        "figure-10" => figure(10),
        "figure-11" => figure(11),
        "figure-12" => figure(12),
        "slow-tails-below-the-knee" => each(&under_load::tails),
        _ => None,
    }
}

/// A sum over the steps of a ladder that count.
fn sum(climb: &Climb<'_>, of: impl Fn(&super::RungRecord) -> u64) -> u64 {
    climb.counted().fold(0, |sum, step| sum.saturating_add(of(step.record)))
}

fn recorded(climb: &Climb<'_>) -> String {
    format!(
        "{}: requests of the measured client are told by the source of each; of {} of its exchanges and transfers both \
         ends are known, and of {} the server has no record.",
        climb.ladder.name(),
        count(sum(climb, |record| record.joined)),
        count(sum(climb, |record| record.unmatched))
    )
}

fn followed(climb: &Climb<'_>) -> String {
    format!(
        "{}: {} transfers followed {} key exchanges of the measured client that ended well.",
        climb.ladder.name(),
        count(sum(climb, |record| record.transfers.scheduled)),
        count(sum(climb, |record| record.exchanges.answered))
    )
}

/// What the measured client asked for in the highest step.
fn transferred(climb: &Climb<'_>) -> Option<String> {
    let last = climb.counted().last()?;
    let due = last.record.transfers.scheduled as f64 / last.record.seconds;
    due.is_finite().then(|| {
        format!(
            "{}: in the highest step that counts, {} key exchanges a second, the measured client alone asked for {} \
             transfers a second here.",
            climb.ladder.name(),
            rate(last.load),
            rate(due)
        )
    })
}

fn few(climb: &Climb<'_>) -> String {
    let (transfers, exchanges) =
        (sum(climb, |record| record.transfers.scheduled), sum(climb, |record| record.exchanges.answered));
    format!(
        "{}: {:.1} transfers for each key exchange of the measured client, where theirs had three: this ladder cannot \
         tell either.",
        climb.ladder.name(),
        transfers as f64 / exchanges.max(1) as f64
    )
}

fn classes(climb: &Climb<'_>) -> String {
    let of = |cause: Cause| count(sum(climb, |record| record.exchanges.of(cause)));
    format!(
        "{}: {} of {} key exchanges had no connection within the deadline, {} a connection and no cookies, and {} \
         failed otherwise.",
        climb.ladder.name(),
        of(Cause::ConnectionTimedOut),
        count(sum(climb, |record| record.exchanges.scheduled)),
        of(Cause::ResourceTemporarilyUnavailable),
        count(sum(climb, |record| {
            let known = record
                .exchanges
                .of(Cause::ConnectionTimedOut)
                .saturating_add(record.exchanges.of(Cause::ResourceTemporarilyUnavailable));
            record.exchanges.failed().saturating_sub(known)
        }))
    )
}

/// How d_CKE divides into the path and the rest, path by path.
fn by_the_network(cells: &Cells<'_>) -> Option<String> {
    let of = |way: Way| {
        let derived = Derived::of(cells.get(over(way, cells)?)?)?;
        let ratio = format!("{:.2} times a plain transfer", derived.exchange / derived.plain);
        Some(match way {
            Way::Near => format!("over {} d_CKE is {ratio}", way.name()),
            Way::Study | Way::Long => format!(
                "over {} it is {ratio}, and {} % of it are round trips",
                way.name(),
                percent(derived.network_share())
            ),
        })
    };
    let parts: Vec<String> = Way::ALL.into_iter().filter_map(of).collect();
    (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
}

/// Round trips as the relay counted them.
fn round_trips(cells: &Cells<'_>) -> Option<String> {
    let relayed = cells.iter().filter_map(|(_, record)| record.relayed.as_ref());
    let (exchanges, transfers): (Vec<_>, Vec<_>) = relayed
        .filter_map(|relayed| Some((relayed.exchange_round_trips?, relayed.transfer_round_trips?)))
        .unzip();
    Some(format!(
        "the relay counted {} and {} round trips of key exchanges and of transfers.",
        widest(&exchanges)?,
        widest(&transfers)?
    ))
}

/// From the least of all ranges to the most of them, in words; `None` of none.
fn widest(ranges: &[[u64; 2]]) -> Option<String> {
    let least = ranges.iter().map(|range| range[0]).min()?;
    let most = ranges.iter().map(|range| range[1]).max()?;
    Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::nts::statement::{all, find};
    use crate::study::nts::tests::all_records;

    #[test]
    fn every_statement_has_an_answer_of_ours_or_its_reason() {
        for records in [all_records(), Records::default()] {
            let evidence = Evidence::of(&records);
            for statement in all() {
                let answer = answer(statement, &evidence);
                assert!(answer.ends_with('.') && answer.len() > 20, "{}: {answer:?}", statement.id);
                if let Answer::Measured(parts) = statement.answer {
                    let is_open = records.rungs.is_empty() && parts.iter().any(|part| *part != Part::Field);
                    assert_eq!(answer.contains("in this run"), is_open, "{}: {answer}", statement.id);
                    let field = answer.contains("study run field");
                    assert_eq!(field, parts.contains(&Part::Field), "{}: {answer}", statement.id);
                }
            }
        }
    }

    #[test]
    fn part_that_is_missing_is_named_beside_what_the_others_say() {
        let records = Records { operations: Vec::new(), ..all_records() };
        let answer = answer(find("d-snts-and-d-sntp").unwrap(), &Evidence::of(&records));
        let expected = "not measured in this run: \u{201c}operations alone\u{201d}.";
        assert!(answer.starts_with("measured; see") && answer.ends_with(expected), "{answer}");
    }

    #[test]
    fn operations_and_what_is_beyond_the_paper_answer_what_asks_for_them() {
        let records = all_records();
        let evidence = Evidence::of(&records);
        let of = |id: &str| answer(find(id).unwrap(), &evidence);
        for (id, part) in [
            ("isolated-operations", "alone, by medians, a TLS handshake 3,000 ns"),
            ("preloaded-keys", "does not set them apart"),
            ("preloaded-keys", "Neither d_SKE nor d_SNTS has one"),
            ("d-snts-and-d-sntp", "a file read for each request would add 16.0 us"),
            ("fresh-cookies", "a session with fresh cookies costs"),
            ("exchange-117-percent", "the increase is"),
            ("exchange-117-percent", "the exchange is 94.34 % with 3"),
            ("three-transfers", "transfers followed"),
            ("three-transfers", "worth 50 transfers"),
            ("transfers-offered", "carried up to 48,000"),
            ("too-few-transfers", "cannot tell either"),
            ("too-few-transfers", "carried up to 48,000"),
            ("future-work", "carried up to 48,000"),
        ] {
            assert!(of(id).contains(part), "{id}: {}", of(id));
        }
    }

    #[test]
    fn statements_on_the_loaded_server_have_the_figures_of_the_ladders() {
        let records = all_records();
        let evidence = Evidence::of(&records);
        let of = |id: &str| answer(find(id).unwrap(), &evidence);
        for (id, part) in [
            ("capacity-2000", "To scale, ours bends at 2,500 key exchanges a second"),
            ("ladder", "To scale: the server has 50.0 % of a core"),
            ("measured-client-only", "by the source of each"),
            ("three-transfers", "transfers followed"),
            ("transfers-offered", "the measured client alone asked for 474 transfers a second here"),
            ("too-few-transfers", "3.0 transfers for each key exchange"),
            ("figure-7", "ours bends at 2,500"),
            ("figure-8", "Failures of ours begin at 2,500"),
            ("figure-8-classes", "had no connection within the deadline"),
            ("figure-9", "Medians of d_CNTS of ours are"),
            ("figure-10", "Medians of d_SKE of ours are"),
            ("figure-11", "Medians of d_SNTP of ours are"),
            ("figure-12", "Medians of d_SNTS of ours are"),
            ("slow-tails-below-the-knee", "below the knee the largest 95th percentile"),
        ] {
            assert!(of(id).contains(part), "{id}: {}", of(id));
        }
    }

    #[test]
    fn answers_have_our_figures() {
        let records = all_records();
        let evidence = Evidence::of(&records);
        let of = |id: &str| answer(find(id).unwrap(), &evidence);
        assert!(of("table-2-d-cke").starts_with("the median is 2.10 ms by the equations, 2.57 ms as"));
        assert!(
            of("transfer-9-73-percent").starts_with("the increase is 10.00 %"),
            "{}",
            of("transfer-9-73-percent")
        );
        assert!(of("server-overhead").contains("5.0 times"));
        assert!(of("look-ups-in-the-capture").starts_with("360.0 us of 840.0 us"));
        let network = of("three-times-by-the-network");
        assert!(
            network.contains("over 0.12 ms it is 5.25 times") && network.contains("17.14 %"),
            "{network}"
        );
        assert!(of("round-trips-of-an-exchange").contains("counted 3 and 1 round trips"));
    }
}
