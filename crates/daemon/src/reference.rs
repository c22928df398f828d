//! What vouches for the time, made into a snapshot once a second.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_net::clock::{self, KernelClock};
use authentick_net::udp::{ClientSocket, Received};
use authentick_proto::client::Exchange;
use authentick_proto::server::snapshot::Snapshot;
use authentick_wire::header::{Leap, ReferenceId};
use authentick_wire::limits::{DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::time::{NtpShort, NtpTime};

use crate::clock::HostClock;
use crate::config::Reference;

/// The stratum that goes out when only the kernel vouches: it does not tell how far away its source is, and 10 is what
/// chrony too gives a clock of unknown distance.
const KERNEL_STRATUM: u8 = 10;
/// How often a local daemon is asked.
const UPSTREAM_INTERVAL: Duration = Duration::from_secs(4);
/// How long its last answer counts.
const UPSTREAM_TRUST: Duration = Duration::from_secs(60);
const UPSTREAM_TIMEOUT: Duration = Duration::from_millis(500);

/// Keeps track of what vouches for the time.
pub(crate) struct Watcher {
    reference: Reference,
    clock: Arc<dyn HostClock>,
    precision: i8,
    upstream: Option<Upstream>,
    warned: bool,
}

struct Upstream {
    address: SocketAddr,
    entropy: Entropy,
    asked: Option<Instant>,
    answered: Option<(Instant, Snapshot)>,
}

impl Watcher {
    pub(crate) fn new(reference: Reference, clock: Arc<dyn HostClock>, entropy: Entropy) -> Self {
        let upstream = match &reference {
            Reference::Upstream(address) => {
                Some(Upstream { address: *address, entropy, asked: None, answered: None })
            }
            Reference::Asserted { .. } | Reference::Kernel => None,
        };
        Watcher { reference, clock, precision: clock::precision(), upstream, warned: false }
    }

    /// The state of the clock now. Asks a local daemon if it is time to; that takes up to half a second.
    pub(crate) fn look(&mut self) -> Snapshot {
        match &self.reference {
            Reference::Asserted { stratum, id } => {
                let snapshot = asserted(*stratum, *id, self.precision, self.clock.now());
                if !self.warned && self.clock.kernel() == KernelClock::Unsynchronised {
                    self.warned = true;
                    log::warn!(
                        "the kernel says that this host's clock is not synchronised; it is served as stratum {stratum} \
                         all the same, as server.reference says"
                    );
                }
                snapshot
            }
            Reference::Kernel => {
                let state = self.clock.kernel();
                if !self.warned && !matches!(state, KernelClock::Synchronised { .. }) {
                    self.warned = true;
                    let why = match state {
                        KernelClock::Unknown => {
                            "the kernel does not tell whether this host's clock is synchronised"
                        }
                        _ => "the kernel says that this host's clock is not synchronised",
                    };
                    log::warn!("{why}; clients are told not to trust it until that changes");
                }
                kernel(state, self.precision, self.clock.now())
            }
            Reference::Upstream(address) => {
                let (address, precision) = (*address, self.precision);
                let upstream = self.upstream.as_mut().expect("made together with the reference");
                let snapshot = upstream.look(precision, &*self.clock);
                let lost = snapshot.leap == Leap::Unsynchronised;
                if lost != self.warned {
                    self.warned = lost;
                    match lost {
                        true => log::warn!(
                            "{address} does not vouch for the time; clients are told not to trust it"
                        ),
                        false => log::info!("{address} vouches for the time as stratum {}", snapshot.stratum),
                    }
                }
                snapshot
            }
        }
    }
}

fn asserted(stratum: u8, id: ReferenceId, precision: i8, now: NtpTime) -> Snapshot {
    Snapshot {
        stratum,
        // A clock is never better than the shortest step that it can show.
        root_dispersion: NtpShort::from_bits(1),
        ..Snapshot::primary(precision, id, now)
    }
}

fn kernel(state: KernelClock, precision: i8, now: NtpTime) -> Snapshot {
    match state {
        KernelClock::Synchronised { leap, error_max_us } => Snapshot {
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
        },
        KernelClock::Unsynchronised | KernelClock::Unknown => Snapshot::unsynchronised(precision),
    }
}

impl Upstream {
    fn look(&mut self, precision: i8, clock: &dyn HostClock) -> Snapshot {
        if self.asked.is_none_or(|asked| asked.elapsed() >= UPSTREAM_INTERVAL) {
            self.asked = Some(Instant::now());
            match self.ask(precision, clock) {
                Ok(Some(snapshot)) => self.answered = Some((Instant::now(), snapshot)),
                Ok(None) => {}
                Err(error) => log::debug!("asking {}: {error}", self.address),
            }
        }
        match &self.answered {
            Some((when, snapshot)) if when.elapsed() < UPSTREAM_TRUST => *snapshot,
            _ => Snapshot::unsynchronised(precision),
        }
    }

    /// One exchange. The daemon keeps the same clock as we serve, so what it says of it holds for us unchanged.
    fn ask(&mut self, precision: i8, clock: &dyn HostClock) -> std::io::Result<Option<Snapshot>> {
        let socket = ClientSocket::connect(self.address)?;
        let mut request = [0; HEADER_SIZE];
        let (mut exchange, size) = Exchange::plain(&mut self.entropy, &mut request);
        socket.send(&request[..size])?;
        let deadline = Instant::now() + UPSTREAM_TIMEOUT;
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        loop {
            match socket.receive(&mut buffer, deadline)? {
                Received::Silence => return Ok(None),
                Received::Hint(_) => {}
                Received::Datagram { size, .. } => match exchange.receive(&mut buffer[..size], None) {
                    Ok(response) => return Ok(Some(mirrored(&response.header, precision, clock.now()))),
                    Err(check) => log::debug!("{}: {check}", self.address),
                },
            }
        }
    }
}

fn mirrored(header: &authentick_wire::header::Header, precision: i8, now: NtpTime) -> Snapshot {
    Snapshot {
        leap: header.leap,
        stratum: header.stratum,
        precision,
        root_delay: header.root_delay,
        root_dispersion: header.root_dispersion,
        reference_id: header.reference_id,
        reference: header.reference,
        taken: now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_state_decides_about_leap_and_dispersion() {
        let good =
            kernel(KernelClock::Synchronised { leap: Some(true), error_max_us: 2_000 }, -25, NtpTime::ZERO);
        assert_eq!((good.leap, good.stratum), (Leap::Insert, KERNEL_STRATUM));
        assert!(good.root_dispersion.as_nanos() >= 1_999_000);
        let deleted =
            kernel(KernelClock::Synchronised { leap: Some(false), error_max_us: 0 }, -25, NtpTime::ZERO);
        assert_eq!(deleted.leap, Leap::Delete);
        for state in [KernelClock::Unsynchronised, KernelClock::Unknown] {
            assert_eq!(kernel(state, -25, NtpTime::ZERO).leap, Leap::Unsynchronised);
        }
    }

    #[test]
    fn silent_upstream_is_not_trusted() {
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let reference = Reference::Upstream(silent.local_addr().unwrap());
        let mut watcher = Watcher::new(reference, Arc::new(crate::clock::SystemClock), Entropy::from_seed(1));
        assert_eq!(watcher.look().leap, Leap::Unsynchronised);
    }
}
