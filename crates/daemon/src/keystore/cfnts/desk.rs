//! What the supervisor and the thread that talks to memcached have in common. Neither waits for the other: the one may
//! hang for as long as a disk does, and the other for as long as its deadlines.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::hours::Hour;

/// What memcached is to have, as the supervisor sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The hour around which values are wanted.
    pub(super) hour: Hour,
    /// What this server has: memcached is to have the same.
    pub(super) values: BTreeMap<Hour, Vec<u8>>,
}

/// The state between the two.
#[derive(Debug, Default)]
pub(super) struct Desk {
    state: Mutex<State>,
    end: Condvar,
}

#[derive(Debug, Default)]
struct State {
    shown: Option<Shown>,
    found: BTreeMap<Hour, Vec<u8>>,
    is_over: bool,
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn show(&self, shown: Shown) {
        self.state().shown = Some(shown);
    }

    /// What is wanted; `None` before the start, and as long as nobody knows the hour.
    pub(super) fn shown(&self) -> Option<Shown> {
        self.state().shown.clone()
    }

    /// Puts down values that were read. What was read of an hour before stays.
    pub(super) fn put_down(&self, found: impl IntoIterator<Item = (Hour, Vec<u8>)>) {
        let mut state = self.state();
        for (hour, value) in found {
            state.found.entry(hour).or_insert(value);
        }
    }

    /// Takes what was put down since.
    pub(super) fn take(&self) -> BTreeMap<Hour, Vec<u8>> {
        std::mem::take(&mut self.state().found)
    }

    /// Waits; false if all is over.
    pub(super) fn wait(&self, patience: Duration) -> bool {
        let waited = self.end.wait_timeout_while(self.state(), patience, |state| !state.is_over);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_over
    }

    /// Sends who waits home.
    pub(super) fn end(&self) {
        self.state().is_over = true;
        self.end.notify_all();
    }
}
