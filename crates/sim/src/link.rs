//! A link between two hosts, the same in both directions unless said otherwise.

use authentick_crypto::Entropy;

/// What happens to a datagram on its way. Shares are in parts of a million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Shortest way from client to server, in nanoseconds.
    pub there_ns: u64,
    /// Shortest way back.
    pub back_ns: u64,
    /// The most that queues add, evenly distributed; enough of it reorders.
    pub jitter_ns: u64,
    /// Datagrams that never arrive.
    pub lost_ppm: u64,
    /// Datagrams that arrive twice.
    pub duplicated_ppm: u64,
    /// Datagrams of which one bit is flipped.
    pub damaged_ppm: u64,
}

impl Link {
    /// The copies of `datagram` that arrive, each with its delay after `shortest_ns`.
    pub(crate) fn carry(
        &self,
        datagram: &[u8],
        shortest_ns: u64,
        entropy: &mut Entropy,
    ) -> Vec<(u64, Vec<u8>)> {
        let mut happens = |share_ppm: u64| entropy.u64() % 1_000_000 < share_ppm;
        let (lost, duplicated, damaged) =
            (happens(self.lost_ppm), happens(self.duplicated_ppm), happens(self.damaged_ppm));
        let count = if lost { 0 } else { 1 + usize::from(duplicated) };
        let mut copies = Vec::with_capacity(count);
        for _ in 0..count {
            let delay = shortest_ns + entropy.u64() % (self.jitter_ns + 1);
            let mut copy = datagram.to_vec();
            if damaged && !copy.is_empty() {
                let bit = entropy.u64() as usize % (copy.len() * 8);
                copy[bit / 8] ^= 1 << (bit % 8);
            }
            copies.push((delay, copy));
        }
        copies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept() {
        let link = Link { lost_ppm: 250_000, duplicated_ppm: 500_000, ..Link::default() };
        let mut entropy = Entropy::from_seed(1);
        let counts: Vec<usize> = (0..4000).map(|_| link.carry(&[1], 5, &mut entropy).len()).collect();
        let of = |count| counts.iter().filter(|&&c| c == count).count();
        assert!(of(0).abs_diff(1000) < 120 && of(2).abs_diff(1500) < 150, "{} {}", of(0), of(2));
    }
}
