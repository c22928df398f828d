//! What a run does, as orders that a host carries out step by step, and what it reports.
//!
//! The same orders go to the generator in this process and, as JSON, to agents on other hosts.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use authentick_generator::{Antp, Arrivals, Joinable, Order, Part, Scheme};
use authentick_report::load::HostPart;
use serde::{Deserialize, Serialize};

use crate::agent::CrewError;
use crate::limits::PATIENCE_MAX;
use crate::lock;
use crate::shared_key::SharedKey;

/// What a host does in every step of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What is offered.
    pub scheme: Scheme,
    /// The NTP server. For NTS, a key exchange may name another one.
    pub ntp: SocketAddr,
    /// The key exchange server; unused without key exchanges.
    pub ke: SocketAddr,
    /// The name that the server's certificate must have.
    pub server_name: String,
    /// Certificates of the authorities to trust; absent: those that the host trusts.
    pub authorities_pem: Option<String>,
    /// The symmetric key of [`Scheme::Mac`].
    #[serde(default)]
    pub shared_key: Option<SharedKey>,
    /// How ANTP is spoken, for its schemes.
    #[serde(default)]
    pub antp: Option<Antp>,
    /// AEAD algorithms to offer, the best first.
    pub aeads: Vec<u16>,
    /// Use the keys that are exported the other way: the server answers nothing under the first ones.
    pub alternative_keys: bool,
    /// Measured clients on this host.
    pub clients: u32,
    /// Clients of the background.
    pub background_clients: u32,
    /// Source addresses to spread the clients over; empty: the host's choice. The host must own them.
    pub sources: Vec<std::net::IpAddr>,
    /// The same for clients of the background and their key exchanges; empty: those of all clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background_sources: Vec<std::net::IpAddr>,
    /// Threads that send.
    pub workers: u32,
    /// Whether each has a processor of its own, the last ones of the host; not if several generators share it.
    pub pinned: bool,
    /// When operations begin.
    pub arrivals: Arrivals,
    /// Seed of the arrivals.
    pub seed: u64,
    /// How long a request waits for its answer.
    pub timeout: Duration,
    /// How long a key exchange may take.
    pub ke_timeout: Duration,
    /// Send one cookie of each client again and again.
    pub replay_cookie: bool,
    /// Report the instants of single operations, so that they can be joined to the server's records.
    pub joinable: bool,
}

impl Plan {
    /// Refuses source addresses from which clients could not reach the servers that they are to ask.
    ///
    /// # Errors
    /// A sentence with the option, if an address is of another family than a server's.
    pub fn check_sources(&self) -> Result<(), String> {
        let servers = [
            (self.scheme != Scheme::Ke).then_some(self.ntp),
            self.scheme.nature().exchanges_keys.then_some(self.ke),
        ];
        let sources = self.sources.iter().map(|source| ("--sources", source));
        let background = self.background_sources.iter().map(|source| ("--background-sources", source));
        for (option, source) in sources.chain(background) {
            let other = servers.iter().flatten().find(|server| server.is_ipv4() != source.is_ipv4());
            if let Some(server) = other {
                return Err(format!(
                    "{option} {source} and the server's address {} are of different families; give addresses of the \
                     server's family",
                    server.ip()
                ));
            }
        }
        Ok(())
    }
}

/// Shows the progress of a step to others, and lets them stop it. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Progress>);

#[derive(Debug, Default)]
struct Progress {
    stop: AtomicBool,
    ready: AtomicU64,
    /// Operations that were sent, answered, and that failed.
    counts: [AtomicU64; 3],
    late: Mutex<Option<Duration>>,
    joins: AtomicBool,
}

impl Watch {
    /// Makes the generator send nothing more, in this step and every later one.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Whether nothing more is to be sent.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// Waits for so long, or until a stop.
    pub fn pause(&self, duration: Duration) {
        let until = Instant::now() + duration;
        while !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(PATIENCE_MAX));
        }
    }

    /// Counts clients that have their first keys.
    pub fn add_ready(&self, count: u64) {
        self.0.ready.fetch_add(count, Ordering::Relaxed);
    }

    /// Clients that have their first keys, background included; 0 if their scheme needs none before a step.
    #[must_use]
    pub fn ready_count(&self) -> u64 {
        self.0.ready.load(Ordering::Relaxed)
    }

    /// Counts operations of measured clients: what is new in `counts`, sent, answered and failed, since they were
    /// `told` last.
    pub(crate) fn tell(&self, told: &mut [u64; 3], counts: [u64; 3]) {
        for ((sum, told), count) in self.0.counts.iter().zip(told).zip(counts) {
            if count > *told {
                sum.fetch_add(count - *told, Ordering::Relaxed);
                *told = count;
            }
        }
    }

    /// Operations of measured clients so far, over all steps: sent, answered, and those that failed.
    #[must_use]
    pub fn counts(&self) -> [u64; 3] {
        self.0.counts.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Records that requests of one client can leave as one message, which the kernel takes apart.
    pub(crate) fn note_joins(&self) {
        self.0.joins.store(true, Ordering::Relaxed);
    }

    /// How the sending threads of this process send and receive, for the record.
    pub(crate) fn engine(&self) -> &'static str {
        if self.0.joins.load(Ordering::Relaxed) { "sockets, UDP_SEGMENT" } else { "sockets" }
    }

    /// Records how much later than planned a sending thread began its first operation. Once per thread and step, as it
    /// takes a lock.
    pub fn note_start(&self, late: Duration) {
        let mut noted = lock(&self.0.late);
        *noted = Some(noted.map_or(late, |before| before.min(late)));
    }

    /// How much later than planned the first operation began, in the earliest thread; `None` if none has begun.
    #[must_use]
    pub fn start_late(&self) -> Option<Duration> {
        *lock(&self.0.late)
    }
}

/// Who carries out the steps of a run: the generator of this process, or agents.
pub trait Crew: Send {
    /// Begins operations at `start` and reports once all of them have ended. `watch` sees the progress; if it is
    /// stopped, what was done until then is reported.
    ///
    /// # Errors
    /// Why the step cannot be relied on at all. A generator that merely fell behind reports that in its part.
    fn step(&mut self, order: &Order, start: Instant, watch: &Watch) -> Result<Part, CrewError>;

    /// A row for each host of the last step; empty if there is one host only.
    fn hosts(&self) -> &[HostPart] {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_another_family_than_a_server_that_is_asked_are_refused() {
        let (v4, v6): (SocketAddr, SocketAddr) =
            ("192.0.2.1:123".parse().unwrap(), "[2001:db8::1]:4460".parse().unwrap());
        let own = vec!["127.0.0.2".parse().unwrap()];
        let of_clients = Plan { sources: own.clone(), ..Plan::plain(v4) };
        let of_background = Plan { background_sources: own, ..Plan::plain(v4) };
        assert_eq!((of_clients.check_sources(), of_background.check_sources()), (Ok(()), Ok(())));
        for (plan, option) in [(of_clients, "--sources"), (of_background, "--background-sources")] {
            let problem = Plan { ntp: v6, ..plan.clone() }.check_sources().unwrap_err();
            assert!(problem.starts_with(&format!("{option} 127.0.0.2")), "{problem}");
            // The server of keys counts where it is asked, and that of time where it is.
            assert_eq!(Plan { ke: v6, ..plan.clone() }.check_sources(), Ok(()));
            assert!(Plan { ke: v6, scheme: Scheme::Nts, ..plan.clone() }.check_sources().is_err());
            let keys_alone = Plan { scheme: Scheme::Ke, ..plan };
            assert_eq!(Plan { ntp: v6, ..keys_alone.clone() }.check_sources(), Ok(()));
            assert!(Plan { ke: v6, ..keys_alone }.check_sources().is_err());
        }
    }
}
