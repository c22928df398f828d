//! Beginning operations when they are due, and sending requests in batches.

use std::io;
use std::os::fd::AsFd;

use authentick_crypto::SealBatch;
use authentick_crypto::mac::tag_batch;
use authentick_net::clock::{self, monotonic_ns};
use authentick_net::udp::{Hint, hint, send_past_hints};
use authentick_proto::client::{Exchange, Unsealed, Untagged};
use authentick_report::load::Cause;
use authentick_wire::time::{NtpSpan, NtpTime};

use super::Worker;
use crate::antp::{Goal, Operation};
use crate::client::Client;
use crate::connection::Purpose;
use crate::flight::{Asked, Flight};
use crate::limits::{BATCH_SIZE, BEGIN_COUNT_MAX, BURST_SHARE, CLIENT_SCAN_MAX, GIVE_UP_NS};
use crate::plan::{Arrivals, Scheme};

/// A request that is written and not sent.
pub(super) struct Pending {
    /// Absent once it has left.
    asked: Option<Asked>,
    /// Whether it belongs to an operation that the scheme is named for.
    principal: bool,
    /// Whether it continues an operation that was counted as sent already.
    continued: bool,
    /// What seals it, if anything does.
    unsealed: Option<Unsealed>,
    client: u32,
    /// What is missing, if it is to have a MAC: the tag.
    untagged: Option<Untagged>,
    intended_ns: u64,
    /// When the making of the request began.
    begun_ns: u64,
}

impl Worker {
    /// Begins what is due at `now_ns`; `true` if there was anything.
    pub(super) fn begin_due(&mut self, now_ns: u64, end_ns: u64) -> bool {
        if self.stopped {
            return false;
        }
        let mut any = false;
        for index in 0..self.streams.len() {
            let closed = match self.plan.arrivals {
                Arrivals::Closed { window } if self.streams[index].measured => Some(window),
                _ => None,
            };
            let count = match closed {
                Some(window) => self.fill_window(index, window, now_ns, end_ns),
                None => self.begin_scheduled(index, now_ns),
            };
            // So many requests come together: as many as that share one system call, if there are few clients.
            self.together[usize::from(!self.streams[index].measured)] = count;
            any |= count > 0;
        }
        any
    }

    fn begin_scheduled(&mut self, index: usize, now_ns: u64) -> usize {
        let mut count = 0;
        while count < BEGIN_COUNT_MAX {
            let stream = &mut self.streams[index];
            let Some(at_ns) = stream.schedule.next_ns() else { break };
            let intended_ns = stream.start_ns + at_ns;
            if intended_ns > now_ns {
                break;
            }
            stream.schedule.advance();
            let measured = stream.measured;
            let counts = self.ledger.of(measured, true);
            counts.scheduled += 1;
            if now_ns - intended_ns > GIVE_UP_NS {
                counts.skip(Cause::FellBehind);
                continue;
            }
            if let Err(cause) = self.begin(measured, intended_ns) {
                self.ledger.of(measured, true).skip(cause);
            }
            count += 1;
        }
        count
    }

    fn fill_window(&mut self, index: usize, window: u32, now_ns: u64, end_ns: u64) -> usize {
        let mut count = 0;
        // What fails at once leaves its place to another one, but not before answers were looked at.
        while count < BEGIN_COUNT_MAX.min(window as usize) {
            let stream = &self.streams[index];
            if now_ns < stream.start_ns || now_ns >= end_ns || stream.in_flight >= window {
                break;
            }
            let measured = stream.measured;
            match self.begin(measured, now_ns) {
                Ok(()) => {}
                // Nothing was due, so nothing is missed: it is tried again when a client is free.
                Err(Cause::NoCookie) => break,
                Err(cause) => {
                    let counts = self.ledger.of(measured, true);
                    counts.scheduled += 1;
                    counts.skip(cause);
                    break;
                }
            }
            self.ledger.of(measured, true).scheduled += 1;
            count += 1;
        }
        count
    }

    /// Begins one operation that the scheme is named for.
    fn begin(&mut self, measured: bool, intended_ns: u64) -> Result<(), Cause> {
        let goes_on = match self.plan.scheme {
            Scheme::Plain | Scheme::Mac => {
                let client = self.choose(measured, |_, _| true).ok_or(Cause::LocalPort)?;
                self.push_transfer(client, intended_ns)?;
                true
            }
            Scheme::Nts => {
                let client = self.choose_with_cookie(measured)?;
                self.push_transfer(client, intended_ns)?;
                true
            }
            Scheme::AntpNegotiate => self.begin_antp(measured, Goal::Negotiation, intended_ns)?,
            Scheme::AntpExchange => self.begin_antp(measured, Goal::KeyExchange, intended_ns)?,
            Scheme::Antp => self.begin_antp(measured, Goal::Time, intended_ns)?,
            Scheme::AntpFull => self.begin_antp(measured, Goal::Run, intended_ns)?,
            Scheme::Ke => self.begin_exchange(Purpose::Operation { measured, client: None }, intended_ns)?,
            Scheme::Mix { .. } => {
                let idle = |client: &Client, _| {
                    !client.exchanging && client.transfers_left == 0 && client.outstanding == 0
                };
                let client = self.choose(measured, idle).ok_or(Cause::LocalPort)?;
                let purpose = Purpose::Operation { measured, client: Some(client) };
                let goes_on = self.begin_exchange(purpose, intended_ns)?;
                self.clients[client as usize].exchanging = goes_on;
                goes_on
            }
        };
        for stream in &mut self.streams {
            stream.in_flight += u32::from(goes_on && stream.measured == measured);
        }
        Ok(())
    }

    /// A client with a cookie; on the way, clients without any start to exchange keys.
    fn choose_with_cookie(&mut self, measured: bool) -> Result<u32, Cause> {
        let mut wanting = None;
        let now_ns = monotonic_ns();
        let found = self.choose(measured, |client, index| {
            if client.wants_keys(now_ns) {
                wanting.get_or_insert(index);
            }
            client.has_cookie()
        });
        if let Some(client) = wanting {
            self.renew_keys(client);
        }
        found.ok_or(Cause::NoCookie)
    }

    /// The next client of a group, in turn, that `fits`.
    pub(super) fn choose(
        &mut self,
        measured: bool,
        mut fits: impl FnMut(&Client, u32) -> bool,
    ) -> Option<u32> {
        let group = usize::from(!measured);
        let (first, count) = match measured {
            true => (0, self.measured_count),
            false => (self.measured_count, self.clients.len() - self.measured_count),
        };
        if count == 0 {
            return None;
        }
        // A client sends a burst only if so many requests are due at once that system calls would be the limit.
        let together = self.together[group];
        let stay = together.div_ceil(count).max(together / BURST_SHARE).max(1);
        for _ in 0..count.min(CLIENT_SCAN_MAX) {
            let index = first + (self.cursors[group] / stay) % count;
            if fits(&self.clients[index], index as u32) {
                self.cursors[group] += 1;
                return Some(index as u32);
            }
            self.cursors[group] = (self.cursors[group] / stay + 1) * stay;
        }
        None
    }

    /// Writes a request of a client, to be sent with the others.
    pub(super) fn push_transfer(&mut self, index: u32, intended_ns: u64) -> Result<(), Cause> {
        if self.pending.len() == BATCH_SIZE {
            self.flush();
        }
        let begun_ns = monotonic_ns();
        let slot = self.pending.len();
        let out = self.out.buffer(slot);
        let client = &mut self.clients[index as usize];
        let same_cookie = matches!(self.plan.scheme, Scheme::Mix { same_cookie: true, .. });
        let mut untagged = None;
        let made = match (&self.key, &mut client.session) {
            _ if self.plan.scheme == Scheme::Plain => {
                let (exchange, size) = Exchange::plain(&mut self.entropy, out);
                Ok((exchange, size, None))
            }
            (Some(key), _) => {
                let (exchange, rest) = Exchange::mac_untagged(key, &mut self.entropy, out);
                untagged = Some(rest);
                Ok((exchange, rest.size(), None))
            }
            (None, Some(session)) if self.plan.replay_cookie || same_cookie => {
                Exchange::nts_replayed(session, &mut self.entropy, out).map(with_size)
            }
            (None, Some(session)) => {
                // Requests in flight will bring a cookie each.
                let expected_count = client.outstanding as usize;
                Exchange::nts_among(session, expected_count, &mut self.entropy, out).map(with_size)
            }
            (None, None) => return Err(Cause::NoCookie),
        };
        let (exchange, size, unsealed) = made.map_err(|_| Cause::NoCookie)?;
        self.out.set_size(slot, size);
        self.request_size = self.request_size.max(size);
        client.outstanding += 1;
        let (asked, principal) = (Some(Asked::Ntp(exchange)), self.plan.scheme.measures_transfers());
        self.pending.push(Pending {
            asked,
            principal,
            continued: false,
            unsealed,
            untagged,
            client: index,
            intended_ns,
            begun_ns,
        });
        Ok(())
    }

    /// Seals all pending requests side by side.
    fn seal(&mut self) {
        let mut batch = SealBatch::new();
        for (request, out) in self.pending.iter().zip(self.out.buffers()) {
            let client = &self.clients[request.client as usize];
            // A session that was given up since is still known.
            if let (Some(unsealed), Some(session)) = (&request.unsealed, client.session_of(request.begun_ns))
            {
                batch.push(unsealed.job(session, out));
            }
        }
        batch.run();
    }

    /// Sends all pending requests, those of one client in one system call.
    pub(super) fn flush(&mut self) {
        if self.pending.iter().any(|request| request.unsealed.is_some()) {
            self.seal();
        }
        if let Some(key) = &self.key {
            let requests = self.pending.iter().zip(self.out.buffers());
            tag_batch(requests.filter_map(|(request, out)| Some(request.untagged.as_ref()?.job(key, out))));
        }
        let mut pending = std::mem::take(&mut self.pending);
        let mut at = 0;
        while at < pending.len() {
            let client = pending[at].client;
            let count = pending[at..].iter().take_while(|other| other.client == client).count();
            let (from_ns, from) = (monotonic_ns(), clock::now());
            let result = self.send(client, at..at + count);
            let lasted_ns = monotonic_ns() - from_ns;
            let sent = result.as_ref().copied().unwrap_or(0);
            for (turn, request) in pending[at..at + sent].iter_mut().enumerate() {
                // The kernel sends one after the other: the last left when the call ended.
                let after_ns = lasted_ns * turn as u64 / sent as u64;
                self.departed(request, from_ns + after_ns, later(from, after_ns));
            }
            at += sent;
            if let Err(error) = result {
                self.not_sent(&pending[at], &error);
                at += 1;
            }
        }
        // What follows a request that could not be sent is pending already, in slots of requests that are gone.
        pending.clear();
        pending.append(&mut self.pending);
        self.pending = pending;
    }

    /// Sends requests of one client. What the network said of requests before is noted, and tried past.
    fn send(&mut self, index: u32, slots: std::ops::Range<usize>) -> io::Result<usize> {
        let client = &mut self.clients[index as usize];
        let mut told = None;
        let sent = send_past_hints(
            || self.out.send(client.socket.as_fd(), slots.clone()),
            |hint| told = Some(cause_of(hint)),
        );
        if let Some(cause) = told {
            client.obstructed(monotonic_ns(), cause);
        }
        sent
    }

    fn departed(&mut self, request: &mut Pending, sent_ns: u64, sent: NtpTime) {
        let measured = self.clients[request.client as usize].measured;
        self.ledger.of(measured, request.principal).sent += u64::from(!request.continued);
        if measured {
            self.last_sent_ns = sent_ns;
        }
        if measured && !request.continued {
            self.lateness.record(sent_ns.saturating_sub(request.intended_ns) as i64);
        }
        self.flights.add(Flight {
            asked: request.asked.take().expect("a request leaves once"),
            client: request.client,
            principal: request.principal,
            intended_ns: request.intended_ns,
            begun_ns: request.begun_ns,
            sent_ns,
            sent,
            noted: None,
            overdue: false,
        });
    }

    /// A request could not be sent.
    fn not_sent(&mut self, request: &Pending, error: &io::Error) {
        let client = &mut self.clients[request.client as usize];
        client.outstanding -= 1;
        let measured = client.measured;
        if request.continued {
            let cause = obstacle(error);
            self.ledger.stalled += u64::from(cause.is_none());
            self.ledger.of(measured, request.principal).fail(cause.unwrap_or(Cause::Timeout));
            return self.datagram_ended(request.client, request.principal);
        }
        let counts = self.ledger.of(measured, request.principal);
        match obstacle(error) {
            // The host knows that it would not arrive: it is as good as sent.
            Some(cause) => {
                counts.sent += 1;
                counts.fail(cause);
            }
            None if matches!(error.raw_os_error(), Some(EAGAIN | ENOBUFS)) => counts.skip(Cause::LocalBuffer),
            None => counts.skip(Cause::Local),
        }
        self.datagram_ended(request.client, request.principal);
    }
}

impl Worker {
    /// Puts a request of ANTP that is written to the next slot, with so many octets, to those that are sent together.
    pub(super) fn push_written(
        &mut self,
        index: u32,
        size: usize,
        operation: Box<Operation>,
        [intended_ns, begun_ns]: [u64; 2],
        continued: bool,
    ) {
        self.out.set_size(self.pending.len(), size);
        self.request_size = self.request_size.max(size);
        self.clients[index as usize].outstanding += 1;
        let principal = operation.goal.is_principal();
        self.pending.push(Pending {
            asked: Some(Asked::Antp(operation)),
            principal,
            continued,
            unsealed: None,
            untagged: None,
            client: index,
            intended_ns,
            begun_ns,
        });
    }
}

/// No room in the socket's buffer, and in the interface's. errno(3).
const EAGAIN: i32 = 11;
const ENOBUFS: i32 = 105;

/// What the network says about requests, as opposed to what this host does.
pub(super) fn obstacle(error: &io::Error) -> Option<Cause> {
    hint(error).map(cause_of)
}

const fn cause_of(hint: Hint) -> Cause {
    match hint {
        Hint::Refused => Cause::Refused,
        Hint::Unreachable => Cause::Unreachable,
    }
}

fn with_size((exchange, unsealed): (Exchange, Unsealed)) -> (Exchange, usize, Option<Unsealed>) {
    (exchange, unsealed.size(), Some(unsealed))
}

fn later(time: NtpTime, ns: u64) -> NtpTime {
    let span = NtpSpan::from_nanos(ns as i64);
    NtpTime::from_bits(time.to_bits().wrapping_add_signed(span.to_bits()))
}
