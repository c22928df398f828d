//! Answers: to which request each belongs, whether it passes every check, and how long it took.

use std::os::fd::AsFd;

use authentick_net::clock::{self, monotonic_ns};
use authentick_proto::client::{Check, Sample};
use authentick_report::load::Cause;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::NtpTime;

use super::Worker;
use super::send::obstacle;
use crate::client::Stray;
use crate::limits::{JOINABLE_COUNT_MAX, RECEIVE_COUNT_MAX};
use crate::plan::{Joinable, Scheme};

/// Where the origin timestamp stands in a packet. RFC 5905 section 7.3.
const ORIGIN: std::ops::Range<usize> = 24..32;

impl Worker {
    /// Reads what waits on a client's socket.
    pub(super) fn receive(&mut self, index: usize) {
        let Some(client) = self.clients.get_mut(index) else { return };
        let count = match self.back.receive(client.socket.as_fd(), RECEIVE_COUNT_MAX) {
            Ok(count) => count,
            Err(error) => {
                if let Some(cause) = obstacle(&error) {
                    client.obstructed(monotonic_ns(), cause);
                }
                return;
            }
        };
        // Receive stamps are by the time of day and the schedule is not: both clocks are read together, now.
        let (now, now_ns) = (clock::now(), monotonic_ns());
        for arrival in 0..count {
            self.take(index as u32, arrival, now, now_ns);
        }
    }

    fn take(&mut self, index: u32, arrival: usize, now: NtpTime, now_ns: u64) {
        let arrival = self.back.arrival(arrival);
        let client = &mut self.clients[index as usize];
        let origin = (arrival.octets.len() >= HEADER_SIZE)
            .then(|| arrival.octets[ORIGIN].try_into().map(u64::from_be_bytes).ok())
            .flatten();
        let flight = match origin {
            Some(origin) => self.flights.find(origin).filter(|flight| flight.client == index),
            None => None,
        };
        let Some(flight) = flight else {
            let given_up = origin.is_some_and(|origin| self.flights.is_abandoned(origin));
            if given_up || client.stray(origin) == Stray::Surplus {
                let (measured, principal) = (client.measured, self.transfers_are_principal());
                self.ledger.of(measured, principal).surplus += 1;
            }
            return;
        };
        let (transmit, sent_ns) = (flight.exchange.transmit().to_bits(), flight.sent_ns);
        let checked = match &self.key {
            Some(key) => flight.exchange.receive_mac(arrival.octets, key),
            None => flight.exchange.receive(arrival.octets, client.session_of(sent_ns)),
        };
        match checked {
            Ok(response) => {
                let at = arrival.at.unwrap_or(now);
                let at_ns = now_ns.saturating_add_signed(-now.since(at).as_nanos().max(0));
                self.answered(transmit, &response.header, at, at_ns);
            }
            Err(check) => {
                let cause = cause(check);
                flight.noted.get_or_insert(cause);
                // A server that cannot open the cookies of this session opens none of them.
                if cause == Cause::Ntsn
                    && self.plan.scheme == Scheme::Nts
                    && client.forget_keys(sent_ns, now_ns)
                {
                    self.renew_keys(index);
                }
            }
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
        let principal = self.transfers_are_principal();
        let counts = self.ledger.of(measured, principal);
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
