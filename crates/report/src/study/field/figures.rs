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

/// What shares of the plain rate are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// Answers for a second of the server's processor time.
    ProcessorTime,
    /// Answers a second, whatever limited them: nobody knows the server's processor time.
    Answers,
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

    /// What a cell's shares are of: processor time, if it is known of any trial of it or of plain ones.
    pub(super) fn basis(&self, cell: Cell) -> Basis {
        let plain = Cell { scheme: Scheme::Plain, ..cell };
        let is_known = self.trials(cell).chain(self.trials(plain)).any(|trial| trial.cpu_us.is_some());
        if is_known { Basis::ProcessorTime } else { Basis::Answers }
    }

    /// Answers for a second of processor time as shares of those to plain requests; answers a second, if nobody knows
    /// that time.
    pub(super) fn shares(&self, cell: Cell) -> Shares {
        match self.basis(cell) {
            Basis::ProcessorTime => self.ratios(cell, Trial::core_rps),
            Basis::Answers => self.ratios(cell, |trial| Some(trial.answered_rps)),
        }
    }

    /// Octets of the largest answer by those of the largest request, at the cell of a server where that is most; `None`
    /// if nothing is known of it.
    pub(super) fn amplification(&self, server: Server) -> Option<f64> {
        let cells = Scheme::ALL.map(|scheme| Cell { server, scheme });
        cells.into_iter().filter_map(|cell| self.answer_by_request(cell)).reduce(f64::max)
    }

    /// The same of one cell.
    pub(super) fn answer_by_request(&self, cell: Cell) -> Option<f64> {
        let largest = |size: fn(&Trial) -> u32| self.trials(cell).map(size).max().filter(|&size| size > 0);
        let request = largest(|trial| trial.request_size)?;
        largest(|trial| trial.response_size).map(|answer| f64::from(answer) / f64::from(request))
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
        self.settings.all_servers().filter(is_there).collect()
    }

    /// The cells that there is a trial of, server after server.
    pub(super) fn measured(&self) -> Vec<Cell> {
        let servers = self.settings.all_servers();
        let cells = servers.flat_map(|server| Scheme::ALL.map(|scheme| Cell { server, scheme }));
        cells.filter(|cell| self.trials(*cell).next().is_some()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{record, record_with_given};
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
    fn shares_are_by_answers_where_nobody_knows_processor_time() {
        let (record, server) = record_with_given();
        let nts = Cell { server, scheme: Scheme::Nts15 };
        assert_eq!((record.basis(nts), record.basis(NTS)), (Basis::Answers, Basis::ProcessorTime));
        let median = record.shares(nts).estimate().unwrap().median;
        assert!((median - 5.0 / 8.0).abs() < 1e-9, "{median}");
        assert!(record.rate_shares(nts).counted.is_empty(), "nobody knows whether the server was the limit");
    }

    #[test]
    fn amplification_is_the_most_of_any_scheme() {
        let mut record = record();
        assert_eq!(record.amplification(Server::Authentick), Some(1.0));
        assert_eq!(record.amplification(Server::NtpdRs), None);
        let trial = record.trials.iter_mut().find(|trial| trial.cell == NTS).unwrap();
        trial.response_size = 2 * trial.request_size;
        assert_eq!(record.amplification(Server::Chrony), Some(2.0));
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
