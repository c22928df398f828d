//! Requests in flight: found by the origin timestamp of an answer, ended in the order in which they were sent.
//!
//! Each request ends exactly once: when its answer passes, or when it has waited for two timeouts. An answer after the
//! first timeout is late: it does not count as answered, but shows that nothing was dropped. The latest requests that
//! ended without an answer are remembered for a while, so that an even later answer is recognised.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use authentick_report::load::Cause;
use authentick_wire::time::NtpTime;
use slab::Slab;

use crate::limits::ABANDONED_COUNT_MAX;
use crate::scheme::Asked;

/// A request, written or sent.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) asked: Asked,
    pub(crate) client: u32,
    /// Whether it belongs to an operation that the scheme is named for.
    pub(crate) principal: bool,
    /// When it was due, on the monotonic clock.
    pub(crate) intended_ns: u64,
    /// When building the request began, on the monotonic clock: t5 of the NTS study.
    pub(crate) begun_ns: u64,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) request: Request,
    /// When it left, on the monotonic clock.
    pub(crate) sent_ns: u64,
    /// When it left, by the time of day: T1.
    pub(crate) sent: NtpTime,
    /// The check that an answer to it has failed.
    pub(crate) noted: Option<Cause>,
    /// It has waited for one timeout.
    pub(crate) overdue: bool,
}

impl Flight {
    /// The flight of a request that left at `sent_ns`, which was `sent` by the time of day.
    pub(crate) const fn new(request: Request, sent_ns: u64, sent: NtpTime) -> Self {
        Flight { request, sent_ns, sent, noted: None, overdue: false }
    }
}

/// Requests in flight of one worker.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    slots: Slab<Flight>,
    by_transmit: HashMap<u64, usize, BuildHasherDefault<Random>>,
    /// Transmit timestamps in the order of sending, each with the end of the first timeout, or of the second.
    waiting: VecDeque<(u64, u64)>,
    overdue: VecDeque<(u64, u64)>,
    /// Transmit timestamps of the last requests that ended without an answer.
    abandoned: HashSet<u64, BuildHasherDefault<Random>>,
    abandoned_order: VecDeque<u64>,
    timeout_ns: u64,
}

/// What the passing of time changed for a flight.
#[derive(Debug)]
pub(crate) enum Due {
    /// It has waited for one timeout, and keeps waiting.
    Overdue {
        /// Whose request it is.
        client: u32,
        /// Whether it belongs to an operation that the scheme is named for.
        principal: bool,
    },
    /// It has waited for two, and has ended.
    Over(Flight),
}

impl Flights {
    /// None in flight; each waits for `timeout_ns` twice.
    pub(crate) fn new(timeout_ns: u64) -> Self {
        Flights { timeout_ns, ..Flights::default() }
    }

    /// How long a flight lasts at most.
    pub(crate) fn life_ns(&self) -> u64 {
        self.timeout_ns.saturating_mul(2)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_transmit.len()
    }

    /// Adds a request. `sent_ns` never decreases from call to call.
    pub(crate) fn add(&mut self, flight: Flight) {
        let (transmit, sent_ns) = (flight.request.asked.transmit(), flight.sent_ns);
        let slot = self.slots.insert(flight);
        // Two of 2^64 random timestamps practically never coincide in a run; if they did, one would count as lost.
        if let Some(old) = self.by_transmit.insert(transmit, slot) {
            self.slots.remove(old);
        }
        self.waiting.push_back((transmit, sent_ns.saturating_add(self.timeout_ns)));
    }

    /// The request with this transmit timestamp.
    pub(crate) fn find(&mut self, transmit: u64) -> Option<&mut Flight> {
        self.slots.get_mut(*self.by_transmit.get(&transmit)?)
    }

    /// The same, read-only.
    pub(crate) fn get(&self, transmit: u64) -> Option<&Flight> {
        self.slots.get(*self.by_transmit.get(&transmit)?)
    }

    /// Removes the request with this transmit timestamp.
    pub(crate) fn remove(&mut self, transmit: u64) -> Option<Flight> {
        self.by_transmit.remove(&transmit).map(|slot| self.slots.remove(slot))
    }

    /// The next flight whose timeout has passed by `now_ns`; `None` if there is none.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<Due> {
        while let Some((transmit, _)) = self.overdue.pop_front_if(|(_, end_ns)| *end_ns <= now_ns) {
            if let Some(flight) = self.remove(transmit) {
                self.abandon(transmit);
                return Some(Due::Over(flight));
            }
        }
        while let Some((transmit, end_ns)) = self.waiting.pop_front_if(|(_, end_ns)| *end_ns <= now_ns) {
            if let Some(flight) = self.find(transmit) {
                flight.overdue = true;
                let Request { client, principal, .. } = flight.request;
                self.overdue.push_back((transmit, end_ns.saturating_add(self.timeout_ns)));
                return Some(Due::Overdue { client, principal });
            }
        }
        None
    }

    fn abandon(&mut self, transmit: u64) {
        if self.abandoned_order.len() == ABANDONED_COUNT_MAX
            && let Some(oldest) = self.abandoned_order.pop_front()
        {
            self.abandoned.remove(&oldest);
        }
        self.abandoned.insert(transmit);
        self.abandoned_order.push_back(transmit);
    }

    /// Whether a request with this transmit timestamp has ended without an answer, as far as is remembered.
    pub(crate) fn is_abandoned(&self, transmit: u64) -> bool {
        self.abandoned.contains(&transmit)
    }

    /// When [`Flights::due`] may have something next; may be too early, never too late.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        let fronts = self.waiting.front().into_iter().chain(self.overdue.front());
        fronts.map(|&(_, end_ns)| end_ns).min()
    }
}

/// Keys are random already, and never chosen by strangers.
#[derive(Debug, Default)]
struct Random(u64);

impl Hasher for Random {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        for &octet in octets {
            self.0 = self.0.rotate_left(8) ^ u64::from(octet);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

#[cfg(test)]
mod tests {
    use authentick_crypto::Entropy;
    use authentick_proto::client::Exchange;

    use super::*;

    fn flight(entropy: &mut Entropy, sent_ns: u64) -> Flight {
        let (exchange, _) = Exchange::plain(entropy, &mut [0; 48]);
        let asked = Asked::Ntp(exchange);
        let request = Request { asked, client: 3, principal: true, intended_ns: sent_ns, begun_ns: sent_ns };
        Flight::new(request, sent_ns, NtpTime::from_bits(1))
    }

    #[test]
    fn flight_is_overdue_once_and_over_once() {
        let mut entropy = Entropy::from_seed(1);
        let mut flights = Flights::new(100);
        flights.add(flight(&mut entropy, 10));
        assert!(flights.due(109).is_none());
        assert_eq!(flights.next_due_ns(), Some(110));
        assert!(matches!(flights.due(110), Some(Due::Overdue { client: 3, principal: true })));
        assert!(flights.due(209).is_none());
        assert_eq!(flights.next_due_ns(), Some(210));
        let Some(Due::Over(over)) = flights.due(210) else { panic!() };
        assert!(over.overdue);
        assert_eq!((flights.count(), flights.next_due_ns()), (0, None));
    }

    #[test]
    fn requests_that_ended_without_an_answer_are_remembered_within_bounds() {
        let mut entropy = Entropy::from_seed(3);
        let mut flights = Flights::new(1);
        let transmits: Vec<u64> = (0..ABANDONED_COUNT_MAX as u64 + 2)
            .map(|now_ns| {
                let flight = flight(&mut entropy, now_ns);
                let transmit = flight.request.asked.transmit();
                flights.add(flight);
                transmit
            })
            .collect();
        assert!(flights.remove(transmits[1]).is_some());
        while flights.due(u64::MAX).is_some() {}
        let known = |index: usize| flights.is_abandoned(transmits[index]);
        assert_eq!([known(0), known(1), known(2), known(transmits.len() - 1)], [false, false, true, true]);
        assert_eq!(flights.abandoned.len(), ABANDONED_COUNT_MAX);
    }

    #[test]
    fn every_flight_ends_exactly_once() {
        let mut entropy = Entropy::from_seed(2);
        let mut flights = Flights::new(50);
        let (mut answered, mut over) = (0, 0);
        let mut transmits = Vec::new();
        for now_ns in 0..1000u64 {
            let flight = flight(&mut entropy, now_ns);
            transmits.push(flight.request.asked.transmit());
            flights.add(flight);
            // Two in three are answered, of which some after the first timeout.
            if now_ns >= 70 && now_ns % 3 != 0 {
                answered += u32::from(flights.remove(transmits[now_ns as usize - 70]).is_some());
            }
            while let Some(due) = flights.due(now_ns) {
                over += u32::from(matches!(due, Due::Over(_)));
            }
        }
        while let Some(due) = flights.due(u64::MAX) {
            over += u32::from(matches!(due, Due::Over(_)));
        }
        assert_eq!((answered + over, flights.count()), (1000, 0));
        assert!(answered > 500 && over > 300, "{answered} {over}");
        assert!(flights.slots.capacity() < 200, "slots are used again");
    }
}
