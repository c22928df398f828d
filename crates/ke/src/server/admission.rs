//! Who may open a connection: decided before TLS, so that whoever is refused costs no public-key work.
//!
//! All threads share one [`Admission`], so its bounds hold however the kernel spreads connections over them, and do
//! not shrink with the number of threads. A prefix is an IPv4 address or an IPv6 /64; a network is an IPv4 /24 or an
//! IPv6 /48, which is what a site gets, and has 65,536 prefixes. A connection needs a token of both. Who is refused by
//! one bucket takes nothing from the other: an address above its own rate costs its network none.
//!
//! **Invariant:** memory is bounded: by the limiters' fixed tables, and by one entry for each open connection.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_proto::prefix::PrefixSet;
use authentick_proto::server::limit::{Limiter, Rate};

use super::Outcome;

/// Buckets of each limiter, of four prefixes: half a mebioctet. An entry counts until its bucket is full again, 100
/// seconds with the default rates, and only those have one who completed a TCP handshake.
const BUCKET_COUNT: usize = 1 << 14;

/// Memory of one open connection, in octets, as measured in the middle of its handshake.
pub const CONNECTION_SIZE: usize = 10 * 1024;

/// Bounds of key exchange, over all of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. A thread that has none of them takes one more.
    pub connection_count: usize,
    /// Connections at once from one prefix: 32 bits of an IPv4 address, 64 of an IPv6 one.
    pub per_prefix_count: usize,
    /// From accepting a connection to its end.
    pub timeout: Duration,
}

impl Default for Limits {
    /// 150 connections a second that stay for the whole timeout fill a fifth of the places; they take 40 MiB at most
    /// ([`CONNECTION_SIZE`]). An office behind one address fits, and chrony gives a server 2 seconds.
    fn default() -> Self {
        Limits { connection_count: 4096, per_prefix_count: 64, timeout: Duration::from_secs(5) }
    }
}

/// How often a prefix, and a network, may open connections; `None`: as often as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// For each IPv4 address and IPv6 /64.
    pub per_prefix: Option<Rate>,
    /// For each IPv4 /24 and IPv6 /48.
    pub per_network: Option<Rate>,
}

impl Rates {
    /// No limit.
    pub const NONE: Rates = Rates { per_prefix: None, per_network: None };

    /// The rate of a prefix: microseconds between connections in the long run, and how many may come at once.
    #[must_use]
    pub const fn of_prefix(interval_us: u64, burst: u32) -> Rate {
        Rate { interval_us, burst, prefix_v4: 32, prefix_v6: 64 }
    }

    /// The same of a network.
    #[must_use]
    pub const fn of_network(interval_us: u64, burst: u32) -> Rate {
        Rate { interval_us, burst, prefix_v4: 24, prefix_v6: 48 }
    }
}

impl Default for Rates {
    /// 20 a second and 2,000 at once from a prefix: 5,000 clients behind one address that lost their keys together
    /// have them again within three minutes, by their fourth attempt, as chrony tries again after 16, 32, 64 and 128
    /// seconds; and 20 handshakes, with RSA-2048, are less than a hundredth of a core. A network has twice as much,
    /// so that one hostile address leaves its neighbours half.
    fn default() -> Self {
        Rates {
            per_prefix: Some(Rates::of_prefix(50_000, 2_000)),
            per_network: Some(Rates::of_network(25_000, 4_000)),
        }
    }
}

/// Decides who may open a connection, and counts those that are open.
pub struct Admission {
    rules: RwLock<Rules>,
    limits: Limits,
    epoch: Instant,
    open: Mutex<Open>,
}

/// What can change while connections are open.
struct Rules {
    allow: PrefixSet,
    rates: Rates,
    per_prefix: Option<Limiter>,
    per_network: Option<Limiter>,
}

impl Rules {
    fn new(allow: PrefixSet, rates: Rates, entropy: &mut Entropy) -> Self {
        let mut limiter = |rate: Option<Rate>| rate.map(|rate| Limiter::new(rate, BUCKET_COUNT, entropy));
        let (per_prefix, per_network) = (limiter(rates.per_prefix), limiter(rates.per_network));
        Rules { allow, rates, per_prefix, per_network }
    }

    /// Takes a token of both buckets, or of none. Called under the lock, so nobody comes in between.
    fn take_token(&self, source: IpAddr, now_us: u64) -> bool {
        let limiters = || self.per_prefix.iter().chain(&self.per_network);
        limiters().all(|limiter| limiter.has_room(source, now_us))
            && limiters().all(|limiter| limiter.admit(source, now_us))
    }
}

#[derive(Default)]
struct Open {
    count: usize,
    per_prefix: HashMap<IpAddr, usize>,
}

impl Admission {
    /// `allow`: who may connect at all. `now`: no later than any instant at which somebody connects.
    #[must_use]
    pub fn new(allow: PrefixSet, limits: Limits, rates: Rates, entropy: &mut Entropy, now: Instant) -> Self {
        let rules = RwLock::new(Rules::new(allow, rates, entropy));
        Admission { rules, limits, epoch: now, open: Mutex::default() }
    }

    /// Has other rules decide from now on. Connections that are open stay. Where rates are what they were, nobody's
    /// tokens are forgotten.
    pub fn change(&self, allow: PrefixSet, rates: Rates, entropy: &mut Entropy) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        if rules.rates == rates {
            rules.allow = allow;
        } else {
            *rules = Rules::new(allow, rates, entropy);
        }
    }

    /// The bounds.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A place for a connection from `source`, which is given back when it is dropped. The caller makes room if there
    /// are now too many ([`Admission::is_crowded`]).
    ///
    /// # Errors
    /// How the connection ends if it may not be: [`Outcome::Denied`], [`Outcome::PrefixLimit`] or
    /// [`Outcome::PrefixRate`].
    pub fn admit(self: &Arc<Self>, source: IpAddr, now: Instant) -> Result<Place, Outcome> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        if !rules.allow.contains(source) {
            return Err(Outcome::Denied);
        }
        let prefix = prefix_of(source);
        let mut open = self.open();
        let count = open.per_prefix.get(&prefix).copied().unwrap_or(0);
        if count >= self.limits.per_prefix_count {
            return Err(Outcome::PrefixLimit);
        }
        let now_us = now.saturating_duration_since(self.epoch).as_micros() as u64;
        if !rules.take_token(source, now_us) {
            return Err(Outcome::PrefixRate);
        }
        open.per_prefix.insert(prefix, count + 1);
        open.count += 1;
        Ok(Place { admission: Arc::clone(self), prefix })
    }

    /// Whether there are more connections than there should be, the newest included.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.open().count > self.limits.connection_count
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // No step under the lock leaves it half done.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The place of one open connection.
#[derive(Debug)]
pub struct Place {
    admission: Arc<Admission>,
    prefix: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.admission.open();
        open.count -= 1;
        if let Some(count) = open.per_prefix.get_mut(&self.prefix) {
            *count -= 1;
            if *count == 0 {
                open.per_prefix.remove(&self.prefix);
            }
        }
    }
}

/// The address whose connections count together: an IPv6 customer has at least a /64.
fn prefix_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & (u128::MAX << 64)).into()),
    }
}

#[cfg(test)]
mod tests;
