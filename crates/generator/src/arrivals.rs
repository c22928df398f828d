//! Answers: to which request each belongs, and whether it passes every check.
//!
//! Datagrams are checked in three passes: all checks that need no key; decryption and tags, for all of them side by
//! side; and the rest.
//!
//! A datagram belongs to the request in flight whose transmit timestamp it has as its origin, and to no other: what
//! fits none is counted apart ([`Stray`](authentick_report::load::Stray)), and is never why a request fails.
//!
//! Whether an answer comes in time is decided by the instant at which it arrived, and not by when this thread looked:
//! before one timeout it counts as answered, before two as late, and after that the request has had no answer and the
//! datagram is a stray. The driver sees to it that nothing expires while something that came before is unread; see
//! [`Core::expire`].

use crate::core::Core;
use crate::flight::{Flight, Request};
use crate::scheme::{Found, Outdated, Protocol, Verdict, dispatch, schemes};
use crate::workload::{Arrived, Landing, Workload};
use crate::{Clock, Desk};

/// Place of the origin timestamp in a packet. RFC 5905 section 7.3.
const ORIGIN: std::ops::Range<usize> = 24..32;

/// A datagram that may be the answer to a request in flight.
#[derive(Debug)]
pub(crate) struct Inspected {
    pub(crate) client: u32,
    /// Of the request.
    pub(crate) transmit: u64,
    /// The number of the keys that the request was made with.
    pub(crate) epoch: u32,
    pub(crate) candidate: Found,
    pub(crate) genuine: bool,
}

impl Core {
    /// A datagram has come to a client: finds the request to it, and makes all checks that need no key.
    /// [`Core::verify`] and [`Core::conclude`] are called for all datagrams that were told of since, in the same order.
    pub fn inspect(&mut self, client: u32, octets: &[u8], came: Arrived, desk: &mut Desk<'_, impl Clock>) {
        self.load.time_of_day.look(&came.now, desk.clock);
        let inspected = self.look(client, octets, came, desk);
        self.inspected.push(inspected);
    }

    fn look(
        &mut self,
        client: u32,
        octets: &[u8],
        came: Arrived,
        desk: &mut Desk<'_, impl Clock>,
    ) -> Option<Inspected> {
        let origin = octets.get(ORIGIN).and_then(|origin| origin.try_into().map(u64::from_be_bytes).ok());
        let life_ns = self.load.flights.life_ns();
        let Workload { flights, time_of_day, .. } = &mut self.load;
        let flight = origin.and_then(|origin| flights.find(origin)).filter(|flight| {
            // What comes after two timeouts is no answer, even if the request was not ended yet.
            let came = time_of_day.trusted(came, flight.sent_ns);
            flight.request.client == client && came.at_ns().saturating_sub(flight.sent_ns) < life_ns
        });
        let Some(flight) = flight else {
            self.load.stray(client, octets, origin);
            return None;
        };
        let came = time_of_day.trusted(came, flight.sent_ns);
        flight.came_size = flight.came_size.saturating_add(octets.len() as u32);
        let (transmit, epoch) = (flight.request.asked.transmit(), flight.request.epoch);
        let asked = &mut flight.request.asked;
        let (at, clock) = (came.at, desk.clock);
        let verdict = schemes!(dispatch, &self.speaker, scheme => scheme.inspect(asked, octets, at, clock));
        match verdict {
            Verdict::Candidate(candidate) => {
                Some(Inspected { client, transmit, epoch, candidate, genuine: false })
            }
            settled => {
                self.settle(transmit, settled, came, desk);
                None
            }
        }
    }

    /// Decrypts all inspected datagrams and verifies their tags, side by side.
    pub fn verify<'a>(&mut self, datagrams: impl Iterator<Item = &'a mut [u8]>, clock: &impl Clock) {
        let Core { speaker, load, inspected, crypto_ns, .. } = self;
        let both = datagrams.zip(inspected);
        let candidates = both.filter_map(|(datagram, inspected)| Some((datagram, inspected.as_mut()?)));
        *crypto_ns = schemes!(dispatch, speaker, scheme => scheme.verify(load, candidates, clock));
    }

    /// Whether a datagram, counted from the first that was inspected, may still be an answer.
    #[must_use]
    pub fn is_candidate(&self, number: usize) -> bool {
        self.inspected.get(number).is_some_and(Option::is_some)
    }

    /// The rest of the checks on a datagram.
    pub fn conclude(
        &mut self,
        number: usize,
        octets: &mut [u8],
        came: Arrived,
        desk: &mut Desk<'_, impl Clock>,
    ) {
        let Some(inspected) = self.inspected.get_mut(number).and_then(Option::take) else { return };
        let Workload { flights, roster, time_of_day, .. } = &mut self.load;
        // An answer before this one may have ended it.
        let Some(Flight { request, sent_ns, .. }) = flights.find(inspected.transmit) else {
            return self.load.stray(inspected.client, octets, Some(inspected.transmit));
        };
        let came = time_of_day.trusted(came, *sent_ns);
        let session = roster[inspected.client].session_of_mut(inspected.epoch);
        let verdict = request.asked.conclude(&inspected, octets, session, self.crypto_ns);
        self.settle(inspected.transmit, verdict, came, desk);
    }

    /// All inspected datagrams are finished.
    pub fn concluded(&mut self) {
        self.inspected.clear();
    }

    /// The effect of a datagram on the request in flight with this transmit timestamp.
    fn settle(&mut self, transmit: u64, verdict: Verdict, came: Arrived, desk: &mut Desk<'_, impl Clock>) {
        let Core { speaker, load, .. } = self;
        match verdict {
            Verdict::Early | Verdict::Candidate(_) => {}
            Verdict::Answer(answer, at) => match load.land(transmit, &came) {
                Some(Landing::InTime(flight)) => {
                    let (call, came) = (
                        &mut desk.call(load),
                        Arrived { at: at.filter(|_| came.is_sound).unwrap_or(came.at), ..came },
                    );
                    schemes!(dispatch, speaker, scheme => scheme.answered(call, flight, answer, came));
                }
                Some(Landing::Late { client, principal, is_news: true }) => {
                    self.datagram_ended(client, principal, came.now.ns, desk);
                }
                Some(Landing::Late { is_news: false, .. }) | None => {}
            },
            Verdict::Refused { cause, is_outdated } => {
                let Some(flight) = load.flights.find(transmit) else { return };
                flight.noted.get_or_insert(cause);
                if is_outdated && flight.request.principal {
                    let Request { client, epoch, .. } = flight.request;
                    let request = Outdated { client, epoch, sent_ns: flight.sent_ns };
                    let call = &mut desk.call(load);
                    schemes!(dispatch, speaker, scheme => scheme.outdated(call, request, came.now.ns));
                }
            }
        }
    }
}
