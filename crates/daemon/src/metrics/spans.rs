//! Timed requests: the server's side of "Experimental Analysis of the Performance and Scalability of Network Time
//! Security for the Network Time Protocol", section III.
//!
//! Only requests of named clients are timed, as the study recorded its measuring client alone. A request is found
//! again by its source and its origin timestamp (the transmit timestamp that the client sent), a key exchange by its
//! source address and port, so a client can join these records to its own t1 to t10.
//!
//! The study verifies after it has built the header; here verification comes first. So d_SNTP is the build stage;
//! d_SNTS is the sum of opening, verifying and sealing, without the fresh cookie, which the study's server did not
//! make; the fresh cookie is a span of its own. d_SKE is given twice: from accepting the connection, and from the
//! parsed request, both to the sealed cookies.
//!
//! A batch goes through the stages as one. With a batch of one, a span is that of the request itself; otherwise it is
//! the stage's time divided by the packets that were worked on in it, and says so.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use authentick_ke::server::Instants;
use authentick_net::clock::monotonic_ns;
use authentick_proto::prefix::PrefixSet;
use authentick_proto::server::probe::{Probe, Stage};
use authentick_wire::datagram::Datagram;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::NtpTime;
use crossbeam_queue::ArrayQueue;
use serde::{Serialize, Serializer};

/// Records that wait for a reader, of each kind.
const WAITING_COUNT_MAX: usize = 4096;
/// Records that stay readable, of each kind.
const KEPT_COUNT_MAX: usize = 65536;

/// The instants of one timed request for time.
#[derive(Clone, Copy, Debug)]
pub struct NtpSpans {
    source: SocketAddr,
    origin: NtpTime,
    received: NtpTime,
    answered: bool,
    batch_size: usize,
    /// When the batch began, and when each stage ended, on the monotonic clock.
    instants_ns: [u64; Stage::ALL.len() + 1],
    /// Packets that were worked on in each stage.
    counts: [usize; Stage::ALL.len()],
}

impl NtpSpans {
    /// The time of `stage` for each packet that was worked on in it; 0 if none was.
    fn per_packet_ns(&self, stage: Stage) -> u64 {
        let index = stage as usize;
        let whole = self.instants_ns[index + 1].saturating_sub(self.instants_ns[index]);
        whole.checked_div(self.counts[index] as u64).unwrap_or(0)
    }
}

/// What the endpoint shows of a timed request.
#[derive(Debug, Serialize)]
pub struct NtpRecord {
    source: SocketAddr,
    /// The transmit timestamp of the request, 16 hexadecimal digits.
    origin: String,
    /// The kernel's receive timestamp, 16 hexadecimal digits.
    received: String,
    answered: bool,
    batch_size: usize,
    /// `request` for a batch of one, else `batch mean`.
    per: &'static str,
    d_sntp_ns: u64,
    d_snts_ns: u64,
    d_fresh_cookie_ns: u64,
    #[serde(serialize_with = "by_name")]
    stages_ns: [u64; Stage::ALL.len()],
    /// Start of the batch and end of each stage, nanoseconds on the server's monotonic clock.
    instants_ns: [u64; Stage::ALL.len() + 1],
}

/// The stages as records name them, in their order.
const STAGE_NAMES: [&str; Stage::ALL.len()] = ["parse", "admit", "open", "verify", "fresh", "build", "seal"];

fn by_name<S: Serializer>(stages_ns: &[u64; Stage::ALL.len()], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(STAGE_NAMES.iter().zip(stages_ns))
}

impl From<&NtpSpans> for NtpRecord {
    fn from(spans: &NtpSpans) -> Self {
        let per_packet = |stage| spans.per_packet_ns(stage);
        NtpRecord {
            source: spans.source,
            origin: format!("{:016x}", spans.origin.to_bits()),
            received: format!("{:016x}", spans.received.to_bits()),
            answered: spans.answered,
            batch_size: spans.batch_size,
            per: if spans.batch_size == 1 { "request" } else { "batch mean" },
            d_sntp_ns: per_packet(Stage::Build),
            d_snts_ns: per_packet(Stage::Open) + per_packet(Stage::Verify) + per_packet(Stage::Seal),
            d_fresh_cookie_ns: per_packet(Stage::Fresh),
            stages_ns: Stage::ALL.map(per_packet),
            instants_ns: spans.instants_ns,
        }
    }
}

/// What the endpoint shows of a timed key exchange.
#[derive(Debug, Serialize)]
pub struct KeRecord {
    source: SocketAddr,
    d_ske_from_accept_ns: u128,
    d_ske_from_request_ns: u128,
}

impl From<&Instants> for KeRecord {
    fn from(timing: &Instants) -> Self {
        KeRecord {
            source: timing.source,
            d_ske_from_accept_ns: timing.cookies_sealed.duration_since(timing.accepted).as_nanos(),
            d_ske_from_request_ns: timing.cookies_sealed.duration_since(timing.request_parsed).as_nanos(),
        }
    }
}

/// Where timed requests wait to be read: bounded, the oldest gives way.
#[derive(Debug)]
pub struct SpanRing {
    clients: PrefixSet,
    ntp: ArrayQueue<NtpSpans>,
    ke: ArrayQueue<Instants>,
}

impl SpanRing {
    /// A ring for requests of `clients`.
    #[must_use]
    pub fn new(clients: PrefixSet) -> Self {
        SpanRing { clients, ntp: ArrayQueue::new(WAITING_COUNT_MAX), ke: ArrayQueue::new(WAITING_COUNT_MAX) }
    }

    /// Whose requests are timed.
    #[must_use]
    pub const fn clients(&self) -> &PrefixSet {
        &self.clients
    }

    pub(crate) fn push_ke(&self, timing: Instants) {
        self.ke.force_push(timing);
    }
}

/// Records taken out of the ring, so that reading does not remove them.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    ntp: Shelf<NtpSpans>,
    ke: Shelf<Instants>,
}

/// Where a reading begins: the number of the first record of each kind that is to be shown, counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Position {
    pub(crate) ntp: u64,
    pub(crate) ke: u64,
}

/// The records that were asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Records {
    /// Where to go on reading.
    next: Position,
    ntp: Vec<NtpRecord>,
    ke: Vec<KeRecord>,
}

impl Kept {
    /// Moves the contents of `ring` here. Called now and then, so that a reader finds more than the ring holds.
    pub(crate) fn collect(&mut self, ring: &SpanRing) {
        self.ntp.take_over(&ring.ntp);
        self.ke.take_over(&ring.ke);
    }

    pub(crate) fn records(&self, from: Position) -> Records {
        Records {
            next: Position { ntp: self.ntp.end(), ke: self.ke.end() },
            ntp: self.ntp.since(from.ntp).map(NtpRecord::from).collect(),
            ke: self.ke.since(from.ke).map(KeRecord::from).collect(),
        }
    }
}

/// Numbered records, of which the newest are kept.
#[derive(Debug)]
struct Shelf<T> {
    kept: VecDeque<T>,
    forgotten_count: u64,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Shelf { kept: VecDeque::new(), forgotten_count: 0 }
    }
}

impl<T> Shelf<T> {
    fn take_over(&mut self, waiting: &ArrayQueue<T>) {
        while let Some(record) = waiting.pop() {
            if self.kept.len() == KEPT_COUNT_MAX {
                self.kept.pop_front();
                self.forgotten_count += 1;
            }
            self.kept.push_back(record);
        }
    }

    /// The number that the next record will have.
    fn end(&self) -> u64 {
        self.forgotten_count + self.kept.len() as u64
    }

    /// Records from this number on, as far as they are kept.
    fn since(&self, number: u64) -> impl Iterator<Item = &T> {
        let skipped = usize::try_from(number.saturating_sub(self.forgotten_count)).unwrap_or(usize::MAX);
        self.kept.iter().skip(skipped)
    }
}

/// A worker's probe. Reads the clock only for batches in which a named client asks.
#[derive(Debug)]
pub struct Recorder {
    ring: Arc<SpanRing>,
    watched: bool,
    instants_ns: [u64; Stage::ALL.len() + 1],
    counts: [usize; Stage::ALL.len()],
}

impl Recorder {
    /// A probe that records into `ring`.
    #[must_use]
    pub const fn new(ring: Arc<SpanRing>) -> Self {
        Recorder { ring, watched: false, instants_ns: [0; 8], counts: [0; 7] }
    }
}

impl Probe for Recorder {
    fn start(&mut self, batch: &[Datagram<'_>]) {
        self.watched = batch.iter().any(|datagram| self.ring.clients.contains(datagram.source.ip()));
        if self.watched {
            self.instants_ns[0] = monotonic_ns();
        }
    }

    fn end_of(&mut self, stage: Stage, count: usize) {
        if self.watched {
            self.instants_ns[stage as usize + 1] = monotonic_ns();
            self.counts[stage as usize] = count;
        }
    }

    fn finish(&mut self, batch: &[Datagram<'_>]) {
        if !self.watched {
            return;
        }
        for datagram in batch {
            let Some(header) = datagram.request.first_chunk::<HEADER_SIZE>() else { continue };
            if self.ring.clients.contains(datagram.source.ip()) {
                self.ring.ntp.force_push(NtpSpans {
                    source: datagram.source,
                    origin: authentick_wire::header::Header::parse(header).transmit,
                    received: datagram.received,
                    answered: datagram.response_size > 0,
                    batch_size: batch.len(),
                    instants_ns: self.instants_ns,
                    counts: self.counts,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_goes_on_where_it_ended_even_if_records_are_forgotten() {
        let waiting = ArrayQueue::new(WAITING_COUNT_MAX);
        let mut shelf = Shelf::default();
        let add = |shelf: &mut Shelf<u64>, numbers: std::ops::Range<u64>| {
            for number in numbers {
                waiting.force_push(number);
                if waiting.is_full() {
                    shelf.take_over(&waiting);
                }
            }
            shelf.take_over(&waiting);
        };
        add(&mut shelf, 0..5);
        assert_eq!(shelf.since(0).copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        let end = shelf.end();
        add(&mut shelf, 5..7);
        assert_eq!(shelf.since(end).copied().collect::<Vec<_>>(), [5, 6]);
        let many = KEPT_COUNT_MAX as u64;
        add(&mut shelf, 7..many + 10);
        assert_eq!(shelf.since(0).next(), Some(&10));
        assert_eq!(shelf.since(many + 8).copied().collect::<Vec<_>>(), [many + 8, many + 9]);
        assert_eq!(shelf.since(u64::MAX).count(), 0);
    }
}
