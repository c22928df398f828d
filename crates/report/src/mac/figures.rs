//! Medians with their extremes, and ratios that are taken within a round, so that a machine that slows down for a while
//! slows both sides of a ratio.

use super::{Algorithm, Implementation, Instructions, KeyUse, MacRecord, PACKET_SIZE, Side, Spread, Timing};

/// A figure of all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) low: f64,
    /// By nearest rank: a value that was measured.
    pub(super) median: f64,
    pub(super) high: f64,
}

impl Range {
    /// Of a figure that is printed without its extremes.
    pub(super) const fn one(value: f64) -> Self {
        Range { low: value, median: value, high: value }
    }

    /// `None` without values.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        Some(Range { low, median: values[(values.len() - 1) / 2], high })
    }
}

impl Timing {
    /// Thousands of packets a second.
    pub(super) fn throughput_kps(&self) -> Range {
        Range::of(self.ns.iter().map(|ns| 1e6 / ns)).expect("a record has at least one round")
    }

    /// Nanoseconds of a packet.
    pub(super) fn packet_ns(&self) -> Range {
        Range::of(self.ns.iter().copied()).expect("a record has at least one round")
    }

    /// Reference cycles per octet.
    pub(super) fn cycles(&self, reference_hz: f64) -> f64 {
        self.packet_ns().median * reference_hz / 1e9 / f64::from(PACKET_SIZE)
    }

    /// ` (aws-lc)` where that stands in for OpenSSL.
    pub(super) fn foreign(&self) -> &'static str {
        match self.implementation {
            Implementation::AwsLc => " (aws-lc)",
            Implementation::OpenSsl | Implementation::Authentick => "",
        }
    }

    /// How many times as fast as `other` this is, round by round.
    pub(super) fn speed_ratio(&self, other: &Timing) -> Range {
        let ratios = self.ns.iter().zip(&other.ns).map(|(own, other)| other / own);
        Range::of(ratios).expect("a record has at least one round")
    }
}

impl Side {
    pub(super) fn timing(
        &self,
        algorithm: Algorithm,
        implementation: Implementation,
        key: KeyUse,
        batch: u32,
    ) -> Option<&Timing> {
        let wanted = (algorithm, implementation, key, batch);
        self.timings
            .iter()
            .find(|timing| (timing.algorithm, timing.implementation, timing.key, timing.batch) == wanted)
    }

    /// Ours with a kept key.
    pub(super) fn ours(&self, algorithm: Algorithm, batch: u32) -> Option<&Timing> {
        self.timing(algorithm, Implementation::Authentick, KeyUse::Kept, batch)
    }

    /// What ours is compared with: OpenSSL, or aws-lc for algorithms that OpenSSL lacks; one packet at a time.
    pub(super) fn rival(&self, algorithm: Algorithm, key: KeyUse) -> Option<&Timing> {
        let rivals = [Implementation::OpenSsl, Implementation::AwsLc];
        rivals.into_iter().find_map(|implementation| self.timing(algorithm, implementation, key, 1))
    }

    pub(super) fn spread(&self, algorithm: Algorithm, is_ours: bool) -> Option<&Spread> {
        self.spreads.iter().find(|spread| {
            spread.algorithm == algorithm && (spread.implementation == Implementation::Authentick) == is_ours
        })
    }

    /// Ours with a kept key in the batch size that is fastest, and that size.
    pub(super) fn fastest_batch(&self, algorithm: Algorithm) -> Option<&Timing> {
        let of_ours = self.timings.iter().filter(|timing| {
            timing.algorithm == algorithm
                && timing.implementation == Implementation::Authentick
                && timing.key == KeyUse::Kept
                && timing.batch > 1
        });
        of_ours.min_by(|a, b| a.packet_ns().median.total_cmp(&b.packet_ns().median))
    }
}

impl MacRecord {
    /// Batch sizes of ours, in ascending order.
    pub(super) fn batches(&self) -> Vec<u32> {
        let mut batches: Vec<u32> =
            self.sides.iter().flat_map(|side| &side.timings).map(|timing| timing.batch).collect();
        batches.sort_unstable();
        batches.dedup();
        batches
    }

    /// How many times as fast the same is with the instructions as without, round by round.
    pub(super) fn worth(&self, find: impl Fn(&Side) -> Option<&Timing>) -> Option<Range> {
        let [with, without] =
            [Instructions::With, Instructions::Without].map(|which| self.side(which).and_then(&find));
        Some(with?.speed_ratio(without?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::tests::record;

    #[test]
    fn medians_are_values_and_ratios_are_taken_within_rounds() {
        let timing = |ns: &[f64]| Timing {
            algorithm: Algorithm::Md5,
            implementation: Implementation::Authentick,
            key: KeyUse::Kept,
            batch: 1,
            ns: ns.to_vec(),
        };
        // The machine is half as fast in the second round: the ratio is not affected.
        let (fast, slow) = (timing(&[100.0, 200.0, 100.0, 125.0]), timing(&[200.0, 400.0, 200.0, 250.0]));
        assert_eq!(fast.speed_ratio(&slow), Range { low: 2.0, median: 2.0, high: 2.0 });
        assert_eq!(fast.throughput_kps(), Range { low: 5000.0, median: 8000.0, high: 10_000.0 });
        assert_eq!(fast.packet_ns().median, 100.0);
        assert!((fast.cycles(2.4e9) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn rival_is_openssl_or_else_aws_lc() {
        let record = record();
        let side = record.side(Instructions::With).unwrap();
        let rival = |algorithm| side.rival(algorithm, KeyUse::Kept).unwrap().implementation;
        assert_eq!(rival(Algorithm::Cmac128), Implementation::OpenSsl);
        assert_eq!(rival(Algorithm::GmacSiv128), Implementation::AwsLc);
        assert_eq!(record.batches(), [1, 4, 16, 64]);
        let batch = side.fastest_batch(Algorithm::Cmac128).unwrap();
        assert_eq!(batch.batch, 64);
    }
}
