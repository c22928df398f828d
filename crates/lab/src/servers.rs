//! An NTP server that misbehaves in a set way and counts what it did, so that a test can demand a tester's counts to
//! equal its own. It knows no authentication.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use authentick_net::udp::dropped_count;
pub use authentick_rig::relay::make_room;
use authentick_rig::threads::Threads;
use authentick_wire::Writer;
use authentick_wire::extension::{self, FieldType};
use authentick_wire::header::{Header, Leap, Mode, ReferenceId};
use authentick_wire::limits::{DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::nts::NtsFields;
use authentick_wire::packet::Packet;

use crate::bucket::Bucket;

/// How often a thread without work looks whether it is to end.
const IDLE: Duration = Duration::from_millis(20);

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is none.
    Drop,
    /// Its stratum.
    Stratum(u8),
    /// Its version.
    Version(u8),
    /// Its leap indicator says that the clock is not synchronised.
    Unsynchronised,
    /// Its leap indicator and its stratum, which is 16, say so: how NTP servers answer before they are synchronised.
    NeverSet,
    /// Its origin is not what the client sent.
    WrongOrigin,
    /// It comes twice.
    Twice,
    /// It comes so much later.
    Late(Duration),
    /// It consists of so many octets of 0xA5.
    Garbage(usize),
    /// It is a kiss, without authentication.
    Kiss {
        /// The kiss code.
        code: ReferenceId,
        /// Whether it repeats the request's unique identifier, if that has one.
        identifier: bool,
    },
}

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It reads on and says nothing.
    Silent,
    /// It closes its socket, so that the host refuses requests by ICMP.
    Closed,
}

/// Which requests get which answer. Requests are numbered from 1; the first rule that names a number holds.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<(u64, u64, Fault)>,
    stop: Option<(u64, Ending)>,
    pause: Option<(Duration, Duration)>,
    limit: Option<Bucket>,
}

impl Policy {
    /// Good answers alone.
    #[must_use]
    pub fn good() -> Self {
        Policy::default()
    }

    /// Every `count`th request is answered with this fault.
    #[must_use]
    pub fn every(self, count: u64, fault: Fault) -> Self {
        self.every_from(count, 0, fault)
    }

    /// Every request whose number has the remainder `phase` modulo `count` is answered with this fault, so that rules
    /// need not meet.
    ///
    /// # Panics
    /// If `phase` is no such remainder.
    #[must_use]
    pub fn every_from(mut self, count: u64, phase: u64, fault: Fault) -> Self {
        assert!(phase < count, "{phase} modulo {count}");
        self.rules.push((count, phase, fault));
        self
    }

    /// After `count` requests the server ends.
    #[must_use]
    pub fn stop_after(self, count: u64, ending: Ending) -> Self {
        Policy { stop: Some((count, ending)), ..self }
    }

    /// The last `length` of each `period` since its start the server does nothing; requests wait in its socket and are
    /// answered afterwards.
    ///
    /// # Panics
    /// If the server would never do anything.
    #[must_use]
    pub fn pause(self, period: Duration, length: Duration) -> Self {
        assert!(length < period, "{length:?} of {period:?}");
        Policy { pause: Some((period, length)), ..self }
    }

    /// The server answers at most `rate_rps` requests a second, and `burst` at once; to the others, which get no
    /// number, it says nothing.
    #[must_use]
    pub fn limit(self, rate_rps: f64, burst: u32) -> Self {
        Policy { limit: Some(Bucket::new(rate_rps, burst)), ..self }
    }

    /// The rule for a request, by its place.
    fn rule(&self, number: u64) -> Option<usize> {
        self.rules.iter().position(|(count, phase, _)| number % count == *phase)
    }

    /// How long a server that has run for `elapsed` still pauses.
    fn pause_left(&self, elapsed: Duration) -> Option<Duration> {
        let (period, length) = self.pause?;
        let left = period.as_nanos() - elapsed.as_nanos() % period.as_nanos();
        let left = Duration::from_nanos(left as u64);
        (left <= length).then_some(left)
    }
}

/// What a server did: `received` is the sum of `good`, `faults`, `ignored`, `limited` and `malformed`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams read.
    pub received: u64,
    /// Requests answered well.
    pub good: u64,
    /// Requests under each rule of the policy, in its order.
    pub faults: Vec<u64>,
    /// Requests after the end.
    pub ignored: u64,
    /// Requests beyond the limit.
    pub limited: u64,
    /// Datagrams that are no client's request; they get no answer and no number.
    pub malformed: u64,
    /// Datagrams sent, or due to be sent late.
    pub sent: u64,
}

/// A running server. It ends with this value.
#[derive(Debug)]
pub struct NtpServer {
    address: SocketAddr,
    started: Instant,
    shared: Arc<Shared>,
    _threads: Threads,
}

#[derive(Debug)]
struct Shared {
    counts: Mutex<Counts>,
    /// Absent once it is closed.
    socket: Mutex<Option<Arc<UdpSocket>>>,
}

impl NtpServer {
    /// Serves on `socket`, which a test may have bound within a host.
    ///
    /// # Panics
    /// If the socket cannot be set up.
    #[must_use]
    pub fn start(socket: UdpSocket, policy: Policy) -> Self {
        make_room(&socket);
        socket.set_read_timeout(Some(IDLE)).unwrap();
        let (address, started) = (socket.local_addr().unwrap(), Instant::now());
        let socket = Arc::new(socket);
        let counts = Counts { faults: vec![0; policy.rules.len()], ..Counts::default() };
        let (counts, open) = (Mutex::new(counts), Mutex::new(Some(Arc::clone(&socket))));
        let shared = Arc::new(Shared { counts, socket: open });
        let (late, due) = mpsc::channel();
        let worker = Worker { policy, started, socket, late, shared: Arc::clone(&shared), number: 0 };
        let mut threads = Threads::default();
        threads.spawn("server", move |stop| worker.run(stop)).unwrap();
        threads.spawn("late", move |_| send_late(&due)).unwrap();
        NtpServer { address, started, shared, _threads: threads }
    }

    /// Serves on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn on_loopback(policy: Policy) -> Self {
        NtpServer::start(UdpSocket::bind("127.0.0.1:0").unwrap(), policy)
    }

    /// Where it serves.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// When it started: pauses count from here.
    #[must_use]
    pub const fn started(&self) -> Instant {
        self.started
    }

    /// What it has done until now. A request is counted before it is answered.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.counts.lock().unwrap().clone()
    }

    /// Requests that the kernel dropped because the server did not read them in time. 0 once it has closed its socket.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let socket = self.shared.socket.lock().unwrap();
        socket.as_ref().map_or(0, |socket| dropped_count(socket.as_fd()).unwrap())
    }
}

/// A datagram that waits, the one that is due first being the greatest.
type Late = Reverse<(Instant, Vec<u8>, SocketAddr)>;

/// The thread that answers.
struct Worker {
    policy: Policy,
    started: Instant,
    socket: Arc<UdpSocket>,
    late: Sender<(Late, Arc<UdpSocket>)>,
    shared: Arc<Shared>,
    /// Of the last request.
    number: u64,
}

impl Worker {
    fn run(mut self, stop: &AtomicBool) {
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        while !stop.load(Ordering::Relaxed) {
            let Ok((size, client)) = self.socket.recv_from(&mut buffer) else { continue };
            if let Some(left) = self.policy.pause_left(self.started.elapsed()) {
                std::thread::sleep(left);
            }
            self.take(&buffer[..size], client);
            if self.policy.stop == Some((self.number, Ending::Closed)) {
                // This was the last but one reference; the last goes with this thread.
                *self.shared.socket.lock().unwrap() = None;
                return;
            }
        }
    }

    fn take(&mut self, octets: &[u8], client: SocketAddr) {
        let mut counts = self.shared.counts.lock().unwrap();
        counts.received += 1;
        let request = Packet::parse(octets).ok().filter(|request| request.mode() == Mode::Client);
        let Some(request) = request else {
            counts.malformed += 1;
            return;
        };
        if self.policy.stop.is_some_and(|(count, _)| self.number >= count) {
            counts.ignored += 1;
            return;
        }
        if self.policy.limit.as_mut().is_some_and(|bucket| !bucket.take(Instant::now())) {
            counts.limited += 1;
            return;
        }
        self.number += 1;
        let rule = self.policy.rule(self.number);
        match rule {
            Some(index) => counts.faults[index] += 1,
            None => counts.good += 1,
        }
        let fault = rule.map(|index| self.policy.rules[index].2);
        let copies = match fault {
            Some(Fault::Drop) => 0,
            Some(Fault::Twice) => 2,
            _ => 1,
        };
        counts.sent += copies;
        drop(counts);
        let answer = answer(&request, fault);
        if let Some(Fault::Late(delay)) = fault {
            let late = Reverse((Instant::now() + delay, answer, client));
            let _ = self.late.send((late, Arc::clone(&self.socket)));
            return;
        }
        for _ in 0..copies {
            // A client that is gone makes the next call fail, not this server.
            let _ = self.socket.send_to(&answer, client);
        }
    }
}

/// Sends what comes through the channel when it is due, until nobody can put anything into it; what is not due by then
/// is never sent.
fn send_late(due: &Receiver<(Late, Arc<UdpSocket>)>) {
    let mut waiting: BinaryHeap<Late> = BinaryHeap::new();
    let mut through = None;
    loop {
        let now = Instant::now();
        let next = waiting.peek().map_or(IDLE, |Reverse((at, _, _))| at.saturating_duration_since(now));
        match due.recv_timeout(next) {
            Ok((late, socket)) => {
                waiting.push(late);
                through = Some(socket);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let is_due = |late: &Late| late.0.0 <= Instant::now();
        while waiting.peek().is_some_and(is_due) {
            let Some(Reverse((_, answer, client))) = waiting.pop() else { break };
            let _ = through.as_ref().map(|socket| socket.send_to(&answer, client));
        }
    }
}

fn answer(request: &Packet<'_>, fault: Option<Fault>) -> Vec<u8> {
    let (asked, now) = (request.header(), authentick_net::clock::now());
    let mut header = Header {
        leap: Leap::None,
        version: asked.version,
        mode: Mode::Server,
        stratum: 1,
        poll: asked.poll,
        precision: -20,
        reference_id: ReferenceId(*b"TEST"),
        reference: now,
        origin: asked.transmit,
        receive: now,
        transmit: now,
        ..Header::minimal_request(now)
    };
    let mut identifier = None;
    match fault {
        Some(Fault::Garbage(size)) => return vec![0xA5; size],
        Some(Fault::Stratum(stratum)) => header.stratum = stratum,
        Some(Fault::Version(version)) => header.version = version,
        Some(Fault::Unsynchronised) => header.leap = Leap::Unsynchronised,
        Some(Fault::NeverSet) => (header.leap, header.stratum) = (Leap::Unsynchronised, 16),
        Some(Fault::WrongOrigin) => {
            header.origin = authentick_wire::time::NtpTime::from_bits(asked.transmit.to_bits() ^ 1);
        }
        Some(Fault::Kiss { code, identifier: wanted }) => {
            kiss(&mut header, code);
            identifier = if wanted { identifier_of(request) } else { None };
        }
        Some(Fault::Drop | Fault::Twice | Fault::Late(_)) | None => {}
    }
    emit(&header, identifier)
}

/// Makes a header a kiss: no time, no stratum.
pub(crate) fn kiss(header: &mut Header, code: ReferenceId) {
    header.leap = Leap::Unsynchronised;
    header.stratum = 0;
    header.reference_id = code;
}

/// The unique identifier of a packet.
pub(crate) fn identifier_of<'a>(packet: &Packet<'a>) -> Option<&'a [u8]> {
    packet.fields().find(|field| field.kind == FieldType::UNIQUE_IDENTIFIER).map(|field| field.body)
}

/// Writes a packet of a header and, perhaps, a unique identifier.
pub(crate) fn emit(header: &Header, identifier: Option<&[u8]>) -> Vec<u8> {
    let mut octets = vec![0; DATAGRAM_SIZE_MAX];
    let (head, rest) = octets.split_first_chunk_mut::<HEADER_SIZE>().expect("it is larger");
    header.emit(head);
    let mut out = Writer::new(rest);
    if let Some(identifier) = identifier {
        extension::emit(&mut out, FieldType::UNIQUE_IDENTIFIER, identifier).expect("it came in a datagram");
    }
    let size = HEADER_SIZE + out.offset();
    octets.truncate(size);
    octets
}

/// Where the NTS fields of a datagram lie, if it is an NTS packet.
pub(crate) fn nts_fields(octets: &[u8]) -> Option<NtsFields> {
    NtsFields::locate(&Packet::parse(octets).ok()?).ok().filter(NtsFields::is_nts)
}
