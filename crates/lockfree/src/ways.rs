//! Rates of many, of whom few are remembered: the generic cell rate algorithm in a word for each, and a few words that
//! those share whose hashes meet.
//!
//! ```text
//! 63          44 43                                0
//! | tag, 20 bits | full again at, us, modulo 2^44  |     a word of zero is free
//! ```
//!
//! When all words are in use by others, the one that is nearest to full again gives way.
//!
//! # What holds
//! Let `threads` ask at once, and let `counted` be the requests of a tag that changed a word.
//! - A word belongs to one tag: tag and time are one value, and change together.
//! - While the tag keeps its word, `counted` is at most the burst, and one more for each interval that has passed; none
//!   is refused before.
//! - What has lost [`ATTEMPT_COUNT`] races is admitted and not counted. Each of these races was lost to a change of a
//!   word, and a thread loses only one race to it. So at most `changes * (threads - 1) / ATTEMPT_COUNT` are admitted
//!   without being counted; with fewer than [`ATTEMPT_COUNT`] changes there is none.
//! - A tag without a word is admitted. If all words are in use by others, several threads with readings of the clock
//!   that differ may then put out a different word each, and so admit one request each. The first of these words counts
//!   from then on: at most `min(threads, N) - 1` more than the burst, and only after the tag was forgotten.
//!
//! All accesses are relaxed. The decision depends on one word, and nothing else is read because of it; the other words
//! only say which one it is. An update compares with the last value that the word had, whatever was loaded, so none is
//! lost; and a thread that has lost a race never sees an older value of that word again.

use std::array;
use std::sync::atomic::Ordering;

use crate::Allowance;
use crate::sync::AtomicU64;

const TIME_BITS: u32 = 44;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// How many times an update is tried while other workers change the same word. After that the request is admitted.
const ATTEMPT_COUNT: usize = 4;

/// How far a reading of the clock may lie behind another that was used before it: as long as a thread may be kept from
/// running between its look at the clock and its look at the word. Without this a request that comes so late would take
/// a word that is far ahead for one of long ago, and give the whole burst back. A word that was left alone for just
/// under 2^44 us, which are 203 days, looks like this too, and is refused for so long.
const BEHIND_MAX_US: u64 = 1 << 24;

/// The words of `N` tags.
#[derive(Debug)]
pub struct Ways<const N: usize = 4>([AtomicU64; N]);

impl<const N: usize> Default for Ways<N> {
    /// All are free.
    fn default() -> Self {
        const { assert!(N > 0, "somebody has to be remembered") };
        Ways(array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl<const N: usize> Ways<N> {
    /// Whether a request is within the `allowance`; counts it if it is. The upper twenty bits of `hash` tell who asks
    /// from others here. `now_us` comes from a monotonic clock.
    #[inline]
    pub fn admit(&self, hash: u64, allowance: &Allowance, now_us: u64) -> bool {
        self.admit_within(ATTEMPT_COUNT, hash, allowance, now_us)
    }

    #[inline]
    fn admit_within(&self, attempt_count: usize, hash: u64, allowance: &Allowance, now_us: u64) -> bool {
        let (tag, now) = (tag_of(hash), now_us & TIME_MASK);
        for _ in 0..attempt_count {
            let words = self.words();
            let way = words.iter().position(|word| word >> TIME_BITS == tag).unwrap_or_else(|| {
                let ahead = |word: u64| if word == 0 { 0 } else { 1 + ahead_of(word, allowance, now) };
                (0..N).min_by_key(|&way| ahead(words[way])).unwrap_or(0)
            });
            let known = words[way] >> TIME_BITS == tag;
            let ahead = if known { ahead_of(words[way], allowance, now) } else { 0 };
            if ahead > allowance.tolerance_us() {
                return false;
            }
            let next = tag << TIME_BITS | (now + ahead + allowance.interval_us()) & TIME_MASK;
            // Not the weak one: it may fail without a race.
            let changed =
                self.0[way].compare_exchange(words[way], next, Ordering::Relaxed, Ordering::Relaxed);
            if changed.is_ok() {
                return true;
            }
        }
        true
    }

    /// Whether [`Ways::admit`] would say yes now; counts nothing. For callers that ask several and take from all of
    /// them or from none.
    #[inline]
    pub fn has_room(&self, hash: u64, allowance: &Allowance, now_us: u64) -> bool {
        let mut own = self.words().into_iter().filter(|word| word >> TIME_BITS == tag_of(hash));
        own.all(|word| ahead_of(word, allowance, now_us & TIME_MASK) <= allowance.tolerance_us())
    }

    #[inline]
    fn words(&self) -> [u64; N] {
        self.0.each_ref().map(|word| word.load(Ordering::Relaxed))
    }
}

/// Not zero, so that no word in use is zero.
const fn tag_of(hash: u64) -> u64 {
    let tag = hash >> TIME_BITS;
    if tag == 0 { 1 } else { tag }
}

/// Microseconds until the bucket of `word` is full again. A time that is further ahead than any request could have put
/// it lies in the past.
#[inline]
const fn ahead_of(word: u64, allowance: &Allowance, now: u64) -> u64 {
    let ahead = (word & TIME_MASK).wrapping_sub(now) & TIME_MASK;
    if ahead > allowance.ahead_max_us().saturating_add(BEHIND_MAX_US) { 0 } else { ahead }
}

#[cfg(test)]
mod tests;
