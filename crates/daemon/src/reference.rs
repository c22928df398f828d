//! What vouches for the time, as a snapshot once a second; and, logged once for each change, why nothing does.

mod upstream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use authentick_crypto::Entropy;
use authentick_net::clock::{self, KernelClock};
use authentick_proto::client::Check;
use authentick_proto::server::snapshot::Snapshot;
use authentick_wire::header::{Leap, ReferenceId};
use authentick_wire::time::{NtpShort, NtpSpan, NtpTime};
use thiserror::Error;

use self::upstream::Trust;
use crate::clock::{HostClock, SystemClock};
use crate::config::{Endpoint, ListenAddress, Reference};
use crate::leap::LeapSeconds;
use crate::names::ServerAddresses;
use crate::preflight::is_same;
use crate::warnings::Warning;

/// From this stratum on, the NTP pool's monitors score a server down, and clients prefer others.
const STRATUM_DISTANT: u8 = 8;
/// The middle of the era that this host's clock is in: 2026.
const ERA_PIVOT: i64 = 1_767_225_600;
/// How long a start waits for the address of an upstream: that of this host takes a file alone.
const NAME_PATIENCE: Duration = Duration::from_millis(200);

/// Why nobody vouches for the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum Lost {
    /// The kernel says so.
    #[error("the kernel reports this host's clock as unsynchronised")]
    Kernel,
    /// The kernel's answer is withheld from this process.
    #[error("this process cannot ask the kernel whether the clock is synchronised: adjtimex(2) is denied")]
    KernelSilent,
    /// The upstream has no address.
    #[error("the upstream's name has no address yet")]
    Unresolved,
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

impl Lost {
    /// What an operator can do about it.
    const fn remedy(self) -> &'static str {
        match self {
            Lost::Kernel => {
                "start a daemon that keeps the clock (chrony with rtcsync, systemd-timesyncd), and see that it reaches \
                 its servers"
            }
            Lost::KernelSilent => {
                "allow the system call (containers deny it), or write server.reference = { upstream = \
                 \"ADDRESS:PORT\" } with the daemon that keeps the clock"
            }
            Lost::Unresolved => {
                "see that the name is right and that this host's resolver works, or write an address"
            }
            Lost::Silent => {
                "see that it runs, has this port (chrony: \"port 11123\") and answers this host (chrony opens its port \
                 only with \"allow 127.0.0.1\" or the like)"
            }
            Lost::Says(_) => "see that the upstream reaches its own servers (chrony: \"chronyc sources\")",
            Lost::Offset { .. } => "name the daemon that keeps this host's clock",
            Lost::Disagreement => {
                "see that the upstream keeps the clock (chrony: rtcsync), and that no other program sets it"
            }
        }
    }
}

/// The warning of a stratum that clients and the NTP pool score down.
pub(crate) fn distant(stratum: u8, reference: &Reference) -> Option<Warning> {
    let remedy = match reference {
        Reference::Upstream(_) => "see what the upstream takes its time from",
        Reference::Kernel { .. } => {
            "name the daemon that keeps the clock, as in { upstream = \"127.0.0.1:11123\" }, or write the stratum, as \
             in { kernel = true, stratum = 3 }"
        }
        Reference::Asserted { .. } => "write the clock's stratum",
    };
    (stratum >= STRATUM_DISTANT).then(|| {
        let consequence = format!(
            "time is served as stratum {stratum}: clients prefer other servers, and the NTP pool scores it down"
        );
        Warning::new("server.reference", "", consequence, remedy)
    })
}

/// The warning of an upstream on another host, with these addresses.
pub(crate) fn elsewhere(server: &Endpoint, addresses: &[SocketAddr]) -> Option<Warning> {
    let is_here = addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
    (!is_here).then(|| {
        Warning::new(
            "server.reference.upstream",
            server,
            "it is not loopback: it is used only while it agrees with this host's clock",
            "run an NTP daemon on this host that follows it, and name that",
        )
    })
}

/// Looks at the clock once, as a server does when it starts, and logs what such a server would. Each of the upstream's
/// `addresses` is asked until one answers.
pub(crate) fn check(reference: &Reference, addresses: Option<ServerAddresses>, entropy: Entropy) {
    let count = addresses.as_ref().map_or(0, |addresses| addresses.known().len());
    let (clock, leaps) = (Arc::new(SystemClock), Arc::default());
    let mut watcher = Watcher::new(reference, addresses, Vec::new(), leaps, clock, entropy);
    let mut verdict = watcher.assess();
    for _ in 1..count {
        if !matches!(verdict, Err(Lost::Silent)) {
            break;
        }
        watcher.trust = Trust::new();
        verdict = watcher.assess();
    }
    watcher.log_change(verdict);
}

/// Keeps track of what vouches for the time.
pub(crate) struct Watcher {
    reference: Reference,
    clock: Arc<dyn HostClock>,
    /// For requests to an upstream.
    entropy: Entropy,
    /// What is known about an upstream.
    trust: Trust,
    /// The upstream's addresses, if there is one.
    addresses: Option<ServerAddresses>,
    /// Where this server is, which is no upstream of its own.
    listen: Vec<ListenAddress>,
    leaps: Arc<ArcSwap<LeapSeconds>>,
    precision: i8,
    /// What was logged last: whether somebody vouches, or why not.
    told: Option<Option<Lost>>,
}

impl Watcher {
    /// `addresses` are those of the upstream, if there is one, and `listen` those of this server; `leaps` is the list
    /// that an asserted clock announces leap seconds by.
    pub(crate) fn new(
        reference: &Reference,
        addresses: Option<ServerAddresses>,
        listen: Vec<ListenAddress>,
        leaps: Arc<ArcSwap<LeapSeconds>>,
        clock: Arc<dyn HostClock>,
        entropy: Entropy,
    ) -> Self {
        if let Reference::Asserted { stratum, .. } = reference
            && clock.kernel() == KernelClock::Unsynchronised
        {
            let warning = Warning::new(
                "server.reference",
                "",
                format!(
                    "{}, and it is served as stratum {stratum} as server.reference asserts",
                    Lost::Kernel
                ),
                "see that the clock is kept, or write reference = \"kernel\"",
            );
            log::warn!("{warning}");
        }
        if let Some(addresses) = &addresses {
            addresses.wait(NAME_PATIENCE);
        }
        Watcher {
            reference: reference.clone(),
            clock,
            entropy,
            trust: Trust::new(),
            addresses,
            listen,
            leaps,
            precision: clock::precision(),
            told: None,
        }
    }

    /// Has the upstream's name looked up, as SIGHUP wants it.
    pub(crate) fn look_up_again(&mut self) {
        if let Some(addresses) = &mut self.addresses {
            addresses.want_again(Instant::now());
        }
    }

    /// Takes up what was found of the upstream's name, and has it looked up while there is no address that answers;
    /// returns the address to ask.
    fn resolve(&mut self) -> Option<SocketAddr> {
        let Watcher { addresses, trust, clock, listen, .. } = self;
        let (addresses, now) = (addresses.as_mut()?, Instant::now());
        let is_silent = trust.is_silent(clock.kernel(), clock.boot());
        if is_silent {
            addresses.want(now);
        }
        if addresses.receive(now, !is_silent) {
            let server = addresses.server().clone();
            addresses.retain(|address| {
                let is_own = listen.iter().any(|listen| is_same(listen, *address));
                if is_own {
                    log::error!(
                        "server.reference.upstream = \"{server}\": {address} is not asked: this is the server itself; \
                         name the daemon that keeps this host's clock, on a port of its own (chrony: \"port 11123\")"
                    );
                }
                !is_own
            });
            elsewhere(&server, addresses.known()).iter().for_each(|warning| log::warn!("{warning}"));
            trust.hasten();
        }
        addresses.current()
    }

    /// The state of the clock now. Asks a local daemon if it is time to; that takes up to half a second.
    pub(crate) fn look(&mut self) -> Snapshot {
        let verdict = self.assess();
        self.log_change(verdict);
        verdict.unwrap_or_else(|_| Snapshot::unsynchronised(self.precision))
    }

    fn assess(&mut self) -> Result<Snapshot, Lost> {
        let (clock, precision) = (Arc::clone(&self.clock), self.precision);
        match self.reference {
            Reference::Asserted { stratum, id } => {
                let now = clock.now();
                let unix_seconds = u64::try_from(now.to_unix(ERA_PIVOT).0).unwrap_or(0);
                let leap = self.leaps.load().at(unix_seconds);
                Ok(Snapshot { leap, ..asserted(stratum, id, precision, now) })
            }
            Reference::Kernel { stratum, id } => {
                kernel((stratum, id), clock.kernel(), precision, clock.now())
            }
            Reference::Upstream(_) => self.ask_upstream(),
        }
    }

    fn ask_upstream(&mut self) -> Result<Snapshot, Lost> {
        let Some(address) = self.resolve() else { return Err(Lost::Unresolved) };
        let (clock, precision) = (&*self.clock, self.precision);
        if self.trust.is_due(clock.boot()) {
            let answer = upstream::ask(address, &mut self.entropy, clock);
            self.trust.take(answer, precision, clock.now(), clock.boot());
            if self.trust.is_silent(clock.kernel(), clock.boot())
                && let Some(addresses) = &mut self.addresses
            {
                // A name has several, and the daemon need not be at all of them.
                addresses.pass_over();
            }
        }
        self.trust.verdict(clock.kernel(), clock.boot())
    }

    /// Logs a change.
    fn log_change(&mut self, verdict: Result<Snapshot, Lost>) {
        let (lost, before) = (verdict.err(), self.told);
        // Different offsets count as the same reason.
        let kind = |lost: Option<Lost>| lost.map(|lost| std::mem::discriminant(&lost));
        if before.is_some_and(|before| kind(before) == kind(lost)) {
            return;
        }
        self.told = Some(lost);
        match (verdict, before, &self.reference) {
            (Err(lost), _, reference) => {
                let source = match reference {
                    Reference::Upstream(name) => format!(" ({name})"),
                    Reference::Kernel { .. } | Reference::Asserted { .. } => String::new(),
                };
                log::warn!(
                    "server.reference: {lost}{source}: serving leap=3 (unsynchronised) until that changes; {}",
                    lost.remedy()
                );
            }
            (Ok(snapshot), _, Reference::Upstream(name)) => {
                log::info!("synchronised: source={name} stratum={}", snapshot.stratum);
            }
            (Ok(snapshot), Some(_), Reference::Kernel { .. }) => {
                log::info!("synchronised: source=kernel stratum={}", snapshot.stratum);
            }
            (Ok(_), None, Reference::Kernel { .. }) | (Ok(_), _, Reference::Asserted { .. }) => {}
        }
        newly_distant(&self.reference, before.is_none(), verdict.ok().map(|snapshot| snapshot.stratum))
            .iter()
            .for_each(|warning| log::warn!("{warning}"));
    }
}

/// The warning of a distant stratum at the first look, or at a later one; `stratum` is that of a synchronised clock.
fn newly_distant(reference: &Reference, is_first: bool, stratum: Option<u8>) -> Option<Warning> {
    let stratum = match reference {
        // Known before the clock is synchronised, and always the same.
        Reference::Kernel { stratum, .. } => is_first.then_some(*stratum),
        Reference::Upstream(_) | Reference::Asserted { .. } => stratum,
    };
    distant(stratum?, reference)
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
        let addresses = match reference {
            Reference::Upstream(server) => Some(ServerAddresses::look_up(server).unwrap()),
            Reference::Asserted { .. } | Reference::Kernel { .. } => None,
        };
        let leaps = Arc::new(ArcSwap::from_pointee(leaps));
        Watcher::new(reference, addresses, vec![], leaps, Arc::new(SystemClock), Entropy::from_seed(1))
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
        let reference = Reference::Upstream(silent.local_addr().unwrap().into());
        assert_eq!(watcher(&reference, LeapSeconds::default()).look().leap, Leap::Unsynchronised);
    }

    #[test]
    fn silent_address_of_a_name_is_passed_over() {
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let server: Endpoint = format!("localhost:{port}").parse().unwrap();
        let mut addresses = ServerAddresses::look_up(&server).unwrap();
        assert!(addresses.known().contains(&silent.local_addr().unwrap()), "{addresses:?}");
        addresses.retain(SocketAddr::is_ipv4);
        let mut watcher = watcher(&Reference::Upstream(server), LeapSeconds::default());
        watcher.addresses = Some(addresses);
        watcher.look();
        assert_eq!(watcher.told, Some(Some(Lost::Silent)));
        assert!(ServerAddresses::look_up(&"no-such-name.invalid:123".parse().unwrap()).is_err());
    }

    #[test]
    fn name_without_an_address_is_not_trusted() {
        let server: Endpoint = "ntp.example.net:123".parse().unwrap();
        let mut watcher = watcher(&Reference::KERNEL, LeapSeconds::default());
        watcher.addresses = Some(ServerAddresses::from(server.clone()));
        watcher.reference = Reference::Upstream(server);
        assert_eq!(watcher.look().leap, Leap::Unsynchronised);
        assert_eq!(watcher.told, Some(Some(Lost::Unresolved)));
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
    fn distant_stratum_has_the_remedy_for_its_reference() {
        assert!(
            distant(10, &Reference::KERNEL).is_some_and(|warning| warning.remedy.contains("kernel = true"))
        );
        assert!(distant(8, &Reference::Upstream("a:1".parse().unwrap())).is_some());
        assert_eq!(distant(7, &Reference::KERNEL), None);
    }

    #[test]
    fn distant_kernel_is_warned_of_once_and_unsynchronised_too() {
        let upstream = Reference::Upstream("127.0.0.1:1".parse().unwrap());
        for (reference, is_first, stratum, is_warned) in [
            (&Reference::KERNEL, true, None, true),
            (&Reference::KERNEL, true, Some(10), true),
            (&Reference::KERNEL, false, Some(10), false),
            (&upstream, true, None, false),
            (&upstream, false, Some(10), true),
            (&upstream, false, Some(2), false),
        ] {
            let warning = newly_distant(reference, is_first, stratum);
            assert_eq!(warning.is_some(), is_warned, "{reference:?} {is_first} {stratum:?}");
        }
    }
}
