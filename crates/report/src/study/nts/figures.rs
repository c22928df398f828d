//! The measures of a cell in both readings, their medians and means with intervals, and what follows from them.

use super::record::{KeyExchange, Transfer, UnloadedRecord};
use super::{Cell, Store, Way};
use crate::published::nts::Measure;
use crate::published::nts::capture::EXCHANGE_ROUND_TRIP_COUNT;
use crate::published::nts::recompute::{increase_percent, symmetric_difference_percent};
use crate::stats::Sample;

/// How a measure is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// As the paper's equations have it.
    Equations,
    /// As its authors' program took it.
    Program,
}

impl Reading {
    pub(super) const ALL: [Reading; 2] = [Reading::Equations, Reading::Program];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Reading::Equations => "equations",
            Reading::Program => "program",
        }
    }
}

/// A figure of a sample, and the interval in which that of the population lies, 95 times of 100; in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) interval: [f64; 2],
}

/// The normal distribution has 95 % of its values within so many standard deviations.
pub(super) const DEVIATIONS: f64 = 1.96;

/// The median. Its interval is between two of the values, whatever their distribution: by the binomial of how many of
/// them are below the population's.
pub(super) fn median(sample: &Sample<u64>) -> Option<Estimate> {
    let values = sample.values();
    let (count, last) = (values.len() as f64, values.len().checked_sub(1)?);
    let reach = DEVIATIONS * count.sqrt() / 2.0;
    let low = (count / 2.0 - reach).floor().max(0.0) as usize;
    let high = ((count / 2.0 + reach).ceil() as usize).min(last);
    Some(Estimate { value: sample.median()? as f64, interval: [values[low] as f64, values[high] as f64] })
}

/// The arithmetic mean, with the interval of many independent values.
pub(super) fn mean(sample: &Sample<u64>) -> Option<Estimate> {
    let value = sample.mean()?;
    let reach = DEVIATIONS * sample.standard_deviation()? / (sample.values().len() as f64).sqrt();
    Some(Estimate { value, interval: [(value - reach).max(0.0), value + reach] })
}

/// The values of a measure.
pub(super) fn sample(record: &UnloadedRecord, measure: Measure, reading: Reading) -> Sample<u64> {
    let UnloadedRecord { exchanges, transfers, plain, .. } = record;
    match (measure, reading) {
        (Measure::Cke, Reading::Equations) => exchanges.iter().map(KeyExchange::d_cke).collect(),
        (Measure::Cke, Reading::Program) => exchanges.iter().map(KeyExchange::d_cke_of_program).collect(),
        (Measure::Cnts, Reading::Equations) => transfers.iter().map(Transfer::d_cnts).collect(),
        (Measure::Cnts, Reading::Program) => transfers.iter().map(Transfer::d_cnts_of_program).collect(),
        (Measure::Cntp, Reading::Equations) => plain.iter().map(Transfer::d_cnts).collect(),
        // Equation (6), of each transfer.
        (Measure::Cntp, Reading::Program) => transfers
            .iter()
            .filter_map(|row| Some(row.d_cnts_of_program().saturating_sub(row.d_snts_of_program()?)))
            .collect(),
        (Measure::Ske, Reading::Equations) => exchanges.iter().filter_map(KeyExchange::d_ske).collect(),
        (Measure::Ske, Reading::Program) => {
            exchanges.iter().filter_map(KeyExchange::d_ske_of_program).collect()
        }
        (Measure::Sntp, Reading::Equations | Reading::Program) => {
            transfers.iter().filter_map(Transfer::d_sntp).collect()
        }
        (Measure::Snts, Reading::Equations) => transfers.iter().filter_map(Transfer::d_snts).collect(),
        (Measure::Snts, Reading::Program) => {
            transfers.iter().filter_map(Transfer::d_snts_of_program).collect()
        }
    }
}

/// Records of cells that count.
#[derive(Debug)]
pub(super) struct Cells<'a>(Vec<(Cell, &'a UnloadedRecord)>);

impl<'a> Cells<'a> {
    pub(super) fn new(records: &'a [UnloadedRecord]) -> Self {
        Cells(records.iter().filter_map(|record| Some((Cell::of(&record.task)?, record))).collect())
    }

    pub(super) fn get(&self, cell: Cell) -> Option<&'a UnloadedRecord> {
        self.0.iter().find(|(of, _)| *of == cell).map(|(_, record)| *record)
    }

    /// Those that there are, in the order of the plan.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Cell, &'a UnloadedRecord)> + '_ {
        Cell::all().into_iter().filter_map(|cell| Some((cell, self.get(cell)?)))
    }

    /// The cell that stands beside what was published: the paper's experiment, or what comes closest to it.
    pub(super) fn main(&self) -> Option<(Cell, &'a UnloadedRecord)> {
        let ways = [Way::Study, Way::Near, Way::Long];
        let others = ways.into_iter().flat_map(|way| Store::ALL.map(|store| Cell::Other(store, way)));
        let mut all = std::iter::once(Cell::Study).chain(others);
        all.find_map(|cell| Some((cell, self.get(cell)?)))
    }

    /// A median of a cell, in nanoseconds.
    pub(super) fn median(&self, cell: Cell, measure: Measure, reading: Reading) -> Option<f64> {
        Some(sample(self.get(cell)?, measure, reading).median()? as f64)
    }
}

/// Medians of one cell, in nanoseconds, and what follows from them as the paper reasons.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Derived {
    /// d_CKE.
    pub(super) exchange: f64,
    /// A plain transfer, measured.
    pub(super) plain: f64,
    /// d_CNTS.
    pub(super) authenticated: f64,
    /// d_CNTP by equation (6).
    pub(super) equation_6: f64,
    /// d_SNTP and d_SNTS.
    pub(super) server: [f64; 2],
    /// A round trip with nothing at either end; 0 where nobody measured it.
    pub(super) round_trip: f64,
    /// The look-up, of transfers; 0 where there is none.
    pub(super) look_up: f64,
    /// d_CNTS as their program took it.
    pub(super) authenticated_of_program: f64,
}

impl Derived {
    pub(super) fn of(record: &UnloadedRecord) -> Option<Self> {
        let median = |measure, reading| sample(record, measure, reading).median().map(|ns| ns as f64);
        let look_up: Sample<u64> = record.transfers.iter().map(|row| row.0[0]).collect();
        Some(Derived {
            exchange: median(Measure::Cke, Reading::Equations)?,
            plain: median(Measure::Cntp, Reading::Equations)?,
            authenticated: median(Measure::Cnts, Reading::Equations)?,
            equation_6: median(Measure::Cntp, Reading::Program)?,
            server: [median(Measure::Sntp, Reading::Program)?, median(Measure::Snts, Reading::Program)?],
            round_trip: record.relayed.as_ref().map_or(0.0, |relayed| relayed.echo_us * 1e3),
            look_up: look_up.median()? as f64,
            authenticated_of_program: median(Measure::Cnts, Reading::Program)?,
        })
        .filter(|derived| derived.plain > 0.0 && derived.exchange > 0.0 && derived.server[0] > 0.0)
    }

    /// What an authenticated transfer takes longer than a plain one, in percent.
    pub(super) fn increase(&self) -> f64 {
        increase_percent(self.plain, self.authenticated)
    }

    /// The same over the mean of both, as the paper has it.
    pub(super) fn difference(&self) -> f64 {
        symmetric_difference_percent(self.plain, self.authenticated)
    }

    /// What it takes longer with a key exchange before it, in percent of a plain one.
    pub(super) fn increase_with_exchange(&self) -> f64 {
        increase_percent(self.plain, self.exchange + self.authenticated)
    }

    /// The paper's figure of it: over the mean of both, with a plain transfer after the exchange.
    pub(super) fn difference_with_exchange(&self) -> f64 {
        symmetric_difference_percent(self.plain, self.exchange + self.plain)
    }

    /// The same increase if three transfers share an exchange.
    pub(super) fn increase_one_in_three(&self) -> f64 {
        increase_percent(self.plain, self.exchange / 3.0 + self.authenticated)
    }

    /// Which part of d_CKE its round trips are.
    pub(super) fn network_share(&self) -> f64 {
        f64::from(EXCHANGE_ROUND_TRIP_COUNT) * self.round_trip / self.exchange
    }

    /// How many times as long as a plain request the server works on one with NTS.
    pub(super) fn server_factor(&self) -> f64 {
        (self.server[0] + self.server[1]) / self.server[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::nts::tests::{record, records};

    #[test]
    fn interval_of_a_median_is_of_values_and_narrows_with_their_number() {
        let of = |count: u64| median(&(1..=count).collect()).unwrap();
        assert_eq!(of(100), Estimate { value: 50.0, interval: [41.0, 61.0] });
        assert_eq!(of(1), Estimate { value: 1.0, interval: [1.0, 1.0] });
        let [low, high] = of(10_000).interval;
        assert!((low / 4902.0 - 1.0).abs() < 0.001 && (high / 5099.0 - 1.0).abs() < 0.001, "{low} {high}");
        assert_eq!(median(&Sample::default()), None);
    }

    #[test]
    fn interval_of_a_mean_is_of_standard_errors() {
        let found = mean(&[10, 20, 30, 40].into_iter().collect()).unwrap();
        assert_eq!(found.value, 25.0);
        assert!((found.interval[1] - 25.0 - 1.96 * 12.909_944 / 2.0).abs() < 1e-3, "{found:?}");
        assert_eq!(mean(&[7].into_iter().collect()), None);
    }

    #[test]
    fn what_stands_beside_the_published_is_what_comes_closest() {
        let mut records = records();
        let main = |records: &[UnloadedRecord]| Cells::new(records).main().map(|(cell, _)| cell.id());
        for id in ["unloaded", "unloaded-memcached-120us", "unloaded-file-120us", "unloaded-memcached-0"] {
            assert_eq!(main(&records).unwrap(), id);
            records.retain(|record| record.task != id);
        }
        assert_eq!(main(&[]), None);
    }

    #[test]
    fn what_follows_is_computed_as_the_paper_s_is() {
        let derived = Derived::of(&record("unloaded")).unwrap();
        let close =
            |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
        close(derived.exchange, 2_100_000.0);
        close(derived.plain, 400_000.0);
        close(derived.authenticated, 440_000.0);
        close(derived.increase(), 10.0);
        close(derived.difference(), 40.0 / 420.0 * 100.0);
        close(derived.increase_with_exchange(), 535.0);
        close(derived.network_share(), 3.0 * 0.12 / 2.1);
        close(derived.equation_6, 440_000.0 + 400_000.0 - 4_000.0);
        close(derived.server_factor(), 5.0);
    }
}
