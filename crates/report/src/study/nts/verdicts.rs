//! What became here of the paper's Table II and Figures 4, 5 and 7 to 12.

use super::figures::{Cells, Reading, median, sample};
use super::ladder::{self, Ladders};
use super::{Ladder, Measure as TaskMeasure, Plan, Records, UnloadedRecord};
use crate::published::nts::Measure;
use crate::stats::Percentile;
use crate::study::Task;
use crate::study::tally::{Entry, Judged, Tally, Verdict, missing};
use crate::units::{listed, time};

/// Orders by Table II, from the shortest: at the client, and at the server.
const ORDERS: [&[Measure]; 2] =
    [&[Measure::Cnts, Measure::Cke], &[Measure::Sntp, Measure::Ske, Measure::Snts]];
/// Percentiles at which distributions are compared: extremes are of chance.
const PERCENTILES: [u32; 5] = [5, 25, 50, 75, 95];

const NOTES: [&str; 2] = [
    "Ours is taken as their program did. To scale: rates are multiples of what our server serves.",
    "Table I defines measures, and Figures 1 to 3 and 6 draw protocols and set-ups: nothing in them is measured.",
];

/// Every table and figure with a measurement.
pub(super) fn tally(plan: &Plan, records: &Records) -> Tally {
    let (cells, ladders) = (Cells::new(&records.unloaded), Ladders::new(records));
    let main = cells.main().map(|(_, record)| record);
    let unloaded = || missing(&plan.tasks, is_of_cells);
    let of = |judge: &dyn Fn(&UnloadedRecord) -> Judged| main.map_or_else(unloaded, judge);
    let mut entries = vec![
        Entry::new(
            "Table II",
            super::report::TABLE_2,
            "Medians stand in the same order: d_CNTS below d_CKE at the client, d_SNTP below d_SKE below d_SNTS at the \
             server. Intervals of neighbours do not overlap.",
            of(&table_2),
        ),
        Entry::new(
            "Figure 4",
            super::report::FIGURE_4,
            "d_CKE is longer than d_CNTS at each of five percentiles, from the 5th to the 95th.",
            of(&|record| distributions(record, ORDERS[0])),
        ),
        Entry::new(
            "Figure 5",
            super::report::FIGURE_5,
            "d_SNTP is shorter than d_SKE, and that than d_SNTS, at each of five percentiles from the 5th to the 95th.",
            of(&|record| distributions(record, ORDERS[1])),
        ),
    ];
    for figure in 7..=12 {
        let judged = ladder::verdict::judge(&ladders, figure).unwrap_or_else(|| under_load(&plan.tasks));
        let (heading, claim) = (ladder::heading(figure), ladder::verdict::claim(figure));
        entries.push(Entry::new(format!("Figure {figure}"), heading, claim, judged));
    }
    Tally { what: "tables and figures with measurements", entries, notes: NOTES.to_vec() }
}

fn is_of_cells(id: &str) -> bool {
    matches!(TaskMeasure::of(id), Some(TaskMeasure::Cell(_)))
}

/// Why no step of a ladder stands beside theirs.
fn under_load(tasks: &[Task]) -> Judged {
    let is_to_scale = |id: &str| {
        matches!(
            TaskMeasure::of(id),
            Some(TaskMeasure::Scale(Ladder::ToScale) | TaskMeasure::Rung(Ladder::ToScale, _))
        )
    };
    missing(tasks, is_to_scale)
}

/// Whether medians stand in the order of Table II.
fn table_2(record: &UnloadedRecord) -> Judged {
    let mut said = Vec::new();
    let mut verdict = Verdict::Reproduced;
    for order in ORDERS {
        let found =
            order.iter().map(|&measure| Some((measure, median(&sample(record, measure, Reading::Program))?)));
        let Some(found) = found.collect::<Option<Vec<_>>>() else {
            let why = format!("The record has no value of one of {}.", symbols(order));
            return (Verdict::CouldNot, why);
        };
        for pair in found.windows(2) {
            let [low, high] = [pair[0].1.interval, pair[1].1.interval];
            if high[1] < low[0] {
                verdict = Verdict::Differs;
            } else if high[0] <= low[1] && verdict == Verdict::Reproduced {
                verdict = Verdict::CouldNot;
            }
        }
        let told = found
            .iter()
            .map(|(measure, found)| format!("{} {}", measure.symbol(), time(found.value.round() as u64)));
        said.push(told.collect::<Vec<_>>().join(", "));
    }
    let end = match verdict {
        Verdict::Reproduced => "",
        Verdict::Differs => "; theirs read a file for each request in d_SNTS, ours reads none",
        Verdict::CouldNot => "; intervals overlap, which carries no order",
    };
    (verdict, format!("Medians of ours: {}{end}.", said.join("; ")))
}

fn symbols(order: &[Measure]) -> String {
    listed(order.iter().map(|measure| measure.symbol().to_owned()))
}

/// Whether whole distributions stand in an order.
fn distributions(record: &UnloadedRecord, order: &[Measure]) -> Judged {
    let of = |measure: Measure, percentile: u32| {
        let sample = sample(record, measure, Reading::Program);
        Some(sample.percentile(Percentile::from_thousandths(percentile * 1_000)?)? as f64)
    };
    match broken(order, of) {
        None => (Verdict::CouldNot, format!("The record has no value of one of {}.", symbols(order))),
        Some(None) => {
            let ends = order.iter().filter_map(|&measure| {
                let [low, high] = [of(measure, 5)?, of(measure, 95)?].map(|ns| time(ns.round() as u64));
                Some(format!("{} from {low} to {high}", measure.symbol()))
            });
            let ends = ends.collect::<Vec<_>>().join(", ");
            (Verdict::Reproduced, format!("From the 5th to the 95th percentile ours are: {ends}."))
        }
        Some(Some((low, high, percentile))) => {
            let told =
                |measure| of(measure, percentile).map_or_else(String::new, |ns| time(ns.round() as u64));
            let (first, second) = (told(low), told(high));
            let why = format!(
                "At the {percentile}th percentile {} of ours is {first}, and {} is {second}.",
                low.symbol(),
                high.symbol()
            );
            (Verdict::Differs, why)
        }
    }
}

/// Where distributions do not stand in this order: neighbours, and the percentile; `None` within if they do, and
/// without one of them `None`.
#[expect(clippy::option_option, reason = "a missing value is not the same as an order that holds")]
fn broken(
    order: &[Measure],
    of: impl Fn(Measure, u32) -> Option<f64>,
) -> Option<Option<(Measure, Measure, u32)>> {
    for pair in order.windows(2) {
        for percentile in PERCENTILES {
            if of(pair[0], percentile)? >= of(pair[1], percentile)? {
                return Some(Some((pair[0], pair[1], percentile)));
            }
        }
    }
    Some(None)
}

#[cfg(test)]
mod tests;
