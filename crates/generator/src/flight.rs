//! Requests in flight: found by the origin timestamp of an answer, ended in the order in which they were sent.
//!
//! Each request ends exactly once: when its answer passes, or when it has waited for two timeouts. An answer after the
//! first timeout is late: it does not count as answered, but shows that nothing was dropped. The latest requests that
//! have ended are remembered, so that another answer to one of them is recognised.
//!
//! **Invariant:** memory is taken by requests that wait, and by nothing else that grows: it is bounded by their number,
//! which [`Flights::is_full`] limits.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use authentick_report::load::Cause;
use authentick_wire::time::NtpTime;
use slab::Slab;

use crate::limits::{ENDED_COUNT_MAX, FLIGHT_SIZE_MAX};
use crate::scheme::Asked;

/// A request, written or sent.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) asked: Asked,
    pub(crate) client: u32,
    /// The number of its client's keys that it was made with.
    pub(crate) epoch: u32,
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
    /// Why it does not arrive, says the network.
    pub(crate) obstacle: Option<Cause>,
    /// It has waited for one timeout, and its client was told.
    pub(crate) overdue: bool,
    /// Octets of all datagrams that came with its transmit timestamp as their origin.
    pub(crate) came_size: u32,
}

impl Flight {
    /// The flight of a request that left at `sent_ns`, which was `sent` by the time of day.
    pub(crate) const fn new(request: Request, sent_ns: u64, sent: NtpTime) -> Self {
        Flight { request, sent_ns, sent, noted: None, obstacle: None, overdue: false, came_size: 0 }
    }
}

/// A flight, and its neighbours in the queue that it is in.
#[derive(Debug)]
struct Link {
    flight: Flight,
    earlier: u32,
    later: u32,
}

/// Room is made for at least so many flights at a time.
const GROWTH_COUNT_MIN: usize = 4;

/// The slot of no flight.
const NONE: u32 = u32::MAX;

const _: () = assert!(
    // A slot with its mark whether it is free, and one and a seventh to twice as many places in the map, of 17 octets.
    size_of::<Link>() + 8 + 2 * 17 + 5 <= FLIGHT_SIZE_MAX,
    "the limit of memory is stated by this size"
);

/// Flights in the order in which they were sent.
#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { first: NONE, last: NONE }
    }
}

impl Queue {
    fn push(&mut self, links: &mut Slab<Link>, slot: u32) {
        let last = std::mem::replace(&mut self.last, slot);
        match links.get_mut(last as usize) {
            Some(last) => last.later = slot,
            None => self.first = slot,
        }
        let link = &mut links[slot as usize];
        (link.earlier, link.later) = (last, NONE);
    }

    fn unlink(&mut self, links: &mut Slab<Link>, slot: u32) {
        let Link { earlier, later, .. } = links[slot as usize];
        match links.get_mut(earlier as usize) {
            Some(link) => link.later = later,
            None => self.first = later,
        }
        match links.get_mut(later as usize) {
            Some(link) => link.earlier = earlier,
            None => self.last = earlier,
        }
    }
}

/// Requests in flight of one worker.
#[derive(Debug)]
pub(crate) struct Flights {
    links: Slab<Link>,
    by_transmit: HashMap<u64, u32, BuildHasherDefault<Random>>,
    /// Those that wait for the end of the first timeout, and of the second.
    waiting: Queue,
    overdue: Queue,
    ended: Ended,
    /// Those that were due before operations counted, in this step or an earlier one; absent if there are none.
    ended_before: Option<Ended>,
    from_ns: u64,
    timeout_ns: u64,
    count_max: usize,
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
    /// None in flight; each waits for `timeout_ns` twice, and operations begin while there are fewer than `count_max`.
    pub(crate) fn new(timeout_ns: u64, count_max: usize) -> Self {
        Flights {
            links: Slab::new(),
            by_transmit: HashMap::default(),
            waiting: Queue::default(),
            overdue: Queue::default(),
            ended: Ended::new(),
            ended_before: None,
            from_ns: 0,
            timeout_ns,
            count_max,
        }
    }

    /// A step begins in which those requests count that are due from `from_ns` on, and in which as many are in flight
    /// if nobody answers as `rate_rps` sends within two timeouts: room for them is made now. Moving tens of thousands
    /// to a larger place takes milliseconds, which a step does not have.
    pub(crate) fn start(&mut self, from_ns: u64, rate_rps: f64) {
        self.from_ns = from_ns;
        let in_flight = (rate_rps * self.life_ns() as f64 / 1e9) as usize;
        let more = in_flight.min(self.count_max).saturating_sub(self.count());
        self.links.reserve_exact(more);
        self.by_transmit.reserve(more);
    }

    /// How long an answer may take.
    pub(crate) const fn timeout_ns(&self) -> u64 {
        self.timeout_ns
    }

    /// How long a flight lasts at most.
    pub(crate) const fn life_ns(&self) -> u64 {
        self.timeout_ns.saturating_mul(2)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_transmit.len()
    }

    /// Whether no operation may begin while `written_count` requests are yet to be sent.
    pub(crate) fn is_full(&self, written_count: usize) -> bool {
        self.count() + written_count >= self.count_max
    }

    /// Adds a request. `sent_ns` never decreases from call to call.
    ///
    /// # Panics
    /// If there are 2^32 - 1 already.
    pub(crate) fn add(&mut self, flight: Flight) {
        let transmit = flight.request.asked.transmit();
        // Two of 2^64 random timestamps practically never coincide in a run; if they did, one would count as lost.
        self.remove(transmit);
        if self.links.len() == self.links.capacity() {
            // Twice the places, but no more than there may be; the last operations may be a few requests more.
            let more = self.count_max.saturating_sub(self.links.len()).min(self.links.len());
            self.links.reserve_exact(more.max(GROWTH_COUNT_MIN));
        }
        let slot = self.links.insert(Link { flight, earlier: NONE, later: NONE });
        let slot = u32::try_from(slot).ok().filter(|&slot| slot < NONE).expect("flights are limited");
        self.by_transmit.insert(transmit, slot);
        self.waiting.push(&mut self.links, slot);
    }

    /// The request with this transmit timestamp.
    pub(crate) fn find(&mut self, transmit: u64) -> Option<&mut Flight> {
        self.links.get_mut(*self.by_transmit.get(&transmit)? as usize).map(|link| &mut link.flight)
    }

    /// The same, read-only.
    pub(crate) fn get(&self, transmit: u64) -> Option<&Flight> {
        self.links.get(*self.by_transmit.get(&transmit)? as usize).map(|link| &link.flight)
    }

    /// Ends the request with this transmit timestamp.
    pub(crate) fn remove(&mut self, transmit: u64) -> Option<Flight> {
        let slot = self.by_transmit.remove(&transmit)?;
        let ended = match self.links[slot as usize].flight.request.intended_ns < self.from_ns {
            true => self.ended_before.get_or_insert_with(Ended::new),
            false => &mut self.ended,
        };
        ended.add(transmit);
        let is_overdue = self.links[slot as usize].flight.overdue;
        let queue = if is_overdue { &mut self.overdue } else { &mut self.waiting };
        queue.unlink(&mut self.links, slot);
        Some(self.links.remove(slot as usize).flight)
    }

    /// The next flight whose timeout has passed by `now_ns`; `None` if there is none.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<Due> {
        if let Some(flight) = self.first(self.overdue)
            && flight.sent_ns.saturating_add(self.life_ns()) <= now_ns
        {
            let transmit = flight.request.asked.transmit();
            return self.remove(transmit).map(Due::Over);
        }
        let flight = self.first(self.waiting)?;
        if flight.sent_ns.saturating_add(self.timeout_ns) > now_ns {
            return None;
        }
        let slot = self.waiting.first;
        self.waiting.unlink(&mut self.links, slot);
        self.overdue.push(&mut self.links, slot);
        let flight = &mut self.links[slot as usize].flight;
        flight.overdue = true;
        Some(Due::Overdue { client: flight.request.client, principal: flight.request.principal })
    }

    fn first(&self, queue: Queue) -> Option<&Flight> {
        self.links.get(queue.first as usize).map(|link| &link.flight)
    }

    /// Whether a request with this transmit timestamp has ended, as far as is remembered: an instant that counts like
    /// the one at which it was due, if so.
    pub(crate) fn ended_ns(&self, transmit: u64) -> Option<u64> {
        if self.ended_before.as_ref().is_some_and(|ended| ended.contains(transmit)) {
            return Some(0);
        }
        self.ended.contains(transmit).then_some(self.from_ns)
    }

    /// When [`Flights::due`] has something next.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        let waiting = self.first(self.waiting).map(|flight| flight.sent_ns.saturating_add(self.timeout_ns));
        let overdue = self.first(self.overdue).map(|flight| flight.sent_ns.saturating_add(self.life_ns()));
        waiting.into_iter().chain(overdue).min()
    }
}

/// Transmit timestamps of [`ENDED_COUNT_MAX`] requests that have ended: each has its place in one of many short lines,
/// out of which the oldest falls. As timestamps are random, lines fill alike: one is forgotten after about as many
/// others, and never before [`LINE_SIZE`].
#[derive(Debug)]
struct Ended {
    lines: Vec<[u64; LINE_SIZE]>,
}

/// A line is one of the processor's cache lines.
const LINE_SIZE: usize = 8;
const LINE_COUNT: usize = ENDED_COUNT_MAX / LINE_SIZE;

const _: () = assert!(LINE_COUNT.is_power_of_two(), "the low bits of a timestamp are the number of its line");

impl Ended {
    fn new() -> Self {
        Ended { lines: vec![[0; LINE_SIZE]; LINE_COUNT] }
    }

    const fn line_of(transmit: u64) -> usize {
        transmit as usize % LINE_COUNT
    }

    fn add(&mut self, transmit: u64) {
        let line = &mut self.lines[Ended::line_of(transmit)];
        line.copy_within(..LINE_SIZE - 1, 1);
        line[0] = transmit;
    }

    fn contains(&self, transmit: u64) -> bool {
        // Zero marks a free place; no request has it, but what comes may.
        transmit != 0 && self.lines[Ended::line_of(transmit)].contains(&transmit)
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
    use crate::limits::FLIGHT_COUNT_MAX;

    fn flight(entropy: &mut Entropy, sent_ns: u64) -> Flight {
        let (exchange, _) = Exchange::plain(entropy, &mut [0; 48]);
        let asked = Asked::Ntp(exchange);
        let request =
            Request { asked, client: 3, epoch: 0, principal: true, intended_ns: sent_ns, begun_ns: sent_ns };
        Flight::new(request, sent_ns, NtpTime::from_bits(1))
    }

    fn flights(timeout_ns: u64) -> Flights {
        Flights::new(timeout_ns, usize::MAX)
    }

    /// Adds a flight; returns its transmit timestamp.
    fn add(flights: &mut Flights, entropy: &mut Entropy, sent_ns: u64) -> u64 {
        let flight = flight(entropy, sent_ns);
        let transmit = flight.request.asked.transmit();
        flights.add(flight);
        transmit
    }

    #[test]
    fn flight_is_overdue_once_and_over_once() {
        let mut entropy = Entropy::from_seed(1);
        let mut flights = flights(100);
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
    fn requests_that_ended_are_remembered_within_bounds() {
        let mut entropy = Entropy::from_seed(3);
        let mut flights = flights(1);
        let transmits: Vec<u64> = (0..2000).map(|now_ns| add(&mut flights, &mut entropy, now_ns)).collect();
        assert!(transmits.iter().all(|&transmit| flights.ended_ns(transmit).is_none()));
        // Half of them are answered.
        transmits.iter().step_by(2).for_each(|&transmit| _ = flights.remove(transmit));
        while flights.due(u64::MAX).is_some() {}
        assert!(transmits.iter().all(|&transmit| flights.ended_ns(transmit).is_some()));
        assert!(flights.ended_ns(0).is_none() && flights.ended_ns(entropy.u64()).is_none());
        // A great many others drive each of them out.
        (0..4 * ENDED_COUNT_MAX).for_each(|_| flights.ended.add(entropy.u64()));
        let left_count = transmits.iter().filter(|&&transmit| flights.ended_ns(transmit).is_some()).count();
        assert!(left_count < 10, "{left_count}");
        assert_eq!(flights.ended.lines.capacity() * LINE_SIZE, ENDED_COUNT_MAX);
    }

    #[test]
    fn ended_requests_are_of_the_time_that_they_were_due_in() {
        let mut entropy = Entropy::from_seed(8);
        let mut flights = flights(1_000);
        flights.start(100, 0.0);
        let [warm_up, counted] = [99, 100].map(|sent_ns| add(&mut flights, &mut entropy, sent_ns));
        for transmit in [warm_up, counted] {
            assert!(flights.remove(transmit).is_some());
        }
        assert_eq!((flights.ended_ns(warm_up), flights.ended_ns(counted)), (Some(0), Some(100)));
        flights.start(500, 0.0);
        assert_eq!((flights.ended_ns(warm_up), flights.ended_ns(counted)), (Some(0), Some(500)));
    }

    #[test]
    fn as_many_flights_as_there_may_be_take_the_memory_that_is_stated() {
        let mut entropy = Entropy::from_seed(6);
        // Steps of a closed loop; with less, and in the end with more than there is room for; with a little too little.
        for rates_rps in [&[0.0][..], &[150_000.0, 350_000.0, 900_000.0], &[300_000.0]] {
            let mut flights = Flights::new(1_000_000_000, FLIGHT_COUNT_MAX);
            rates_rps.iter().for_each(|&rate_rps| flights.start(0, rate_rps));
            while !flights.is_full(0) {
                add(&mut flights, &mut entropy, 1);
            }
            assert_eq!(flights.count(), FLIGHT_COUNT_MAX);
            assert!(flights.is_full(0) && flights.is_full(64));
            let links = flights.links.capacity() * (size_of::<Link>() + 8);
            // A map has at least an eighth of its places free, a power of two of them; each has an octet beside it.
            let map = (flights.by_transmit.capacity() * 8 / 7).next_power_of_two() * 17;
            assert!(links + map <= FLIGHT_COUNT_MAX * FLIGHT_SIZE_MAX, "{rates_rps:?}: {links} {map}");
        }
    }

    #[test]
    fn nothing_moves_while_no_more_are_in_flight_than_the_rate_says() {
        let mut entropy = Entropy::from_seed(7);
        let mut flights = Flights::new(100_000_000, 60_000);
        // 500,000 a second for two timeouts are 100,000, and there is room for fewer.
        for (rate_rps, count) in [(200_000.0, 40_000), (500_000.0, 60_000)] {
            flights.start(0, rate_rps);
            let room = |flights: &Flights| (flights.links.capacity(), flights.by_transmit.capacity());
            let before = room(&flights);
            while flights.count() < count {
                add(&mut flights, &mut entropy, 1);
            }
            assert_eq!(room(&flights), before, "{rate_rps}");
        }
        assert!(flights.is_full(0));
    }

    #[test]
    fn answered_flights_leave_nothing_behind() {
        let mut entropy = Entropy::from_seed(4);
        let mut flights = flights(u64::MAX / 4);
        for now_ns in 0..100_000 {
            let transmit = add(&mut flights, &mut entropy, now_ns);
            assert!(flights.remove(transmit).is_some());
        }
        assert_eq!(flights.next_due_ns(), None);
        assert!(flights.links.capacity() < 10 && flights.by_transmit.capacity() < 10);
    }

    #[test]
    fn flights_end_in_order_whichever_were_answered() {
        let mut entropy = Entropy::from_seed(5);
        let mut flights = flights(100);
        let transmits: Vec<u64> = (0..60).map(|now_ns| add(&mut flights, &mut entropy, now_ns)).collect();
        let answered = |index: usize| index.is_multiple_of(7) || (20..25).contains(&index) || index == 59;
        (0..60).filter(|&index| answered(index)).for_each(|index| _ = flights.remove(transmits[index]));
        // The first thirty are overdue, of which some are answered late.
        while flights.due(129).is_some() {}
        (0..30).step_by(4).for_each(|index| _ = flights.remove(transmits[index]));
        let mut over = Vec::new();
        while let Some(due) = flights.due(u64::MAX) {
            if let Due::Over(flight) = due {
                over.push(flight.sent_ns as usize);
            }
        }
        let late = |index: usize| index < 30 && index.is_multiple_of(4);
        let expected: Vec<usize> = (0..60).filter(|&index| !answered(index) && !late(index)).collect();
        assert_eq!((over, flights.count(), flights.next_due_ns()), (expected, 0, None));
    }

    #[test]
    fn every_flight_ends_exactly_once() {
        let mut entropy = Entropy::from_seed(2);
        let mut flights = flights(50);
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
        assert!(flights.links.capacity() < 200, "slots are used again");
    }
}
