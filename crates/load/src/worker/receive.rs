//! Answers: to which request each belongs, whether it passes every check, and how long it took.

use std::os::fd::AsFd;

use authentick_crypto::OpenBatch;
use authentick_crypto::mac::verify_batch;
use authentick_net::clock::{self, monotonic_ns};
use authentick_proto::antp::client::Candidate as TimeCandidate;
use authentick_proto::client::{Candidate, Check, MacCandidate, Sample};
use authentick_report::load::Cause;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::NtpTime;

use super::Worker;
use super::send::obstacle;
use crate::client::Stray;
use crate::flight::Asked;
use crate::limits::{JOINABLE_COUNT_MAX, RECEIVE_COUNT_MAX};
use crate::plan::{Joinable, Scheme};

/// Where the origin timestamp stands in a packet. RFC 5905 section 7.3.
const ORIGIN: std::ops::Range<usize> = 24..32;

/// A datagram that may be the answer to a request in flight.
pub(super) struct Inspected {
    pub(super) client: u32,
    /// Of the request.
    pub(super) transmit: u64,
    pub(super) sent_ns: u64,
    pub(super) candidate: Found,
    pub(super) genuine: bool,
}

/// What it may be the answer to.
pub(super) enum Found {
    /// A request with a MAC.
    Mac(MacCandidate),
    /// One under NTS, or a plain one.
    Other(Candidate),
    /// A time request of ANTP.
    Time(TimeCandidate),
}

impl Worker {
    /// Reads what waits on a client's socket. It is looked at together with what waits on others.
    pub(super) fn receive(&mut self, index: usize) {
        if self.back.room() < RECEIVE_COUNT_MAX {
            self.take_all();
        }
        let Some(client) = self.clients.get_mut(index) else { return };
        match self.back.receive(client.socket.as_fd(), RECEIVE_COUNT_MAX) {
            Ok(count) => self.owners.extend(std::iter::repeat_n(index as u32, count)),
            Err(error) => {
                if let Some(cause) = obstacle(&error) {
                    client.obstructed(monotonic_ns(), cause);
                }
            }
        }
    }

    /// Looks at all datagrams that were read: those that may be answers are opened side by side.
    pub(super) fn take_all(&mut self) {
        if self.owners.is_empty() {
            return;
        }
        // Receive stamps are by the time of day and the schedule is not: both clocks are read together, now.
        let (now, now_ns) = (clock::now(), monotonic_ns());
        let (owners, mut inspected) = (std::mem::take(&mut self.owners), std::mem::take(&mut self.inspected));
        for (arrival, &index) in owners.iter().enumerate() {
            inspected.push(self.inspect(index, arrival, now, now_ns));
        }
        let mut crypto_ns = 0;
        match (&self.key, &self.guide) {
            (Some(_), _) => self.verify(&mut inspected),
            (None, Some(_)) => crypto_ns = self.verify_times(&mut inspected),
            (None, None) => self.open(&mut inspected),
        }
        for (arrival, inspected) in inspected.drain(..).enumerate() {
            if let Some(inspected) = inspected {
                self.conclude(arrival, &inspected, crypto_ns, now, now_ns);
            }
        }
        self.back.clear();
        (self.owners, self.inspected) = (owners, inspected);
        self.owners.clear();
    }

    /// Finds the request to a datagram, and makes all checks that need no key.
    fn inspect(&mut self, index: u32, number: usize, now: NtpTime, now_ns: u64) -> Option<Inspected> {
        let arrival = self.back.arrival(number);
        let origin = (arrival.octets.len() >= HEADER_SIZE)
            .then(|| arrival.octets[ORIGIN].try_into().map(u64::from_be_bytes).ok())
            .flatten();
        let flight = match origin {
            Some(origin) => self.flights.find(origin).filter(|flight| flight.client == index),
            None => None,
        };
        let Some(flight) = flight else {
            self.stray(index, origin);
            return None;
        };
        let (transmit, sent_ns) = (flight.asked.transmit(), flight.sent_ns);
        let exchange = match &flight.asked {
            Asked::Ntp(exchange) => exchange,
            Asked::Antp(_) => return self.take_antp(number, transmit, now, now_ns),
        };
        let inspected = match &self.key {
            Some(key) => exchange.inspect_mac(arrival.octets, key).map(Found::Mac),
            None => exchange.inspect(arrival.octets).map(Found::Other),
        };
        match inspected {
            Ok(candidate) => Some(Inspected { client: index, transmit, sent_ns, candidate, genuine: false }),
            Err(check) => {
                self.refused(transmit, check, now_ns);
                None
            }
        }
    }

    /// Verifies those under a symmetric key.
    fn verify(&mut self, inspected: &mut [Option<Inspected>]) {
        let Some(key) = &self.key else { return };
        verify_batch(self.back.datagrams().zip(inspected).filter_map(|(datagram, inspected)| {
            let Some(Inspected { candidate: Found::Mac(candidate), genuine, .. }) = inspected else {
                return None;
            };
            candidate.job(datagram, key, genuine)
        }));
    }

    /// Opens those under NTS.
    fn open(&mut self, inspected: &mut [Option<Inspected>]) {
        let mut batch = OpenBatch::new();
        for (datagram, inspected) in self.back.datagrams().zip(inspected) {
            let Some(Inspected { client, sent_ns, candidate: Found::Other(candidate), genuine, .. }) =
                inspected
            else {
                continue;
            };
            if let Some(session) = self.clients[*client as usize].session_of(*sent_ns)
                && let Some(job) = candidate.job(datagram, session, genuine)
            {
                batch.push(job);
            }
        }
        batch.run();
    }

    /// The rest of the checks; `crypto_ns` is what the verification of each took, of those under ANTP.
    fn conclude(&mut self, arrival: usize, inspected: &Inspected, crypto_ns: u64, now: NtpTime, now_ns: u64) {
        let Inspected { client: index, transmit, sent_ns, candidate, genuine } = inspected;
        let arrival = self.back.arrival(arrival);
        // An answer before this one may have ended it.
        let Some(flight) = self.flights.find(*transmit) else {
            self.stray(*index, Some(*transmit));
            return;
        };
        let session = self.clients[*index as usize].session_of_mut(*sent_ns);
        let concluded = match (candidate, &mut flight.asked) {
            (Found::Mac(candidate), Asked::Ntp(exchange)) => exchange.conclude_mac(candidate, *genuine),
            (Found::Other(candidate), Asked::Ntp(exchange)) => {
                exchange.conclude(candidate, *genuine, arrival.octets, session)
            }
            (Found::Time(candidate), _) => {
                return self.conclude_antp(*transmit, candidate, *genuine, crypto_ns, (now, now_ns));
            }
            (Found::Mac(_) | Found::Other(_), Asked::Antp(_)) => return,
        };
        match concluded {
            Ok(response) => {
                let at = arrival.at.unwrap_or(now);
                let at_ns = now_ns.saturating_add_signed(-now.since(at).as_nanos().max(0));
                self.answered(*transmit, &response.header, at, at_ns);
            }
            Err(check) => self.refused(*transmit, check, now_ns),
        }
    }

    /// A datagram answers no request in flight.
    fn stray(&mut self, index: u32, origin: Option<u64>) {
        let client = &mut self.clients[index as usize];
        let given_up = origin.is_some_and(|origin| self.flights.is_abandoned(origin));
        if given_up || client.stray(origin) == Stray::Surplus {
            let (measured, principal) = (client.measured, self.transfers_are_principal());
            self.ledger.of(measured, principal).surplus += 1;
        }
    }

    /// A datagram with the origin of a request in flight failed a check.
    fn refused(&mut self, transmit: u64, check: Check, now_ns: u64) {
        let Some(flight) = self.flights.find(transmit) else { return };
        let cause = cause(check);
        flight.noted.get_or_insert(cause);
        let (index, sent_ns) = (flight.client, flight.sent_ns);
        // A server that cannot open the cookies of this session opens none of them.
        if cause == Cause::Ntsn
            && self.plan.scheme == Scheme::Nts
            && self.clients[index as usize].forget_keys(sent_ns, now_ns)
        {
            self.renew_keys(index);
        }
    }

    fn answered(&mut self, transmit: u64, header: &authentick_wire::header::Header, at: NtpTime, at_ns: u64) {
        let Some(flight) = self.flights.remove(transmit) else { return };
        let index = flight.client;
        let client = &mut self.clients[index as usize];
        client.answered(transmit);
        let (measured, local) = (client.measured, client.local);
        if !flight.overdue {
            client.outstanding -= 1;
        }
        let counts = self.ledger.of(measured, flight.principal);
        if flight.overdue {
            counts.fail(Cause::Late);
            return;
        }
        let offset_ns = Sample::new(header, flight.sent, at).offset.as_nanos();
        counts.answer(at_ns as i64 - flight.intended_ns as i64, Some(offset_ns));
        if measured && self.plan.joinable && self.joinables.len() < JOINABLE_COUNT_MAX {
            let whole_ns = monotonic_ns().saturating_sub(flight.begun_ns);
            self.joinables.push(Joinable { source: local, transmit: Some(transmit), whole_ns });
        }
        self.transfer_ended(index);
    }
}

/// The class of a failed check.
fn cause(check: Check) -> Cause {
    match check {
        Check::Kiss(ReferenceId::NTSN) => Cause::Ntsn,
        Check::Kiss(_) => Cause::Kiss,
        Check::CryptoNak(_) => Cause::CryptoNak,
        Check::Authenticator | Check::Tag | Check::Identifier | Check::KeyId(_) => Cause::BadTag,
        Check::Origin | Check::Duplicate => Cause::BadOrigin,
        Check::Stratum(_) => Cause::BadStratum,
        Check::Leap => Cause::BadLeap,
        _ => Cause::Malformed,
    }
}
