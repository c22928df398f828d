//! A local daemon that keeps this host's clock and says how good it is: asked over NTP, and believed within bounds.
//!
//! What it says about its clock is true of ours because it is the same clock. So a measured offset beyond the daemon's
//! own error and the round trip means that it is a different clock.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_net::clock::KernelClock;
use authentick_net::udp::{ClientSocket, Received};
use authentick_proto::client::{Check, Exchange, Sample};
use authentick_proto::server::snapshot::Snapshot;
use authentick_wire::header::{Header, ReferenceId};
use authentick_wire::limits::{DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::time::{NtpShort, NtpSpan, NtpTime};

use super::Lost;
use crate::clock::HostClock;

/// How often the daemon is asked while it vouches.
const INTERVAL: Duration = Duration::from_secs(4);
/// And how often while it does not, so that its return is seen soon.
const INTERVAL_LOST: Duration = Duration::from_secs(1);
/// And after it asked for fewer requests.
const INTERVAL_RATE: Duration = Duration::from_secs(16);
const TIMEOUT: Duration = Duration::from_millis(500);
/// How long its last answer stays valid when it is silent, depending on what the kernel says about the clock: long
/// enough for a restart if the kernel agrees, and not longer than a few lost datagrams if it does not.
const TRUST: Duration = Duration::from_secs(60);
const TRUST_UNKNOWN: Duration = Duration::from_secs(20);
const TRUST_UNSYNCHRONISED: Duration = Duration::from_secs(8);
/// By how much the clock may be corrected while the daemon is asked, in addition to the daemon's own error.
const OFFSET_MARGIN_NS: u64 = 10_000_000;

/// The result of asking.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// A header that passed every check, and what was measured.
    Good(Header, Sample),
    /// An answer to our very request that says otherwise.
    Says(Check),
    /// None.
    Silence,
}

/// What is known of the daemon. Time and the kernel's word are arguments.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    next: Duration,
    good: Option<(Duration, Snapshot)>,
    /// When the daemon said anything last.
    heard: Option<Duration>,
    lost: Lost,
    /// Whether the kernel has called the clock synchronised while the daemon vouched for it.
    agreed: bool,
}

impl Trust {
    pub(super) const fn new() -> Self {
        Trust { next: Duration::ZERO, good: None, heard: None, lost: Lost::Silent, agreed: false }
    }

    /// Whether it is time to ask.
    pub(super) fn is_due(&self, boot: Duration) -> bool {
        boot >= self.next
    }

    /// Asks at once: there is another address to ask.
    pub(super) const fn hasten(&mut self) {
        self.next = Duration::ZERO;
    }

    /// Whether the daemon has said nothing for as long as its last answer would hold.
    pub(super) fn is_silent(&self, kernel: KernelClock, boot: Duration) -> bool {
        self.heard.is_none_or(|at| boot.saturating_sub(at) > trust_time(kernel))
    }

    /// Takes an answer; `now` is the time of day.
    pub(super) fn take(&mut self, answer: Answer, precision: i8, now: NtpTime, boot: Duration) {
        if !matches!(answer, Answer::Silence) {
            self.heard = Some(boot);
        }
        let lost = match answer {
            Answer::Good(header, sample) => {
                let (offset, bound) = (sample.offset.as_nanos().unsigned_abs(), bound_ns(&sample));
                if offset <= bound {
                    self.next = boot + INTERVAL;
                    self.good = Some((boot, mirrored(&header, offset, precision, now)));
                    return;
                }
                Lost::Offset { offset: sample.offset, bound: NtpSpan::from_nanos(bound as i64) }
            }
            //= rfc5905#7.4-3
            Answer::Says(Check::Kiss(ReferenceId::RATE)) => {
                self.next = boot + INTERVAL_RATE;
                return;
            }
            Answer::Says(check) => Lost::Says(check),
            Answer::Silence => {
                self.next = boot + INTERVAL_LOST;
                return;
            }
        };
        (self.next, self.good, self.lost) = (boot + INTERVAL_LOST, None, lost);
    }

    /// What holds now.
    pub(super) fn verdict(&mut self, kernel: KernelClock, boot: Duration) -> Result<Snapshot, Lost> {
        let (at, snapshot) = self.good.ok_or(self.lost)?;
        if boot.saturating_sub(at) > trust_time(kernel) {
            (self.good, self.lost) = (None, Lost::Silent);
            return Err(Lost::Silent);
        }
        self.agreed |= matches!(kernel, KernelClock::Synchronised { .. });
        match kernel {
            KernelClock::Unsynchronised if self.agreed => Err(Lost::Disagreement),
            KernelClock::Unsynchronised | KernelClock::Synchronised { .. } | KernelClock::Unknown => {
                Ok(snapshot)
            }
        }
    }
}

/// How long an answer holds.
const fn trust_time(kernel: KernelClock) -> Duration {
    match kernel {
        KernelClock::Synchronised { .. } => TRUST,
        KernelClock::Unknown => TRUST_UNKNOWN,
        KernelClock::Unsynchronised => TRUST_UNSYNCHRONISED,
    }
}

/// How far the daemon's clock may seem to be from ours if it is ours.
fn bound_ns(sample: &Sample) -> u64 {
    let half_way = sample.delay.as_nanos().max(0).unsigned_abs() / 2;
    sample.root_distance.as_nanos().unsigned_abs().saturating_add(half_way).saturating_add(OFFSET_MARGIN_NS)
}

/// What the daemon says, for our own use. The measured offset is added to the error, as a correction may be under way.
//= rfc5905#7.3-5
fn mirrored(header: &Header, offset_ns: u64, precision: i8, now: NtpTime) -> Snapshot {
    Snapshot {
        leap: header.leap,
        stratum: header.stratum,
        precision,
        root_delay: header.root_delay,
        root_dispersion: header.root_dispersion.saturating_add(NtpShort::from_nanos(offset_ns)),
        reference_id: header.reference_id,
        reference: header.reference,
        taken: now,
    }
}

/// One exchange; takes up to half a second.
pub(super) fn ask(address: SocketAddr, entropy: &mut Entropy, clock: &dyn HostClock) -> Answer {
    exchange(address, entropy, clock).unwrap_or_else(|error| {
        log::debug!("asking {address}: {error}");
        Answer::Silence
    })
}

fn exchange(address: SocketAddr, entropy: &mut Entropy, clock: &dyn HostClock) -> std::io::Result<Answer> {
    let socket = ClientSocket::connect(address)?;
    let mut request = [0; HEADER_SIZE];
    let (mut exchange, size) = Exchange::plain(entropy, &mut request);
    let sent = clock.now();
    socket.send(&request[..size])?;
    let deadline = Instant::now() + TIMEOUT;
    let mut buffer = [0; DATAGRAM_SIZE_MAX];
    loop {
        match socket.receive(&mut buffer, deadline)? {
            Received::Silence => return Ok(Answer::Silence),
            Received::Hint(_) => {}
            Received::Datagram { size, .. } => {
                let arrived = clock.now();
                match exchange.receive(&mut buffer[..size], None) {
                    Ok(response) => {
                        let sample = Sample::new(&response.header, sent, arrived);
                        return Ok(Answer::Good(response.header, sample));
                    }
                    // These checks come after the origin: whoever sent it has seen the request.
                    Err(check @ (Check::Kiss(_) | Check::Clock(_) | Check::Timestamps)) => {
                        return Ok(Answer::Says(check));
                    }
                    Err(check) => log::debug!("{address}: {check}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use authentick_proto::client::Unsound;
    use authentick_wire::header::Leap;

    use super::*;

    const SYNCHRONISED: KernelClock = KernelClock::Synchronised { leap: None, error_max_us: 1 };

    fn good(offset_ms: i64) -> Answer {
        let header = Header {
            leap: Leap::None,
            stratum: 2,
            root_dispersion: NtpShort::from_nanos(5_000_000),
            ..Header::minimal_request(NtpTime::ZERO)
        };
        let sample = Sample {
            offset: NtpSpan::from_nanos(offset_ms * 1_000_000),
            delay: NtpSpan::from_nanos(2_000_000),
            round_trip: NtpSpan::from_nanos(2_000_000),
            root_distance: NtpSpan::from_nanos(5_000_000),
        };
        Answer::Good(header, sample)
    }

    const fn second(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn vouched() -> Trust {
        let mut trust = Trust::new();
        trust.take(good(0), -20, NtpTime::ZERO, second(0));
        trust
    }

    //= rfc5905#7.4-3
    #[test]
    fn word_that_the_clock_is_not_synchronised_counts_at_once() {
        let unwell = [
            Check::Clock(Unsound::Leap),
            Check::Clock(Unsound::Stratum(16)),
            Check::Clock(Unsound::RootDistance),
            Check::Timestamps,
            Check::Kiss(ReferenceId::DENY),
            Check::Kiss(ReferenceId(*b"INIT")),
        ];
        for check in unwell {
            let mut trust = vouched();
            assert!(trust.verdict(SYNCHRONISED, second(1)).is_ok());
            trust.take(Answer::Says(check), -20, NtpTime::ZERO, second(4));
            assert_eq!(trust.verdict(SYNCHRONISED, second(4)), Err(Lost::Says(check)));
            assert!(trust.is_due(second(5)), "its return is looked for each second");
            trust.take(good(0), -20, NtpTime::ZERO, second(5));
            assert!(trust.verdict(SYNCHRONISED, second(5)).is_ok());
        }
        let mut trust = vouched();
        trust.take(Answer::Says(Check::Kiss(ReferenceId::RATE)), -20, NtpTime::ZERO, second(4));
        assert!(trust.verdict(SYNCHRONISED, second(4)).is_ok(), "which says nothing of the clock");
        assert!(!trust.is_due(second(19)) && trust.is_due(second(20)));
    }

    #[test]
    fn silence_counts_by_what_the_kernel_says() {
        for (kernel, seconds) in
            [(SYNCHRONISED, 60), (KernelClock::Unknown, 20), (KernelClock::Unsynchronised, 8)]
        {
            let mut trust = vouched();
            trust.take(Answer::Silence, -20, NtpTime::ZERO, second(4));
            assert!(trust.is_due(second(5)));
            assert!(
                !trust.is_silent(kernel, second(seconds)) && trust.is_silent(kernel, second(seconds + 1))
            );
            assert!(trust.verdict(kernel, second(seconds)).is_ok(), "{kernel:?}");
            assert_eq!(trust.verdict(kernel, second(seconds + 1)), Err(Lost::Silent), "{kernel:?}");
        }
    }

    #[test]
    fn kernel_that_has_agreed_and_withdraws_its_word_is_heeded() {
        // A daemon that does not inform the kernel (chrony without rtcsync) is believed all the same.
        let mut trust = vouched();
        assert!(trust.verdict(KernelClock::Unsynchronised, second(1)).is_ok());
        assert!(trust.verdict(SYNCHRONISED, second(2)).is_ok());
        assert_eq!(trust.verdict(KernelClock::Unsynchronised, second(3)), Err(Lost::Disagreement));
        assert!(trust.verdict(SYNCHRONISED, second(4)).is_ok());
    }

    //= rfc5905#7.3-5
    #[test]
    fn clock_that_is_another_one_is_not_mirrored() {
        // Distance 5 ms, half the way 1 ms, margin 10 ms.
        for (offset_ms, holds) in
            [(0, true), (15, true), (-15, true), (17, false), (-17, false), (777_600_000, false)]
        {
            let mut trust = Trust::new();
            trust.take(good(offset_ms), -20, NtpTime::ZERO, second(0));
            match trust.verdict(SYNCHRONISED, second(0)) {
                Ok(snapshot) => {
                    assert!(holds, "{offset_ms}");
                    let dispersion = snapshot.root_dispersion.as_nanos();
                    assert!(dispersion.abs_diff(5_000_000 + offset_ms.unsigned_abs() * 1_000_000) < 50_000);
                }
                Err(lost) => assert!(!holds && matches!(lost, Lost::Offset { .. }), "{offset_ms}: {lost}"),
            }
        }
    }
}
