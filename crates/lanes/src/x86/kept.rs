//! Keys of MACs, expanded once and kept: each lane reads its own where it lies, or all lanes read one.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::block::{BLOCK_SIZE, Block, Blocks};
use super::cmac::subkeys;
use super::mac::MacJob;
use super::message::PerLane;
use super::polyval;
use super::schedule::{ROUND_KEYS_MAX, RoundKeys, Schedules, rounds, wipe};
use crate::Mac;

/// An expanded key. It begins where a line of the cache does, and one of AES-128 has four of them.
#[derive(Zeroize, ZeroizeOnDrop)]
#[repr(C, align(64))]
pub(super) struct KeptKey {
    /// CMAC: K1 and K2. GMAC: the keys of POLYVAL. GMAC-SIV: nothing.
    masks: [Block; 2],
    rounds: [Block; ROUND_KEYS_MAX],
}

impl KeptKey {
    /// Expands a key of `WORDS` words.
    #[inline(always)]
    pub(super) fn new<V: Blocks, const WORDS: usize>(mac: Mac, octets: &[u8]) -> Self {
        assert_eq!(octets.len(), 4 * WORDS, "the size was checked");
        // SAFETY: a key has at least sixteen octets.
        let part = |offset: usize| unsafe { V::gather(|_| octets[offset..].as_ptr(), 0) };
        let mut parts = [[[part(0)]], [[part(4 * WORDS - BLOCK_SIZE)]]];
        // SAFETY: `expand` puts in the round keys of `WORDS` words.
        let mut schedules: Schedules<V, 1, 1> = unsafe { Schedules::new() };
        schedules.expand::<WORDS, 1>(&parts);
        parts.iter_mut().for_each(wipe);
        let first = |register: V| PerLane::<1>::of(&[register]).0[0];
        let mut out = KeptKey { masks: [[0; BLOCK_SIZE]; 2], rounds: [[0; BLOCK_SIZE]; ROUND_KEYS_MAX] };
        for (round, out) in out.rounds[..=rounds(WORDS)].iter_mut().enumerate() {
            *out = first(schedules.round_key(0, round, 0));
        }
        match mac {
            Mac::Cmac128 | Mac::Cmac256 => {
                out.masks = subkeys::<V, 1, WORDS>(&schedules, 0).map(|[mask]| first(mask));
            }
            Mac::Gmac128 => {
                let mut subkey = [V::zero()];
                schedules.encrypt::<WORDS>(0, &mut subkey);
                let keys = polyval::Keys::<V, 1>::of_ghash(first(subkey[0]));
                out.masks = keys.parts().map(|[mask]| first(mask));
            }
            Mac::GmacSiv128 => {}
        }
        schedules.wipe::<WORDS>(1);
        out
    }
}

/// Where a lane's mask number `which` and its round keys are read.
pub(super) trait Kept<V: Blocks, const N: usize>: RoundKeys<V, N> {
    /// The masks of all lanes.
    fn masks(&self, which: usize) -> [V; N];
}

/// One key for all lanes.
impl<V: Blocks, const N: usize> RoundKeys<V, N> for &KeptKey {
    #[inline(always)]
    fn round_key(&self, _: usize, round: usize, _: usize) -> V {
        V::broadcast(self.rounds[round])
    }
}

impl<V: Blocks, const N: usize> Kept<V, N> for &KeptKey {
    #[inline(always)]
    fn masks(&self, which: usize) -> [V; N] {
        [V::broadcast(self.masks[which]); N]
    }
}

/// A key for each lane.
#[derive(Clone, Copy)]
pub(super) struct Own<'a, const L: usize>(&'a [MacJob; L]);

impl<'a, const L: usize> Own<'a, L> {
    /// # Safety
    /// The keys of the jobs live as long as this value, and were expanded for as many rounds as are asked for.
    #[inline(always)]
    pub(super) unsafe fn new(jobs: &'a [MacJob; L]) -> Self {
        Own(jobs)
    }

    /// Gathers the round keys in one place, where they are read faster. For a packet's three blocks it is not worth it.
    #[inline(always)]
    pub(super) fn gather<V: Blocks, const N: usize, const WORDS: usize>(&self) -> Schedules<V, 1, N> {
        // SAFETY: all round keys of so many words are put in next.
        let mut schedules: Schedules<V, 1, N> = unsafe { Schedules::new() };
        for round in 0..=rounds(WORDS) {
            for index in 0..N {
                schedules.put(0, round, index, self.read_round(round, index));
            }
        }
        schedules
    }

    #[inline(always)]
    fn read_round<V: Blocks>(&self, round: usize, index: usize) -> V {
        // SAFETY: the key is alive, and has this round key.
        self.read(index, |key| unsafe { &raw const (*key).rounds[round] })
    }

    #[inline(always)]
    fn read<V: Blocks>(&self, index: usize, place: impl Fn(*const KeptKey) -> *const Block) -> V {
        // SAFETY: as promised to `new`.
        unsafe { V::gather(|lane| place(self.0[lane].key).cast(), index) }
    }
}

impl<V: Blocks, const N: usize, const L: usize> RoundKeys<V, N> for Own<'_, L> {
    #[inline(always)]
    fn round_key(&self, _: usize, round: usize, index: usize) -> V {
        self.read_round(round, index)
    }
}

impl<V: Blocks, const N: usize, const L: usize> Kept<V, N> for Own<'_, L> {
    #[inline(always)]
    fn masks(&self, which: usize) -> [V; N] {
        // SAFETY: the key is alive, and has two masks.
        std::array::from_fn(|index| self.read(index, |key| unsafe { &raw const (*key).masks[which] }))
    }
}
