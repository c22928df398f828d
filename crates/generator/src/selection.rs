//! Single operations of a step: all of them, or a sample where there are too many.
//!
//! Who keeps a sample of operations ranks them here, by what client and server both know of each: so two samples of the
//! same operations differ in size alone, and the smaller one is within the larger.

use std::net::{IpAddr, SocketAddr};

use crate::plan::Joinable;

/// Something that is told from others by what client and server both know of it.
pub trait Ranked {
    /// Its place in every sample: see [`rank`].
    fn rank(&self) -> u64;
}

impl Ranked for Joinable {
    fn rank(&self) -> u64 {
        rank(self.source, self.transmit)
    }
}

/// Single operations that are kept, at most so many. Once there are more, every other one is, then every fourth and so
/// on, by their ranks: early and late ones, and those of all clients, alike.
#[derive(Debug)]
pub struct Selection<T> {
    kept: Vec<T>,
    count_max: usize,
    /// Those are kept in whose rank these bits are zero.
    mask: u64,
    left_out: u64,
}

impl<T: Ranked> Selection<T> {
    /// An empty one of at most `count_max`.
    #[must_use]
    pub const fn new(count_max: usize) -> Self {
        Selection { kept: Vec::new(), count_max, mask: 0, left_out: 0 }
    }

    /// Whether what has this rank is within the sample, if there is such a thing.
    #[must_use]
    pub const fn covers(&self, rank: u64) -> bool {
        rank & self.mask == 0
    }

    /// What is kept now.
    #[must_use]
    pub fn kept(&self) -> &[T] {
        &self.kept
    }

    /// Adds one, or counts it as left out.
    pub fn push(&mut self, one: T) {
        let rank = one.rank();
        while self.kept.len() == self.count_max && self.covers(rank) && self.mask != u64::MAX {
            self.mask = self.mask << 1 | 1;
            let (before, mask) = (self.kept.len(), self.mask);
            self.kept.retain(|kept| kept.rank() & mask == 0);
            self.left_out += (before - self.kept.len()) as u64;
        }
        match self.covers(rank) && self.kept.len() < self.count_max {
            true => self.kept.push(one),
            false => self.left_out += 1,
        }
    }

    /// What was kept, and how many were not. It is empty afterwards.
    pub fn take(&mut self) -> (Vec<T>, u64) {
        let whole = std::mem::replace(self, Selection::new(self.count_max));
        (whole.kept, whole.left_out)
    }
}

impl<T: Ranked> Extend<T> for Selection<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, more: I) {
        more.into_iter().for_each(|one| self.push(one));
    }
}

/// The rank of a request with this transmit timestamp from `source`, or of a key exchange from there. It is the same in
/// every process: hosts and builds that are compared draw one sample.
#[must_use]
pub fn rank(source: SocketAddr, transmit: Option<u64>) -> u64 {
    let address = match source.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    };
    let kind = u64::from(source.port()) << 1 | u64::from(transmit.is_some());
    let words = [(address >> 64) as u64, address as u64, kind, transmit.unwrap_or(0)];
    words.into_iter().fold(0, |rank, word| mixed(rank ^ word))
}

/// A step of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
const fn mixed(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
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
        selection.extend((0..100).map(joinable));
        let (kept, left_out) = selection.take();
        assert_eq!((kept.len(), left_out), (100, 0));
        assert_eq!(selection.take(), (Vec::new(), 0));
    }

    #[test]
    fn beyond_that_early_and_late_ones_are_kept_alike_and_the_rest_is_counted() {
        let mut selection = Selection::new(1000);
        selection.extend((0..100_000).map(joinable));
        let (kept, left_out) = selection.take();
        assert_eq!(kept.len() as u64 + left_out, 100_000);
        assert!((400..=1000).contains(&kept.len()), "{}", kept.len());
        let early = kept.iter().filter(|joinable| joinable.whole_ns < 50_000).count();
        assert!(early.abs_diff(kept.len() - early) < 150, "{early} of {}", kept.len());
    }

    #[test]
    fn copies_of_one_do_not_outgrow_it() {
        let mut selection = Selection::new(10);
        selection.extend((0..1000).map(|_| joinable(7)));
        let (kept, left_out) = selection.take();
        assert_eq!(kept.len() as u64 + left_out, 1000);
        assert!(kept.len() <= 10);
    }

    #[test]
    fn smaller_sample_is_within_the_larger_whatever_the_order() {
        let (mut small, mut large) = (Selection::new(500), Selection::new(3000));
        small.extend((0..50_000).map(joinable));
        large.extend((0..50_000).rev().map(joinable));
        assert!(small.kept().len() > 200 && large.kept().len() > 1200);
        assert!(small.kept().iter().all(|one| large.kept().contains(one)));
        assert!(small.kept().iter().all(|one| small.covers(one.rank())));
        assert!(large.kept().iter().any(|one| !small.covers(one.rank())));
    }

    #[test]
    fn ranks_stay_what_they_are_and_tell_addresses_ports_kinds_and_timestamps_apart() {
        let v4: SocketAddr = "192.0.2.1:1000".parse().unwrap();
        let others = ["192.0.2.2:1000", "192.0.2.1:1001", "[2001:db8::1]:1000", "[2001:db9::1]:1000"];
        let others = others.map(|text| rank(text.parse().unwrap(), Some(7)));
        let mut ranks = vec![rank(v4, Some(7)), rank(v4, Some(8)), rank(v4, Some(0)), rank(v4, None)];
        ranks.extend(others);
        ranks.sort_unstable();
        ranks.dedup();
        assert_eq!(ranks.len(), 8);
        assert_eq!(rank(v4, Some(7)), 0xbeb2_186b_7ff7_dc58);
    }
}
