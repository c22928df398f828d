//! Certificates that are renewed while the server runs.
//!
//! Files are compared by their contents, every half minute: whoever renews a certificate may write the files in place,
//! rename others over them, or turn a link, and none of it can be told from the outside. Chain and key come one after
//! the other, so a pair that does not fit yet is refused, and looked at again when it has changed once more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use authentick_net::clock::unix_seconds;

use crate::metrics::counters::Counter;

/// From one look at the files to the next.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// The digest of files' contents.
pub(crate) type Digest = [u8; 32];

/// What is known of the files of a pair, or of several.
#[derive(Debug, Default)]
pub(crate) struct Renewal {
    /// As the files were when they were last put in force, or refused; `None` if there are none to look at.
    seen: Option<Digest>,
    next: Option<Instant>,
}

impl Renewal {
    /// Files with this digest, which are in force, or are about to be.
    pub(crate) fn new(seen: Option<Digest>, now: Instant) -> Self {
        Renewal { seen, next: Some(now + LOOK_INTERVAL) }
    }

    /// Whether the files are others than they were; looks at them only if the last time is long enough ago. Says so
    /// once.
    pub(crate) fn is_due(&mut self, now: Instant, digest: impl FnOnce() -> Option<Digest>) -> bool {
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.next = Some(now + LOOK_INTERVAL);
        let found = digest();
        std::mem::replace(&mut self.seen, found) != found
    }
}

/// How often certificates were put in force after the start, and how often that failed.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    pub(crate) done: Counter,
    pub(crate) failed: Counter,
    /// When it was last done, in Unix seconds.
    last: AtomicU64,
}

impl Reloads {
    pub(crate) fn count(&self, is_done: bool) {
        if is_done {
            self.last.store(unix_seconds(), Ordering::Relaxed);
            self.done.count();
        } else {
            self.failed.count();
        }
    }

    /// When it was last done, in Unix seconds; `None` if never.
    pub(crate) fn last(&self) -> Option<u64> {
        Some(self.last.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_is_told_once_and_not_before_its_time() {
        let start = Instant::now();
        let mut renewal = Renewal::new(Some([1; 32]), start);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!renewal.is_due(at(29), || panic!("it is too early to read")));
        assert!(!renewal.is_due(at(30), || Some([1; 32])));
        assert!(!renewal.is_due(at(59), || panic!("it is too early to read")));
        assert!(renewal.is_due(at(60), || Some([2; 32])));
        assert!(!renewal.is_due(at(90), || Some([2; 32])), "what was refused is not tried again");
        assert!(renewal.is_due(at(120), || Some([1; 32])), "also back to what it was");
        let mut none = Renewal::new(None, start);
        assert!(!none.is_due(at(30), || None));
    }

    #[test]
    fn reloads_are_counted_and_the_last_good_one_has_its_time() {
        let reloads = Reloads::default();
        reloads.count(false);
        assert_eq!((reloads.done.get(), reloads.failed.get(), reloads.last()), (0, 1, None));
        reloads.count(true);
        assert!(reloads.done.get() == 1 && reloads.last().is_some());
    }
}
