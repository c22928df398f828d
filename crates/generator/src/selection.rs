//! Single operations of a step: all of them, or a sample where there are too many.

use crate::plan::Joinable;

/// Single operations that are kept, at most so many. Once there are more, every other one is, then every fourth and so
/// on, as a hash of each tells: early and late ones, and those of all clients, alike.
#[derive(Debug)]
pub(crate) struct Selection {
    kept: Vec<Joinable>,
    count_max: usize,
    /// Those are kept in whose hash these bits are zero.
    mask: u64,
    left_out: u64,
}

impl Selection {
    /// An empty one of at most `count_max`.
    pub(crate) const fn new(count_max: usize) -> Self {
        Selection { kept: Vec::new(), count_max, mask: 0, left_out: 0 }
    }

    /// Adds one, or counts it as left out.
    pub(crate) fn push(&mut self, joinable: Joinable) {
        while self.kept.len() == self.count_max && rank(&joinable) & self.mask == 0 && self.mask != u64::MAX {
            self.mask = self.mask << 1 | 1;
            let before = self.kept.len();
            self.kept.retain(|joinable| rank(joinable) & self.mask == 0);
            self.left_out += (before - self.kept.len()) as u64;
        }
        match rank(&joinable) & self.mask {
            0 if self.kept.len() < self.count_max => self.kept.push(joinable),
            _ => self.left_out += 1,
        }
    }

    /// What was kept, and how many were not. It is empty afterwards.
    pub(crate) fn take(&mut self) -> (Vec<Joinable>, u64) {
        let whole = std::mem::replace(self, Selection::new(self.count_max));
        (whole.kept, whole.left_out)
    }
}

/// SplitMix64's finaliser over what tells an operation from others.
fn rank(joinable: &Joinable) -> u64 {
    let z = joinable.transmit.unwrap_or(joinable.whole_ns) ^ u64::from(joinable.source.port()) << 40;
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joinable(number: u64) -> Joinable {
        Joinable { source: "127.0.0.1:9".parse().unwrap(), transmit: Some(number), whole_ns: number }
    }

    #[test]
    fn all_are_kept_as_long_as_there_is_room() {
        let mut selection = Selection::new(100);
        (0..100).for_each(|number| selection.push(joinable(number)));
        let (kept, left_out) = selection.take();
        assert_eq!((kept.len(), left_out), (100, 0));
        assert_eq!(selection.take(), (Vec::new(), 0));
    }

    #[test]
    fn beyond_that_early_and_late_ones_are_kept_alike_and_the_rest_is_counted() {
        let mut selection = Selection::new(1000);
        (0..100_000).for_each(|number| selection.push(joinable(number)));
        let (kept, left_out) = selection.take();
        assert_eq!(kept.len() as u64 + left_out, 100_000);
        assert!((400..=1000).contains(&kept.len()), "{}", kept.len());
        let early = kept.iter().filter(|joinable| joinable.whole_ns < 50_000).count();
        assert!(early.abs_diff(kept.len() - early) < 150, "{early} of {}", kept.len());
    }

    #[test]
    fn copies_of_one_do_not_outgrow_it() {
        let mut selection = Selection::new(10);
        (0..1000).for_each(|_| selection.push(joinable(7)));
        let (kept, left_out) = selection.take();
        assert_eq!(kept.len() as u64 + left_out, 1000);
        assert!(kept.len() <= 10);
    }
}
