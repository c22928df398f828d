//! A thread that reads the memcached each second, and adds there what is missing. It replaces nothing, ever.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;

use super::desk::{Desk, Shown};
use super::hours::{Hour, VALUE_SIZE, VALUE_SIZES};
use crate::config::Endpoint;
use crate::containment::{Containment, ThreadKind};
use crate::fleet::post::{PERIOD, Post, PostCounters};
use crate::fleet::server::{ServerError, Value};
use crate::names::ServerAddresses;
use crate::symmetric::notes;

/// How long a host without a value of its own waits for others to put theirs into an empty memcached.
const GRACE: Duration = Duration::from_secs(5);

/// Why a value is not taken.
const CHANGED: &str = "it is another one than before, and the key of an hour never changes: hosts that take it refuse \
                       this one's cookies. Find out what overwrites it; if all other hosts have taken it, remove this \
                       one's file of values and restart it";
const STRANGE: &str = "it has not 16 to 256 octets";

/// What became of the talk with memcached.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) post: Arc<PostCounters>,
    /// When the last hour ends that this server has a key for, in Unix seconds.
    pub(crate) end: AtomicU64,
}

impl Counters {
    pub(super) fn new(server: Endpoint) -> Self {
        Counters { post: Arc::new(PostCounters::new(server)), end: AtomicU64::new(0) }
    }

    /// What stays as it is while memcached cannot be used.
    fn left(&self) -> String {
        let until = match self.end.load(Ordering::Relaxed) {
            0 => "there are none yet".to_owned(),
            end => format!("there are some for the hours until {}", notes::time(end)),
        };
        format!("the keys in force stay, and {until}")
    }
}

/// The thread's work.
#[derive(Debug)]
pub(crate) struct Link {
    desk: Arc<Desk>,
    counters: Arc<Counters>,
    post: Post,
    entropy: Entropy,
    /// Since when values were missing that this host does not have, and it had none.
    empty: Option<Instant>,
    /// What was not taken, as the log has it.
    refused: BTreeMap<Hour, &'static str>,
}

impl Link {
    pub(super) fn new(
        desk: Arc<Desk>,
        counters: Arc<Counters>,
        addresses: ServerAddresses,
        mut entropy: Entropy,
    ) -> Self {
        let post = Post::new(Arc::clone(&counters.post), addresses, &mut entropy, Instant::now());
        Link { desk, counters, post, entropy, empty: None, refused: BTreeMap::new() }
    }

    /// Works until all is over.
    pub(crate) fn run(mut self, containment: &Containment) {
        containment.enter(ThreadKind::Fleet);
        loop {
            self.round(Instant::now());
            if !self.desk.wait(PERIOD) {
                return;
            }
        }
    }

    pub(super) fn round(&mut self, now: Instant) {
        let Some(shown) = self.desk.shown() else { return };
        let hours: Vec<Hour> = shown.hour.window().collect();
        let names: Vec<_> = hours.iter().map(|hour| hour.name()).collect();
        let Some(values) = self.post.read(&names, || self.counters.left()) else { return };
        let found: BTreeMap<Hour, Value> =
            hours.iter().copied().zip(values).filter_map(|(hour, value)| Some((hour, value?))).collect();
        let missing: Vec<Hour> = hours.into_iter().filter(|hour| !found.contains_key(hour)).collect();
        self.take(found, &shown, now);
        if let Err(error) = self.add(&missing, &shown, now) {
            self.post.fail(&error, || self.counters.left());
        }
    }

    /// Puts down what is new, and says what is not taken.
    fn take(&mut self, found: BTreeMap<Hour, Value>, shown: &Shown, now: Instant) {
        let mut refused = BTreeMap::new();
        let mut new = Vec::new();
        for (hour, Value { octets, .. }) in found {
            match shown.values.get(&hour) {
                Some(known) if *known == octets => {}
                Some(_) => drop(refused.insert(hour, CHANGED)),
                None if VALUE_SIZES.contains(&octets.len()) => new.push((hour, octets)),
                None => drop(refused.insert(hour, STRANGE)),
            }
        }
        self.post.tell(refused, &mut self.refused, now, |hour| {
            format!("the value under {} is refused", hour.name())
        });
        self.desk.put_down(new);
    }

    /// Adds what is missing: what this host has, or fresh octets. Of the latter, what memcached shows afterwards
    /// counts, as another host may have been faster.
    fn add(&mut self, missing: &[Hour], shown: &Shown, now: Instant) -> Result<(), ServerError> {
        let waits = shown.values.is_empty() && !missing.is_empty();
        let since = if waits { *self.empty.get_or_insert(now) } else { now };
        self.empty = self.empty.filter(|_| waits);
        if waits && now.duration_since(since) < GRACE {
            return Ok(());
        }
        for hour in missing {
            let fresh = || self.entropy.array::<VALUE_SIZE>().to_vec();
            let value = shown.values.get(hour).cloned().unwrap_or_else(fresh);
            self.post.put(&hour.name(), &value, None, now)?;
        }
        Ok(())
    }
}
