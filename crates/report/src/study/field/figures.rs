//! Medians over rounds, and shares of the same server's plain rate, which are taken within a round.
//!
//! A trial in which the generator did not do its part is shown and not counted.

use super::{Cell, FieldRecord, Scheme, Server, Trial};
use crate::load::Limit;
use crate::stats::bootstrap::Estimate;

/// Shares of the plain rate of the same server in the same round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shares {
    /// Of trials that count, beside plain ones that do.
    pub(super) counted: Vec<f64>,
    /// The others.
    pub(super) void: Vec<f64>,
}

impl Shares {
    pub(super) fn estimate(&self) -> Option<Estimate> {
        Estimate::of(self.counted.iter().copied())
    }
}

impl FieldRecord {
    /// The trials of a cell, in the order of measuring.
    pub(super) fn trials(&self, cell: Cell) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(move |trial| trial.cell == cell)
    }

    /// Those that count.
    pub(super) fn counted(&self, cell: Cell) -> impl Iterator<Item = &Trial> {
        self.trials(cell).filter(|trial| trial.why_invalid.is_none())
    }

    /// A figure of the trials that count and have it.
    pub(super) fn estimate(&self, cell: Cell, figure: impl Fn(&Trial) -> Option<f64>) -> Option<Estimate> {
        Estimate::of(self.counted(cell).filter_map(figure))
    }

    /// Answers for a second of processor time as shares of those to plain requests.
    pub(super) fn shares(&self, cell: Cell) -> Shares {
        self.ratios(cell, Trial::core_rps)
    }

    /// Answers a second in the same way, of rounds in which the server was the limit of both.
    pub(super) fn rate_shares(&self, cell: Cell) -> Shares {
        self.ratios(cell, |trial| (trial.limited_by == Limit::Server).then_some(trial.answered_rps))
    }

    fn ratios(&self, cell: Cell, figure: impl Fn(&Trial) -> Option<f64>) -> Shares {
        let plain = Cell { scheme: Scheme::Plain, ..cell };
        let mut shares = Shares::default();
        for trial in self.trials(cell) {
            let beside = self.trials(plain).find(|other| other.round == trial.round);
            let Some(beside) = beside else { continue };
            let Some((over, under)) = figure(trial).zip(figure(beside)) else { continue };
            if !(under > 0.0 && over / under < f64::INFINITY) {
                continue;
            }
            let counts = trial.why_invalid.is_none() && beside.why_invalid.is_none();
            let which = if counts { &mut shares.counted } else { &mut shares.void };
            which.push(over / under);
        }
        shares
    }

    /// The key exchanges of a server that count.
    pub(super) fn exchanges_counted(&self, server: Server) -> impl Iterator<Item = &Trial> {
        let is_of = move |trial: &&Trial| trial.cell.server == server && trial.why_invalid.is_none();
        self.exchanges.iter().filter(is_of)
    }

    /// A figure of these.
    pub(super) fn exchange(
        &self,
        server: Server,
        figure: impl Fn(&Trial) -> Option<f64>,
    ) -> Option<Estimate> {
        Estimate::of(self.exchanges_counted(server).filter_map(figure))
    }

    /// Processor time of a key exchange as a multiple of ours in the same round.
    pub(super) fn exchange_ratio(&self, server: Server) -> Option<Estimate> {
        let ratio = |trial: &Trial| {
            let mut ours = self.exchanges_counted(Server::Authentick);
            let ours = ours.find(|other| other.round == trial.round)?;
            Some(trial.cpu_us? / ours.cpu_us?)
        };
        Estimate::of(self.exchanges_counted(server).filter_map(ratio))
    }

    /// The servers that there is a trial of.
    pub(super) fn servers(&self) -> Vec<Server> {
        let trials = self.trials.iter().chain(&self.exchanges);
        let is_there = |server: &Server| trials.clone().any(|trial| trial.cell.server == *server);
        Server::ALL.into_iter().filter(is_there).collect()
    }

    /// The cells that there is a trial of, server after server.
    pub(super) fn measured(&self) -> Vec<Cell> {
        let cells =
            Server::ALL.into_iter().flat_map(|server| Scheme::ALL.map(|scheme| Cell { server, scheme }));
        cells.into_iter().filter(|cell| self.trials(*cell).next().is_some()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    const NTS: Cell = Cell { server: Server::Chrony, scheme: Scheme::Nts15 };

    #[test]
    fn shares_are_taken_within_a_round() {
        let mut record = record();
        let shares = record.shares(NTS);
        assert_eq!((shares.counted.len(), shares.void.len()), (3, 0));
        assert!((shares.estimate().unwrap().median - 5.0 / 8.0).abs() < 1e-9, "{shares:?}");
        // The machine is half as fast in the second round: a share does not change.
        for trial in record.trials.iter_mut().filter(|trial| trial.round == 2) {
            trial.cpu_us = trial.cpu_us.map(|us| us * 2.0);
        }
        let slow = record.shares(NTS);
        let differ = |(one, other): (&f64, &f64)| (one - other).abs() > 1e-9;
        assert!(!shares.counted.iter().zip(&slow.counted).any(differ), "{slow:?}");
    }

    #[test]
    fn what_does_not_count_or_has_no_plain_rate_beside_it_is_in_no_estimate() {
        let mut record = record();
        let plain = Cell { scheme: Scheme::Plain, ..NTS };
        record.trials.retain(|trial| trial.cell != plain || trial.round != 1);
        let second = record.trials.iter_mut().find(|trial| trial.cell == plain && trial.round == 2).unwrap();
        second.why_invalid = Some("it fell behind".to_owned());
        let shares = record.shares(NTS);
        assert_eq!((shares.counted.len(), shares.void.len()), (1, 1));
        assert_eq!(shares.estimate().unwrap().interval, None);
        record.trials.retain(|trial| trial.cell != plain);
        assert_eq!(record.shares(NTS), Shares::default());
    }

    #[test]
    fn key_exchanges_are_compared_within_a_round() {
        let mut record = record();
        let of = |record: &FieldRecord| record.exchange_ratio(Server::Chrony).unwrap();
        assert!((of(&record).median - 2.5).abs() < 1e-9);
        for trial in record.exchanges.iter_mut().filter(|trial| trial.round == 3) {
            trial.cpu_us = trial.cpu_us.map(|us| us * 4.0);
        }
        assert_eq!(of(&record).interval, Some([2.5, 2.5]));
        let ours = record.exchanges.iter_mut().filter(|trial| trial.cell.server == Server::Authentick);
        ours.for_each(|trial| trial.why_invalid = Some("it fell behind".to_owned()));
        assert_eq!(record.exchange_ratio(Server::Chrony), None);
        assert!(record.exchange(Server::Chrony, |trial| trial.cpu_us).is_some());
    }

    #[test]
    fn rates_are_compared_where_the_server_was_the_limit_of_both() {
        let mut record = record();
        assert_eq!(record.rate_shares(NTS).counted.len(), 3);
        let plain = |trial: &&mut Trial| trial.cell == Cell { scheme: Scheme::Plain, ..NTS };
        record.trials.iter_mut().find(plain).unwrap().limited_by = Limit::Generator;
        assert_eq!(record.rate_shares(NTS).counted.len(), 2);
    }
}
