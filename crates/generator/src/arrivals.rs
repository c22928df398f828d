//! Answers: to which request each belongs, and whether it passes every check.
//!
//! Datagrams are checked in three passes: all checks that need no key; decryption and tags, for all of them side by
//! side; and the rest.

use authentick_wire::limits::HEADER_SIZE;

use crate::core::Core;
use crate::flight::Flight;
use crate::scheme::{Found, Protocol, Verdict, dispatch, schemes};
use crate::workload::{Arrived, Workload};
use crate::{Clock, Desk};

/// Offset of the origin timestamp in a packet. RFC 5905 section 7.3.
const ORIGIN: std::ops::Range<usize> = 24..32;

/// A datagram that may be the answer to a request in flight.
#[derive(Debug)]
pub(crate) struct Inspected {
    pub(crate) client: u32,
    /// Of the request.
    pub(crate) transmit: u64,
    pub(crate) sent_ns: u64,
    pub(crate) candidate: Found,
    pub(crate) genuine: bool,
}

impl Core {
    /// A datagram has come to a client: finds the request to it, and makes all checks that need no key.
    /// [`Core::verify`] and [`Core::conclude`] are called for all datagrams that were told of since, in the same order.
    pub fn inspect(&mut self, client: u32, octets: &[u8], came: Arrived, desk: &mut Desk<'_, impl Clock>) {
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
        let header = octets.get(..HEADER_SIZE);
        let origin = header.and_then(|header| header[ORIGIN].try_into().map(u64::from_be_bytes).ok());
        let flight = origin.and_then(|origin| self.load.flights.find(origin));
        let Some(flight) = flight.filter(|flight| flight.request.client == client) else {
            self.load.stray(client, origin);
            return None;
        };
        let (transmit, sent_ns) = (flight.request.asked.transmit(), flight.sent_ns);
        let asked = &mut flight.request.asked;
        let (at, clock) = (came.at, desk.clock);
        let verdict = schemes!(dispatch, &self.speaker, scheme => scheme.inspect(asked, octets, at, clock));
        match verdict {
            Verdict::Candidate(candidate) => {
                Some(Inspected { client, transmit, sent_ns, candidate, genuine: false })
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
        let Workload { flights, roster, .. } = &mut self.load;
        // An answer before this one may have ended it.
        let Some(Flight { request, .. }) = flights.find(inspected.transmit) else {
            return self.load.stray(inspected.client, Some(inspected.transmit));
        };
        let session = roster[inspected.client].session_of_mut(inspected.sent_ns);
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
            Verdict::Answer(answer, at) => {
                let Some(flight) = load.land(transmit) else { return };
                let (call, came) = (&mut desk.call(load), Arrived { at: at.unwrap_or(came.at), ..came });
                schemes!(dispatch, speaker, scheme => scheme.answered(call, flight, answer, came));
            }
            Verdict::Refused { cause, is_outdated } => {
                let Some(flight) = load.flights.find(transmit) else { return };
                flight.noted.get_or_insert(cause);
                if is_outdated && flight.request.principal {
                    let (client, sent_ns, now_ns) = (flight.request.client, flight.sent_ns, came.now.ns);
                    let call = &mut desk.call(load);
                    schemes!(dispatch, speaker, scheme => scheme.outdated(call, client, sent_ns, now_ns));
                }
            }
        }
    }
}
