//! Timed requests: the server's side of "Experimental Analysis of the Performance and Scalability of Network Time
//! Security for the Network Time Protocol", section III.
//!
//! Only requests of named clients are timed, as the study recorded its measuring client alone. A request is found
//! again by its source and its origin timestamp (the transmit timestamp that the client sent), a key exchange by its
//! source address and port, so a client can join these records to its own t1 to t10.
//!
//! The study verifies after it has built the header; here verification comes first. So d_SNTP, which is from the
//! datagram in user space to the header, is the sum of parsing and building; d_SNTS is the sum of opening, verifying
//! and sealing, without the fresh cookie, which the equations do not have; the fresh cookie is a span of its own. d_SKE
//! is given twice: by the study's equations from accepting the connection to the sealed cookies, and as its program did
//! from the parsed request to the response with all cookies.
//!
//! A batch goes through the stages as one. With a batch of one, a span is that of the request itself; otherwise it is
//! the stage's time divided by the packets that were worked on in it, and says so.
//!
//! All times are as they were measured. Each stage's includes one reading of the clock; what that costs is measured
//! once and shown, so that who reads the records can subtract it.
//!
//! Of requests for time, one in some number can be timed. Which, a worker draws without looking at them: a batch
//! without one costs a subtraction.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use authentick_ke::server::Instants;
use authentick_net::clock::{monotonic_ns, reading_cost_ns};
use authentick_proto::limits::GROUP_SIZE;
use authentick_proto::prefix::PrefixSet;
use authentick_proto::server::probe::{Probe, Stage};
use authentick_wire::datagram::Datagram;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::NtpTime;
use crossbeam_queue::ArrayQueue;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

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
    stages_ns: ByName<u64, { Stage::ALL.len() }>,
    /// Packets that were worked on in each stage.
    counts: ByName<usize, { Stage::ALL.len() }>,
    /// Start of the batch and end of each stage, nanoseconds on the server's monotonic clock.
    instants_ns: [u64; Stage::ALL.len() + 1],
}

/// The stages of a request for time as records name them, in their order.
const STAGE_NAMES: [&str; Stage::ALL.len()] = ["parse", "admit", "open", "verify", "fresh", "build", "seal"];

/// The stages of a key exchange as records name them, in their order.
const KE_STAGE_NAMES: [&str; 5] = ["handshake", "choose", "export", "cookies", "response"];

/// A value for each stage, shown as an object.
#[derive(Clone, Copy, Debug)]
struct ByName<T, const N: usize>([&'static str; N], [T; N]);

impl<T: Serialize, const N: usize> Serialize for ByName<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(N))?;
        self.0.iter().zip(&self.1).try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
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
            d_sntp_ns: per_packet(Stage::Parse) + per_packet(Stage::Build),
            d_snts_ns: per_packet(Stage::Open) + per_packet(Stage::Verify) + per_packet(Stage::Seal),
            d_fresh_cookie_ns: per_packet(Stage::Fresh),
            stages_ns: ByName(STAGE_NAMES, Stage::ALL.map(per_packet)),
            counts: ByName(STAGE_NAMES, spans.counts),
            instants_ns: spans.instants_ns,
        }
    }
}

/// What the endpoint shows of a timed key exchange.
#[derive(Debug, Serialize)]
pub struct KeRecord {
    source: SocketAddr,
    /// Accepted connection to sealed cookies.
    d_ske_from_accept_ns: u64,
    /// Parsed request to sealed cookies.
    d_ske_from_request_ns: u64,
    /// Parsed request to the response with all cookies.
    d_ske_to_response_ns: u64,
    stages_ns: ByName<u64, { KE_STAGE_NAMES.len() }>,
}

impl From<&Instants> for KeRecord {
    fn from(timing: &Instants) -> Self {
        let Instants { source, accepted, request_parsed, cookies_sealed, response_written, .. } = *timing;
        let between_ns = |from: Instant, to: Instant| {
            u64::try_from(to.duration_since(from).as_nanos()).unwrap_or(u64::MAX)
        };
        let stages_ns = [
            between_ns(accepted, request_parsed),
            between_ns(request_parsed, timing.algorithm_chosen),
            between_ns(timing.algorithm_chosen, timing.keys_exported),
            between_ns(timing.keys_exported, cookies_sealed),
            between_ns(cookies_sealed, response_written),
        ];
        KeRecord {
            source,
            d_ske_from_accept_ns: between_ns(accepted, cookies_sealed),
            d_ske_from_request_ns: between_ns(request_parsed, cookies_sealed),
            d_ske_to_response_ns: between_ns(request_parsed, response_written),
            stages_ns: ByName(KE_STAGE_NAMES, stages_ns),
        }
    }
}

/// Where timed requests wait to be read: bounded, the oldest gives way.
#[derive(Debug)]
pub struct SpanRing {
    clients: PrefixSet,
    /// One request for time in so many of theirs is timed.
    every: u32,
    /// What one reading of the clock costs.
    clock_ns: u64,
    ntp: ArrayQueue<NtpSpans>,
    ke: ArrayQueue<Instants>,
}

impl SpanRing {
    /// A ring for all key exchanges of `clients`, and for one of their requests for time in `every`, which is at least
    /// one. Measures what a reading of the clock costs, which takes some tenths of a millisecond.
    #[must_use]
    pub fn new(clients: PrefixSet, every: u32) -> Self {
        SpanRing {
            clients,
            every,
            clock_ns: reading_cost_ns(),
            ntp: ArrayQueue::new(WAITING_COUNT_MAX),
            ke: ArrayQueue::new(WAITING_COUNT_MAX),
        }
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

/// A reading in JSON, made piece by piece as its reader takes it: what was kept at its beginning, as far as it is still
/// kept when its turn comes.
#[derive(Debug)]
pub(crate) struct Reading {
    /// What one reading of the clock costs. It is in each stage's time, and in a sum of stages once for each.
    clock_ns: u64,
    /// One request for time in so many is timed.
    every: u32,
    /// The next record to be written of each kind.
    at: Position,
    /// Where to go on reading.
    end: Position,
    part: Part,
    /// No record of this kind was written yet.
    is_first: bool,
}

/// What comes next of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    Ntp,
    Ke,
    Nothing,
}

/// Records in a piece of a reading: some 32 KiB.
const PIECE_COUNT_MAX: usize = 64;

impl Reading {
    /// The next piece; `None` after the last one.
    pub(crate) fn next(&mut self, kept: &Kept) -> Option<String> {
        let mut piece = String::new();
        let following = match self.part {
            Part::Head => {
                let Position { ntp, ke } = self.end;
                let (clock_ns, every) = (self.clock_ns, self.every);
                let next = format!(r#"{{"ntp":{ntp},"ke":{ke}}}"#);
                piece = format!(r#"{{"clock_ns":{clock_ns},"every":{every},"next":{next},"ntp":["#);
                Some(Part::Ntp)
            }
            Part::Ntp => {
                let Reading { at, end, is_first, .. } = self;
                let is_over = kept.ntp.write::<NtpRecord>((&mut at.ntp, end.ntp), is_first, &mut piece);
                is_over.then(|| {
                    piece.push_str(r#"],"ke":["#);
                    self.is_first = true;
                    Part::Ke
                })
            }
            Part::Ke => {
                let Reading { at, end, is_first, .. } = self;
                let is_over = kept.ke.write::<KeRecord>((&mut at.ke, end.ke), is_first, &mut piece);
                is_over.then(|| {
                    piece.push_str("]}");
                    Part::Nothing
                })
            }
            Part::Nothing => return None,
        };
        self.part = following.unwrap_or(self.part);
        Some(piece)
    }
}

impl Kept {
    /// Moves the contents of `ring` here. Called now and then, so that a reader finds more than the ring holds.
    pub(crate) fn collect(&mut self, ring: &SpanRing) {
        self.ntp.take_over(&ring.ntp);
        self.ke.take_over(&ring.ke);
    }

    /// A reading of what is kept of `ring` now, from there on.
    pub(crate) fn reading(&self, ring: &SpanRing, from: Position) -> Reading {
        let at = Position { ntp: self.ntp.first(from.ntp), ke: self.ke.first(from.ke) };
        let end = Position { ntp: self.ntp.end(), ke: self.ke.end() };
        Reading { clock_ns: ring.clock_ns, every: ring.every, at, end, part: Part::Head, is_first: true }
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

    /// The number of the first record that is kept, of those from this one on.
    fn first(&self, number: u64) -> u64 {
        number.max(self.forgotten_count)
    }

    /// Records from this number on, as far as they are kept.
    fn since(&self, number: u64) -> impl Iterator<Item = &T> {
        let skipped = usize::try_from(self.first(number) - self.forgotten_count).unwrap_or(usize::MAX);
        self.kept.iter().skip(skipped)
    }

    /// Writes a piece of records as `R`, from `at` on and before `end`, each but the first one behind a comma; whether
    /// they are all written.
    fn write<'a, R: From<&'a T> + Serialize>(
        &'a self,
        (at, end): (&mut u64, u64),
        is_first: &mut bool,
        out: &mut String,
    ) -> bool {
        let begin = self.first(*at);
        let count = end.saturating_sub(begin).min(PIECE_COUNT_MAX as u64);
        for record in self.since(begin).take(count as usize) {
            // A record has only text and numbers.
            let Ok(text) = serde_json::to_string(&R::from(record)) else { continue };
            if !std::mem::replace(is_first, false) {
                out.push(',');
            }
            out.push_str(&text);
        }
        *at = begin + count;
        *at >= end
    }
}

/// Draws one in some number, without a pattern that requests could have too: clients that take turns are drawn alike.
#[derive(Debug)]
struct Draw {
    every: u32,
    /// How many are passed over before the next one.
    left: u32,
    state: u64,
}

impl Draw {
    /// Draws one in `every`; another `seed` draws others.
    const fn new(every: u32, seed: u64) -> Self {
        let mut draw = Draw { every, left: 0, state: seed };
        draw.left = draw.gap();
        draw
    }

    /// Of so many that come now, at most 64, which are drawn: a bit for each.
    fn of(&mut self, count: usize) -> u64 {
        let (mut drawn, mut index) = (0, self.left as usize);
        while index < count {
            drawn |= 1 << index;
            index += 1 + self.gap() as usize;
        }
        self.left = (index - count) as u32;
        drawn
    }

    /// How many to pass over: every number from 0 to 2 (every - 1) alike, so every - 1 on average. SplitMix64 (Steele,
    /// Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
    const fn gap(&mut self) -> u32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bound = 2 * self.every as u64 - 1;
        ((((z ^ (z >> 31)) >> 32) * bound) >> 32) as u32
    }
}

/// A worker's probe. Reads the clock only for batches with a request that is to be timed.
#[derive(Debug)]
pub struct Recorder {
    ring: Arc<SpanRing>,
    draw: Draw,
    /// Which requests of this batch are timed: a bit for each.
    timed: u64,
    instants_ns: [u64; Stage::ALL.len() + 1],
    counts: [usize; Stage::ALL.len()],
}

const _: () = assert!(GROUP_SIZE <= u64::BITS as usize, "there is a bit for each request of a batch");

impl Recorder {
    /// A probe that records into `ring`; workers with different numbers draw different requests.
    #[must_use]
    pub fn new(ring: Arc<SpanRing>, number: usize) -> Self {
        let draw = Draw::new(ring.every, number as u64);
        Recorder { ring, draw, timed: 0, instants_ns: [0; 8], counts: [0; 7] }
    }
}

impl Probe for Recorder {
    fn start(&mut self, batch: &[Datagram<'_>]) {
        self.timed = self.draw.of(batch.len());
        if self.timed == 0 {
            return;
        }
        for (index, datagram) in batch.iter().enumerate() {
            if self.timed & 1 << index != 0 && !self.ring.clients.contains(datagram.source.ip()) {
                self.timed &= !(1 << index);
            }
        }
        if self.timed != 0 {
            self.instants_ns[0] = monotonic_ns();
        }
    }

    #[inline]
    fn end_of(&mut self, stage: Stage, count: usize) {
        if self.timed != 0 {
            self.instants_ns[stage as usize + 1] = monotonic_ns();
            self.counts[stage as usize] = count;
        }
    }

    fn finish(&mut self, batch: &[Datagram<'_>]) {
        if self.timed == 0 {
            return;
        }
        for (_, datagram) in batch.iter().enumerate().filter(|(index, _)| self.timed & 1 << index != 0) {
            let Some(header) = datagram.request.first_chunk::<HEADER_SIZE>() else { continue };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of `count` are drawn, in batches of `batch_size`.
    fn drawn(draw: &mut Draw, count: usize, batch_size: usize) -> Vec<usize> {
        let firsts = (0..count).step_by(batch_size);
        let places = firsts.flat_map(|first| {
            let bits = draw.of(batch_size.min(count - first));
            (0..64).filter(move |index| bits & 1 << index != 0).map(move |index| first + index)
        });
        places.collect()
    }

    #[test]
    fn one_in_so_many_is_drawn_however_they_come_and_no_client_that_takes_turns_is_left_out() {
        let count = 64 * 4000;
        let places = drawn(&mut Draw::new(64, 0), count, 16);
        assert!(places.len().abs_diff(4000) < 200, "{}", places.len());
        // 64 clients in turn: each is drawn about as often as any other.
        let of_client = |client| places.iter().filter(|place| *place % 64 == client).count();
        assert!((0..64).all(|client| (25..110).contains(&of_client(client))));
        for batch_size in [1, 3, 64] {
            assert_eq!(drawn(&mut Draw::new(64, 0), count, batch_size), places, "{batch_size}");
        }
        assert_ne!(drawn(&mut Draw::new(64, 1), count, 16), places, "workers draw others");
        let all = drawn(&mut Draw::new(1, 7), 100, 16);
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        let seldom = drawn(&mut Draw::new(10_000, 0), 500_000, 16);
        assert!((25..100).contains(&seldom.len()), "{}", seldom.len());
    }

    #[test]
    fn record_of_a_key_exchange_has_both_readings_and_stages_that_add_up_to_them() {
        let accepted = Instant::now();
        let after = |ns| accepted + std::time::Duration::from_nanos(ns);
        let record = KeRecord::from(&Instants {
            source: "192.0.2.1:1000".parse().unwrap(),
            accepted,
            request_parsed: after(1000),
            algorithm_chosen: after(1010),
            keys_exported: after(1210),
            cookies_sealed: after(1250),
            response_written: after(1255),
        });
        assert_eq!(record.stages_ns.1, [1000, 10, 200, 40, 5]);
        assert_eq!((record.d_ske_from_accept_ns, record.d_ske_from_request_ns), (1250, 250));
        assert_eq!(record.d_ske_to_response_ns, 255);
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.contains(r#""stages_ns":{"handshake":1000,"choose":10,"export":200"#), "{text}");
    }

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
