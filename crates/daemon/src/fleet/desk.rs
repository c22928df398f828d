//! What the supervisor and the threads that talk to servers have in common: what was read there last, and what this
//! node shows.
//!
//! Neither waits for the other. The supervisor may hang for as long as a disk does, and a server for as long as its
//! deadline: the one finds the newest of what was read, the others go on showing what was in force last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use authentick_fleet::{Name, Node, list};

use super::found::Said;
use super::heard::{FRESH, Heard};
use super::keys::{FleetKind, Shared};
use crate::key_uses::KeyUseHistory;
use crate::metrics::counters::Counter;

/// The state between the threads.
#[derive(Debug)]
pub(crate) struct Desk<K> {
    /// The node as of what is in force.
    shown: ArcSwapOption<Node<Shared<K>>>,
    read: Mutex<Read<K>>,
    /// Since when the node has its document, in Unix seconds.
    pub(crate) since: AtomicU64,
    /// When members were heard of.
    pub(crate) heard: Heard,
    /// How often keys were used here.
    pub(crate) uses: KeyUseHistory,
    /// Wakes the threads that show it.
    bell: Arc<Bell>,
    /// Documents that were refused.
    pub(crate) clashes: Counter,
    /// Members whose keys descend from other first keys than this node's.
    pub(crate) strangers: AtomicUsize,
    /// Servers in which another host writes under the name of this node.
    doubled: Mutex<BTreeSet<usize>>,
    /// Times that the disk began to refuse.
    pub(crate) unwritten: Counter,
}

/// What the supervisor has not heard yet.
#[derive(Debug)]
struct Read<K> {
    /// What each server had when it was read last.
    said: BTreeMap<usize, Vec<Said<K>>>,
    /// Whether the supervisor was told that there is news among it.
    is_told: bool,
}

/// Tells the threads that talk to servers that there is something new to show, of keys of whatever kind.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    turn: Mutex<Turn>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Turn {
    /// How often something new was to be shown.
    number: u64,
    is_over: bool,
}

impl Bell {
    /// Waits for `patience`, or until there is something newer to show than at `seen`, or all is over; returns which
    /// turn it is then, `None` if it is over.
    pub(super) fn wait(&self, seen: u64, patience: Duration) -> Option<u64> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let is_quiet = |turn: &mut Turn| !turn.is_over && turn.number == seen;
        let waited = self.news.wait_timeout_while(turn, patience, is_quiet);
        let (turn, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!turn.is_over).then_some(turn.number)
    }

    /// Sends the threads that wait home.
    pub(crate) fn end(&self) {
        self.with_turn(|turn| turn.is_over = true);
    }

    fn with_turn(&self, change: impl FnOnce(&mut Turn)) {
        change(&mut self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        self.news.notify_all();
    }
}

impl<K> Desk<K> {
    /// A desk with nothing on it.
    pub(crate) fn new(bell: Arc<Bell>) -> Self {
        Desk {
            shown: ArcSwapOption::empty(),
            read: Mutex::new(Read { said: BTreeMap::new(), is_told: false }),
            since: AtomicU64::new(0),
            heard: Heard::from(Instant::now()),
            uses: KeyUseHistory::default(),
            bell,
            clashes: Counter::default(),
            strangers: AtomicUsize::new(0),
            doubled: Mutex::default(),
            unwritten: Counter::default(),
        }
    }

    /// Notes whether another host writes under the name of this node in a server.
    pub(super) fn note_double(&self, server: usize, is_doubled: bool) {
        let mut doubled = self.doubled.lock().unwrap_or_else(PoisonError::into_inner);
        if is_doubled {
            doubled.insert(server)
        } else {
            doubled.remove(&server)
        };
    }

    /// Whether another host uses the name of this node.
    pub(crate) fn is_doubled(&self) -> bool {
        !self.doubled.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl<K: FleetKind> Desk<K> {
    /// Puts down what a server had, in place of what it had before; whether the supervisor is to be told that some of
    /// that `is_new`, as it was not.
    pub(super) fn put_down(&self, server: usize, said: Vec<Said<K>>, is_new: bool) -> bool {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.said.insert(server, said);
        is_new && !std::mem::replace(&mut read.is_told, true)
    }

    /// Takes what was put down since.
    pub(super) fn take(&self) -> Vec<Said<K>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.is_told = false;
        std::mem::take(&mut read.said).into_values().flatten().collect()
    }

    /// Has the servers see a node as it is now.
    pub(super) fn show(&self, node: &Node<Shared<K>>) {
        self.shown.store(Some(Arc::new(node.clone())));
        self.bell.with_turn(|turn| turn.number += 1);
    }

    /// The same for a node whose keys in force have not changed, if there is anything to see.
    pub(super) fn show_changes(&self, node: &Node<Shared<K>>) {
        let is_seen = self.shown().is_some_and(|shown| {
            (shown.acknowledgement(), shown.waiting(), shown.answer().is_some())
                == (node.acknowledgement(), node.waiting(), node.answer().is_some())
        });
        if !is_seen {
            self.show(node);
        }
    }

    /// Who writes the keys that this node has, if that is another one, and how long it has said nothing at `now`.
    pub(crate) fn silent_writer(&self, node: &Node<Shared<K>>, now: Instant) -> Option<(Name, Duration)> {
        let writer = &node.on_disk().order()?.writer;
        (writer != node.name()).then(|| (writer.clone(), self.heard.silence(writer, now)))
    }

    /// Members that have written nothing for a minute or more at `now`.
    pub(super) fn silent_members(&self, node: &Node<Shared<K>>, now: Instant) -> BTreeSet<Name> {
        node.others().filter(|name| self.heard.silence(name, now) > FRESH).cloned().collect()
    }

    /// What an operator has to look at at `now`, a line each.
    pub(super) fn notes(&self, now: Instant) -> Vec<String> {
        let Some(node) = self.shown() else { return Vec::new() };
        let (me, what, silent) = (node.name(), K::WORDS, self.silent_members(&node, now));
        let doubled = || format!("fleet: another host is also named {me}; {what} are not rotated");
        let silent = (!silent.is_empty()).then(|| format!("fleet: {} silent; {what}", list(&silent)));
        silent.into_iter().chain(self.is_doubled().then(doubled)).collect()
    }

    /// What is to be seen; `None` before the start.
    pub(crate) fn shown(&self) -> Option<Arc<Node<Shared<K>>>> {
        self.shown.load_full()
    }
}

#[cfg(test)]
mod tests {
    use authentick_proto::keyset::KeySet;

    use super::*;

    #[test]
    fn supervisor_is_told_of_news_once_until_it_has_taken_it() {
        let desk = Desk::<KeySet>::new(Arc::default());
        let put = |is_new| desk.put_down(0, Vec::new(), is_new);
        assert!(!put(false), "the same as before is no news");
        assert!(put(true), "what came before it does not hide it");
        assert!(!put(true) && !put(false), "it is told already");
        desk.take();
        assert!(!put(false) && put(true));
    }
}
