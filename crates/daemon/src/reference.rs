//! What vouches for the time, as a snapshot once a second; and, logged once for each change, why nothing does.

mod upstream;

use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_net::clock::{self, KernelClock};
use authentick_proto::client::Check;
use authentick_proto::server::snapshot::Snapshot;
use authentick_wire::header::{Leap, ReferenceId};
use authentick_wire::time::{NtpShort, NtpSpan, NtpTime};
use thiserror::Error;

use self::upstream::Trust;
use crate::clock::HostClock;
use crate::config::Reference;

/// The stratum that is sent when only the kernel vouches: it does not tell how far away its source is, and 10 is what
/// chrony too gives a clock of unknown distance.
const KERNEL_STRATUM: u8 = 10;

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

/// Keeps track of what vouches for the time.
pub(crate) struct Watcher {
    reference: Reference,
    clock: Arc<dyn HostClock>,
    /// For requests to an upstream.
    entropy: Entropy,
    /// What is known about an upstream.
    trust: Trust,
    precision: i8,
    /// What was logged last: whether somebody vouches, or why not.
    told: Option<Option<Lost>>,
}

impl Watcher {
    pub(crate) fn new(reference: &Reference, clock: Arc<dyn HostClock>, entropy: Entropy) -> Self {
        match *reference {
            Reference::Asserted { stratum, .. } if clock.kernel() == KernelClock::Unsynchronised => {
                log::warn!(
                    "the kernel says that this host's clock is not synchronised; it is served as stratum {stratum} \
                     all the same, as server.reference says"
                );
            }
            Reference::Upstream(address) if !address.ip().to_canonical().is_loopback() => {
                log::warn!(
                    "server.reference.upstream: {address} is no loopback address; its word is taken for this host's \
                     clock only while the two agree. To follow another host, run a daemon here that keeps the clock, \
                     and name that"
                );
            }
            Reference::Asserted { .. } | Reference::Kernel | Reference::Upstream(_) => {}
        }
        let (reference, trust) = (reference.clone(), Trust::new());
        Watcher { reference, clock, entropy, trust, precision: clock::precision(), told: None }
    }

    /// The state of the clock now. Asks a local daemon if it is time to; that takes up to half a second.
    pub(crate) fn look(&mut self) -> Snapshot {
        let (clock, precision) = (&*self.clock, self.precision);
        let verdict = match self.reference {
            Reference::Asserted { stratum, id } => Ok(asserted(stratum, id, precision, clock.now())),
            Reference::Kernel => kernel(clock.kernel(), precision, clock.now()),
            Reference::Upstream(address) => {
                if self.trust.is_due(clock.boot()) {
                    let answer = upstream::ask(address, &mut self.entropy, clock);
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
            (Err(lost), _, Reference::Upstream(address)) => {
                log::warn!("{lost} ({address}); clients are told not to trust the time until that changes");
            }
            (Err(lost), _, Reference::Kernel | Reference::Asserted { .. }) => {
                log::warn!("{lost}; clients are told not to trust the time until that changes");
            }
            (Ok(snapshot), _, Reference::Upstream(address)) => {
                log::info!("{address} vouches for the time as stratum {}", snapshot.stratum);
            }
            (Ok(_), Some(_), Reference::Kernel) => {
                log::info!("the kernel says that this host's clock is synchronised");
            }
            (Ok(_), None, Reference::Kernel) | (Ok(_), _, Reference::Asserted { .. }) => {}
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

fn kernel(state: KernelClock, precision: i8, now: NtpTime) -> Result<Snapshot, Lost> {
    match state {
        KernelClock::Synchronised { leap, error_max_us } => Ok(Snapshot {
            leap: match leap {
                Some(true) => Leap::Insert,
                Some(false) => Leap::Delete,
                None => Leap::None,
            },
            stratum: KERNEL_STRATUM,
            precision,
            root_delay: NtpShort::ZERO,
            root_dispersion: NtpShort::from_nanos(error_max_us * 1000),
            reference_id: ReferenceId([127, 127, 1, 1]),
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

    #[test]
    fn kernel_state_decides_about_leap_and_dispersion() {
        let state = |leap, error_max_us| KernelClock::Synchronised { leap, error_max_us };
        let good = kernel(state(Some(true), 2_000), -25, NtpTime::ZERO).unwrap();
        assert_eq!((good.leap, good.stratum), (Leap::Insert, KERNEL_STRATUM));
        assert!(good.root_dispersion.as_nanos() >= 1_999_000);
        let deleted = kernel(state(Some(false), 0), -25, NtpTime::ZERO).unwrap();
        assert_eq!(deleted.leap, Leap::Delete);
        assert_eq!(kernel(KernelClock::Unsynchronised, -25, NtpTime::ZERO), Err(Lost::Kernel));
        assert_eq!(kernel(KernelClock::Unknown, -25, NtpTime::ZERO), Err(Lost::KernelSilent));
    }

    #[test]
    fn silent_upstream_is_not_trusted() {
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let reference = Reference::Upstream(silent.local_addr().unwrap());
        let clock = Arc::new(crate::clock::SystemClock);
        let mut watcher = Watcher::new(&reference, clock, Entropy::from_seed(1));
        assert_eq!(watcher.look().leap, Leap::Unsynchronised);
    }
}
