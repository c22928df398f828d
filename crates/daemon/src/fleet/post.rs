//! The way to a memcached server: how often it may be gone, what became of that, and what the log has of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_fleet::Order;
use authentick_fleet::memcached::Name;

use super::server::{Put, Server, ServerError, Token, Value};
use crate::allowance::{Allowance, Bucket, LINES};
use crate::config::Endpoint;
use crate::metrics::counters::Counter;
use crate::names::ServerAddresses;

/// How often a server is asked for values, by a line each: less than 3,600 times an hour. Where the names of all do not
/// fit on one line, or their values into one response, it is read once in as many of these as it is asked.
pub(crate) const PERIOD: Duration = Duration::from_millis(1050);

/// Values that are put into a server: with those that are saved up, 360 in any hour.
pub(super) const WRITES: Allowance = Allowance { most: 60, an_hour: 300 };

/// What became of the talk with one server.
#[derive(Debug)]
pub(crate) struct PostCounters {
    pub(crate) server: Endpoint,
    /// Whether the last read succeeded.
    pub(crate) is_up: AtomicBool,
    pub(crate) reads: Counter,
    pub(crate) writes: Counter,
    /// Reads and writes that failed.
    pub(crate) failures: Counter,
    /// Values that the server did not take: for lack of memory.
    pub(crate) refused: Counter,
    /// Values found there that are not taken, each time that such a one was new.
    pub(crate) strange: Counter,
    /// Times that a document was found there that is older than the one before.
    pub(crate) older: Counter,
}

impl PostCounters {
    pub(crate) fn new(server: Endpoint) -> Self {
        PostCounters {
            server,
            is_up: AtomicBool::new(false),
            reads: Counter::default(),
            writes: Counter::default(),
            failures: Counter::default(),
            refused: Counter::default(),
            strange: Counter::default(),
            older: Counter::default(),
        }
    }
}

/// The way to one server.
#[derive(Debug)]
pub(crate) struct Post {
    server: Server,
    /// How often it was asked in the last reading.
    fetches: u32,
    counters: Arc<PostCounters>,
    writes: Bucket,
    lines: Bucket,
    /// Why the server cannot be used, as the log has it.
    trouble: Option<String>,
    /// Whether the server had no room, as the log has it.
    is_full: bool,
}

impl Post {
    /// The way to the server of these counters, at one of `addresses`.
    pub(crate) fn new(
        counters: Arc<PostCounters>,
        addresses: ServerAddresses,
        entropy: &mut Entropy,
        now: Instant,
    ) -> Self {
        Post {
            server: Server::new(addresses, Entropy::from_seed(entropy.u64())),
            fetches: 1,
            counters,
            writes: Bucket::full(WRITES, now),
            lines: Bucket::full(LINES, now),
            trouble: None,
            is_full: false,
        }
    }

    /// What lies under these names; `None` if the server cannot be used. `left`: what stays as it is then.
    pub(crate) fn read(
        &mut self,
        names: &[Name],
        left: impl FnOnce() -> String,
    ) -> Option<Vec<Option<Value>>> {
        let before = self.server.fetches();
        let values = self.server.get(names);
        self.fetches = u32::try_from(self.server.fetches() - before).unwrap_or(u32::MAX).max(1);
        let values = match values {
            Ok(values) => values,
            Err(error) => {
                self.fail(&error, left);
                return None;
            }
        };
        (0..self.fetches).for_each(|_| self.counters.reads.count());
        self.counters.is_up.store(true, Ordering::Relaxed);
        if self.trouble.take().is_some() {
            log::info!("memcached {} answers again", self.counters.server);
        }
        Some(values)
    }

    /// How often the server was asked in the last reading, and is likely to be in the next one.
    pub(super) const fn fetches(&self) -> u32 {
        self.fetches
    }

    /// When the server is read next, after a read that began at `began`: as soon as it is no longer left alone.
    pub(super) fn next_read(&self, began: Instant) -> Instant {
        let regular = began + PERIOD * self.fetches;
        self.server.left_alone_until().map_or(regular, |until| until.max(regular))
    }

    /// How many values may be put there now.
    pub(super) fn writes_left(&mut self, now: Instant) -> f64 {
        self.writes.level(now)
    }

    /// Puts `octets` there, unless something else is there than what `token` was given for, or too much was put there
    /// of late; whether they are there now.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub(crate) fn put(
        &mut self,
        name: &Name,
        octets: &[u8],
        token: Option<Token>,
        now: Instant,
    ) -> Result<bool, ServerError> {
        if !self.writes.take(now, 1.0) {
            return Ok(false);
        }
        let counters = &self.counters;
        match self.server.put(name, octets, token)? {
            Put::Stored => {
                counters.writes.count();
                self.is_full = false;
                Ok(true)
            }
            // Whoever was faster had something to say, too: the next round sees what.
            Put::Lost => Ok(false),
            Put::Refused(why) => {
                counters.refused.count();
                if !std::mem::replace(&mut self.is_full, true) {
                    let server = &counters.server;
                    log::error!("memcached {server} does not take {name}: {why}; give it more memory (-m)");
                }
                Ok(false)
            }
        }
    }

    /// The server cannot be used. `left`: what stays as it is then.
    pub(crate) fn fail(&mut self, error: &ServerError, left: impl FnOnce() -> String) {
        if matches!(error, ServerError::NotYet) {
            return;
        }
        let (counters, why) = (&self.counters, error.to_string());
        counters.failures.count();
        counters.is_up.store(false, Ordering::Relaxed);
        if self.trouble.as_ref() != Some(&why) && self.lines.take(Instant::now(), 1.0) {
            log::warn!("memcached {}: {why}; {}", counters.server, left());
            self.trouble = Some(why);
        }
    }

    /// Says that a document there is older than the one before: both.
    pub(crate) fn tell_older(&mut self, now: Instant, before: &Order, found: &Order) {
        self.counters.older.count();
        if self.lines.take(now, 1.0) {
            let server = &self.counters.server;
            log::warn!(
                "memcached {server}: it had {before}, and has {found}; a node with a newer one puts that back"
            );
        }
    }

    /// Says once of each place what is not taken of what lies there, as far as lines go; all are counted. `told`: what
    /// was not taken before.
    pub(crate) fn tell<P: Ord>(
        &mut self,
        strange: BTreeMap<P, &'static str>,
        told: &mut BTreeMap<P, &'static str>,
        now: Instant,
        what: impl Fn(&P) -> String,
    ) {
        for (place, why) in &strange {
            if told.get(place) != Some(why) {
                self.counters.strange.count();
                if self.lines.take(now, 1.0) {
                    log::error!(
                        "memcached {}: {}: {why}; give all members the same fleet.seal-key and fleet.id, or find out \
                         what else writes there",
                        self.counters.server,
                        what(place)
                    );
                }
            }
        }
        *told = strange;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_is_strange_in_turns_is_counted_and_does_not_fill_the_log() {
        let counters = Arc::new(PostCounters::new("192.0.2.9:11211".parse().unwrap()));
        let (now, mut told) = (Instant::now(), BTreeMap::new());
        let mut post =
            Post::new(Arc::clone(&counters), counters.server.clone().into(), &mut Entropy::from_seed(1), now);
        let strange = BTreeMap::from([("one", "it is"), ("another", "it is")]);
        for _ in 0..100 {
            post.tell(strange.clone(), &mut told, now, ToString::to_string);
            post.tell(BTreeMap::new(), &mut told, now, ToString::to_string);
        }
        assert_eq!(counters.strange.get(), 200);
        assert!(post.lines.level(now) < 1.0, "a line was taken for each that was logged");
    }
}
