//! What vouches for the time, as a snapshot once a second; and, logged once for each change, why nothing does.

mod upstream;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use arc_swap::ArcSwap;
use authentick_crypto::Entropy;
use authentick_net::clock::{self, KernelClock};
use authentick_proto::client::Check;
use authentick_proto::server::snapshot::Snapshot;
use authentick_wire::header::{Leap, ReferenceId};
use authentick_wire::time::{NtpShort, NtpSpan, NtpTime};
use thiserror::Error;

use self::upstream::{Answer, Trust};
use crate::clock::{HostClock, SystemClock};
use crate::config::Reference;
use crate::leap::LeapSeconds;

/// From this stratum on, the NTP pool's monitors score a server down, and clients prefer others.
const STRATUM_DISTANT: u8 = 8;
/// The middle of the era that this host's clock is in: 2026.
const ERA_PIVOT: i64 = 1_767_225_600;

/// Why nobody vouches for the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum Lost {
    /// The kernel says so.
    #[error("the kernel says that this host's clock is not synchronised")]
    Kernel,
    /// The kernel does not tell.
    #[error("the kernel does not tell whether this host's clock is synchronised")]
    KernelSilent,
    /// The upstream does not answer.
    #[error("the upstream does not answer")]
    Silent,
    /// The upstream answers, and this is wrong with its clock.
    #[error("the upstream's answer: {0}")]
    Says(Check),
    /// The upstream keeps a different clock: the measured offset, and the allowed one.
    #[error(
        "the upstream's clock is {offset} from this host's, where the same clock would be within {bound}: it keeps \
         another clock, or the clock was just set"
    )]
    Offset { offset: NtpSpan, bound: NtpSpan },
    /// The kernel had vouched together with the upstream, and no longer does.
    #[error(
        "the kernel says that this host's clock is not synchronised any more, though the upstream vouches for it"
    )]
    Disagreement,
}

/// What to do about an upstream that does not answer.
const SILENT_REMEDY: &str = "; see that it runs, has this port (chrony: \"port 11123\") and answers this host (chrony \
    opens its port only with \"allow 127.0.0.1\" or the like)";

/// What is to be said of a stratum that clients and the NTP pool score down.
pub(crate) fn distant(stratum: u8, reference: &Reference) -> Option<String> {
    let remedy = match reference {
        Reference::Upstream(_) => "see what the upstream takes its time from",
        Reference::Kernel { .. } => {
            "name the daemon that keeps the clock, as in { upstream = \"127.0.0.1:11123\" }, or say the stratum, as in \
             { kernel = true, stratum = 3 }"
        }
        Reference::Asserted { .. } => "say the clock's stratum",
    };
    (stratum >= STRATUM_DISTANT).then(|| {
        format!(
            "server.reference: time is served as stratum {stratum}: clients prefer other servers, and the NTP pool \
             scores it down; {remedy}"
        )
    })
}

/// The addresses of the upstream; none if there is no upstream. A name is looked up once, before the server gives up
/// what that takes.
///
/// # Errors
/// If the name has none, or they are not found.
pub(crate) fn addresses(reference: &Reference) -> io::Result<Vec<SocketAddr>> {
    let Reference::Upstream(name) = reference else { return Ok(Vec::new()) };
    let addresses: Vec<SocketAddr> = name.to_socket_addrs()?.collect();
    match addresses.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, "it has no address")),
        false => Ok(addresses),
    }
}

/// Asks an upstream once, and says if none of its addresses answers.
pub(crate) fn try_upstream(name: &str, addresses: &[SocketAddr], entropy: &mut Entropy) {
    let is_silent =
        |address: &SocketAddr| matches!(upstream::ask(*address, entropy, &SystemClock), Answer::Silence);
    if addresses.iter().all(is_silent) {
        log::warn!("server.reference.upstream: {} ({name}){SILENT_REMEDY}", Lost::Silent);
    }
}

/// Keeps track of what vouches for the time.
pub(crate) struct Watcher {
    reference: Reference,
    clock: Arc<dyn HostClock>,
    /// For requests to an upstream.
    entropy: Entropy,
    /// What is known about an upstream.
    trust: Trust,
    /// The upstream's addresses, and which of them is asked.
    addresses: Vec<SocketAddr>,
    asked: usize,
    leaps: Arc<ArcSwap<LeapSeconds>>,
    precision: i8,
    /// What was logged last: whether somebody vouches, or why not.
    told: Option<Option<Lost>>,
}

impl Watcher {
    /// `addresses` are those of the upstream, if there is one; `leaps` is the list that an asserted clock announces
    /// leap seconds by.
    pub(crate) fn new(
        reference: &Reference,
        addresses: Vec<SocketAddr>,
        leaps: Arc<ArcSwap<LeapSeconds>>,
        clock: Arc<dyn HostClock>,
        entropy: Entropy,
    ) -> Self {
        match reference {
            Reference::Asserted { stratum, .. } if clock.kernel() == KernelClock::Unsynchronised => {
                log::warn!(
                    "the kernel says that this host's clock is not synchronised; it is served as stratum {stratum} \
                     all the same, as server.reference says"
                );
            }
            Reference::Upstream(name)
                if !addresses.iter().all(|address| address.ip().to_canonical().is_loopback()) =>
            {
                log::warn!(
                    "server.reference.upstream: {name} is no loopback address; its word is taken for this host's \
                     clock only while the two agree. To follow another host, run a daemon here that keeps the clock, \
                     and name that"
                );
            }
            Reference::Asserted { .. } | Reference::Kernel { .. } | Reference::Upstream(_) => {}
        }
        Watcher {
            reference: reference.clone(),
            clock,
            entropy,
            trust: Trust::new(),
            addresses,
            asked: 0,
            leaps,
            precision: clock::precision(),
            told: None,
        }
    }

    /// The state of the clock now. Asks a local daemon if it is time to; that takes up to half a second.
    pub(crate) fn look(&mut self) -> Snapshot {
        let (clock, precision) = (&*self.clock, self.precision);
        let verdict = match self.reference {
            Reference::Asserted { stratum, id } => {
                let now = clock.now();
                let unix_seconds = u64::try_from(now.to_unix(ERA_PIVOT).0).unwrap_or(0);
                let leap = self.leaps.load().at(unix_seconds);
                Ok(Snapshot { leap, ..asserted(stratum, id, precision, now) })
            }
            Reference::Kernel { stratum, id } => {
                kernel((stratum, id), clock.kernel(), precision, clock.now())
            }
            Reference::Upstream(_) => {
                if self.trust.is_due(clock.boot()) {
                    let address = self.addresses[self.asked];
                    let answer = upstream::ask(address, &mut self.entropy, clock);
                    if matches!(answer, Answer::Silence) && !self.trust.is_good() {
                        // A name has several, and the daemon need not be at all of them.
                        self.asked = (self.asked + 1) % self.addresses.len();
                    }
                    self.trust.take(answer, precision, clock.now(), clock.boot());
                }
                self.trust.verdict(clock.kernel(), clock.boot())
            }
        };
        self.tell(verdict);
        verdict.unwrap_or_else(|_| Snapshot::unsynchronised(precision))
    }

    /// Logs a change.
    fn tell(&mut self, verdict: Result<Snapshot, Lost>) {
        let (lost, before) = (verdict.err(), self.told);
        // Different offsets count as the same reason.
        let kind = |lost: Option<Lost>| lost.map(|lost| std::mem::discriminant(&lost));
        if before.is_some_and(|before| kind(before) == kind(lost)) {
            return;
        }
        self.told = Some(lost);
        match (verdict, before, &self.reference) {
            (Err(lost), _, Reference::Upstream(name)) => {
                let remedy = if lost == Lost::Silent { SILENT_REMEDY } else { "" };
                log::warn!(
                    "{lost} ({name}); clients are told not to trust the time until that changes{remedy}"
                );
            }
            (Err(lost), _, Reference::Kernel { .. } | Reference::Asserted { .. }) => {
                log::warn!("{lost}; clients are told not to trust the time until that changes");
            }
            (Ok(snapshot), _, Reference::Upstream(name)) => {
                log::info!("{name} vouches for the time as stratum {}", snapshot.stratum);
            }
            (Ok(_), Some(_), Reference::Kernel { .. }) => {
                log::info!("the kernel says that this host's clock is synchronised");
            }
            (Ok(_), None, Reference::Kernel { .. }) | (Ok(_), _, Reference::Asserted { .. }) => {}
        }
        if let Ok(snapshot) = verdict
            && let Some(words) = distant(snapshot.stratum, &self.reference)
        {
            log::warn!("{words}");
        }
    }
}

//= rfc5905#7.3-6
fn asserted(stratum: u8, id: ReferenceId, precision: i8, now: NtpTime) -> Snapshot {
    Snapshot {
        stratum,
        // A clock is never better than the shortest step that it can show.
        root_dispersion: NtpShort::from_bits(1),
        ..Snapshot::primary(precision, id, now)
    }
}

fn kernel(
    (stratum, reference_id): (u8, ReferenceId),
    state: KernelClock,
    precision: i8,
    now: NtpTime,
) -> Result<Snapshot, Lost> {
    match state {
        KernelClock::Synchronised { leap, error_max_us } => Ok(Snapshot {
            leap: match leap {
                Some(true) => Leap::Insert,
                Some(false) => Leap::Delete,
                None => Leap::None,
            },
            stratum,
            precision,
            root_delay: NtpShort::ZERO,
            root_dispersion: NtpShort::from_nanos(error_max_us * 1000),
            reference_id,
            reference: now,
            taken: now,
        }),
        KernelClock::Unsynchronised => Err(Lost::Kernel),
        KernelClock::Unknown => Err(Lost::KernelSilent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: (u8, ReferenceId) = (3, ReferenceId(*b"LOCL"));

    fn watcher(reference: &Reference, leaps: LeapSeconds) -> Watcher {
        let (addresses, leaps) = (addresses(reference).unwrap(), Arc::new(ArcSwap::from_pointee(leaps)));
        Watcher::new(reference, addresses, leaps, Arc::new(SystemClock), Entropy::from_seed(1))
    }

    #[test]
    fn kernel_state_decides_about_leap_and_dispersion() {
        let state = |leap, error_max_us| KernelClock::Synchronised { leap, error_max_us };
        let good = kernel(LOCAL, state(Some(true), 2_000), -25, NtpTime::ZERO).unwrap();
        assert_eq!((good.leap, good.stratum), (Leap::Insert, 3));
        assert!(good.root_dispersion.as_nanos() >= 1_999_000);
        let deleted = kernel(LOCAL, state(Some(false), 0), -25, NtpTime::ZERO).unwrap();
        assert_eq!(deleted.leap, Leap::Delete);
        assert_eq!(kernel(LOCAL, KernelClock::Unsynchronised, -25, NtpTime::ZERO), Err(Lost::Kernel));
        assert_eq!(kernel(LOCAL, KernelClock::Unknown, -25, NtpTime::ZERO), Err(Lost::KernelSilent));
    }

    #[test]
    fn silent_upstream_is_not_trusted() {
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let reference = Reference::Upstream(silent.local_addr().unwrap().to_string());
        assert_eq!(watcher(&reference, LeapSeconds::default()).look().leap, Leap::Unsynchronised);
    }

    #[test]
    fn name_stands_for_all_of_its_addresses_and_those_that_are_silent_are_passed_over() {
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let reference = Reference::Upstream(format!("localhost:{port}"));
        let found = addresses(&reference).unwrap();
        assert!(found.contains(&silent.local_addr().unwrap()), "{found:?}");
        let mut watcher = watcher(&reference, LeapSeconds::default());
        watcher.addresses = vec![silent.local_addr().unwrap(), "127.0.0.2:9".parse().unwrap()];
        watcher.look();
        assert_eq!(watcher.asked, 1);
        assert!(addresses(&Reference::Upstream("no-such-name.invalid:123".to_owned())).is_err());
        assert_eq!(addresses(&Reference::KERNEL).unwrap(), []);
    }

    //= rfc5905#7.3-2
    #[test]
    fn asserted_clock_announces_what_the_list_has() {
        let reference = Reference::Asserted { stratum: 1, id: ReferenceId(*b"GPS\0") };
        let tomorrow = clock::unix_seconds() + 3600;
        assert_eq!(watcher(&reference, LeapSeconds::with(tomorrow, true)).look().leap, Leap::Insert);
        assert_eq!(watcher(&reference, LeapSeconds::with(tomorrow, false)).look().leap, Leap::Delete);
        assert_eq!(watcher(&reference, LeapSeconds::default()).look().leap, Leap::None);
    }

    #[test]
    fn distant_stratum_is_told_of_with_the_remedy_for_its_reference() {
        assert!(distant(10, &Reference::KERNEL).is_some_and(|words| words.contains("kernel = true")));
        assert!(distant(8, &Reference::Upstream("a:1".to_owned())).is_some());
        assert_eq!(distant(7, &Reference::KERNEL), None);
    }
}
