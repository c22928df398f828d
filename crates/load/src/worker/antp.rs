//! Operations of ANTP, which may take several datagrams, and the sealed state that clients need before them.
//!
//! An operation counts as sent when its first datagram leaves, and ends once: with its last answer, or when one of its
//! datagrams has waited too long. What clients need beside (a C1 for key exchanges, a session for time requests) is
//! counted apart.

use std::sync::Arc;

use authentick_crypto::kem::PublicKey;
use authentick_net::clock::{self, monotonic_ns};
use authentick_proto::antp::client::{
    Candidate, Check, HeldChain, Negotiated, Negotiation, Session, TimeExchange,
};
use authentick_proto::antp::transcript::verify_times;
use authentick_proto::client::Sample;
use authentick_report::load::Cause;
use authentick_wire::antp::ErrorCode;
use authentick_wire::header::Header;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

use super::Worker;
use super::receive::{Found, Inspected};
use crate::antp::{Goal, Operation, Taken, Talk, Trusted, cause};
use crate::client::Client;
use crate::flight::{Asked, Flight};
use crate::limits::{BATCH_SIZE, FIRST_KEYS_COUNT_MAX, JOINABLE_COUNT_MAX, PATIENCE_MAX, SPARE_COUNT_MAX};
use crate::plan::{Joinable, Scheme, Watch};

/// Longer than this no client may stay without its state before the load, besides waiting for answers.
const PATIENCE_NS: u64 = 5_000_000_000;

impl Worker {
    /// Gets C1 or a session for every client, before any load.
    ///
    /// # Errors
    /// A sentence on why a client has none.
    pub(crate) fn get_first_states(&mut self, watch: &Watch) -> Result<(), String> {
        if !matches!(self.plan.scheme, Scheme::AntpExchange | Scheme::Antp) {
            return Ok(());
        }
        let patience_ns = PATIENCE_NS.saturating_add(2 * self.flights.life_ns());
        let (mut next, mut told, mut progress_ns) = (0, 0, monotonic_ns());
        loop {
            let now_ns = monotonic_ns();
            while self.flights.count() + self.pending.len() < FIRST_KEYS_COUNT_MAX
                && next < self.clients.len()
            {
                self.renew_state(next as u32, now_ns);
                next += 1;
            }
            self.turn(now_ns, PATIENCE_MAX);
            let without = self.clients.iter().filter(|client| !self.is_prepared(client, now_ns)).count();
            let ready = (self.clients.len() - without) as u64;
            if ready > told {
                progress_ns = now_ns;
            }
            watch.add_ready(ready - told);
            told = ready;
            // What still waits would end in a step that did not begin it.
            if without == 0 && self.flights.count() == 0 {
                return Ok(());
            }
            if watch.is_stopped() {
                return Err("stopped while clients were getting their sealed state".to_owned());
            }
            if without > 0 && now_ns.saturating_sub(progress_ns) > patience_ns {
                let causes = self.ledger.accompanying.tally().causes;
                let why: Vec<String> =
                    causes.iter().map(|(cause, count)| format!("{cause}: {count}")).collect();
                return Err(format!(
                    "{without} of {} clients got no sealed state of ANTP ({}); is the server overloaded, or does it \
                     limit the rate?",
                    self.clients.len(),
                    why.join(", ")
                ));
            }
            if next == self.clients.len() {
                next = 0;
            }
        }
    }

    /// Whether a client has what the scheme's operations need.
    fn is_prepared(&self, client: &Client, now_ns: u64) -> bool {
        match self.plan.scheme {
            Scheme::AntpExchange => client.antp.has_c1(now_ns),
            Scheme::Antp => client.antp.session.is_some(),
            _ => true,
        }
    }

    /// Whether it should go for it: it has none, or one that ends soon.
    fn wants_state(&self, client: &Client, now_ns: u64) -> bool {
        let wanting = match self.plan.scheme {
            Scheme::AntpExchange => client.antp.wants_c1(now_ns),
            Scheme::Antp => client.antp.session.is_none(),
            _ => false,
        };
        wanting && client.may_prepare(now_ns)
    }

    /// Begins to get C1, or a session, for a client that wants it and may.
    fn renew_state(&mut self, index: u32, now_ns: u64) {
        if !self.wants_state(&self.clients[index as usize], now_ns) {
            return;
        }
        let goal = if self.plan.scheme == Scheme::AntpExchange { Goal::C1 } else { Goal::Session };
        let client = &mut self.clients[index as usize];
        client.exchanging = true;
        let measured = client.measured;
        self.ledger.of(measured, false).scheduled += 1;
        self.push_negotiation(index, goal, now_ns);
    }

    /// Begins an operation of a client that can. `true`: it goes on.
    ///
    /// # Errors
    /// Why no client can.
    pub(super) fn begin_antp(&mut self, measured: bool, goal: Goal, intended_ns: u64) -> Result<bool, Cause> {
        let now_ns = monotonic_ns();
        let scheme = self.plan.scheme;
        let mut wanting = None;
        let found = self.choose(measured, |client, index| {
            let (has, wants) = match scheme {
                Scheme::AntpExchange => (client.antp.has_c1(now_ns), client.antp.wants_c1(now_ns)),
                Scheme::Antp => (client.antp.session.is_some(), client.antp.session.is_none()),
                _ => (true, false),
            };
            if wants && client.may_prepare(now_ns) {
                wanting.get_or_insert(index);
            }
            has
        });
        if let Some(index) = wanting {
            self.renew_state(index, now_ns);
        }
        let index = found.ok_or(Cause::NoCookie)?;
        match goal {
            Goal::Negotiation | Goal::Run | Goal::C1 | Goal::Session => {
                self.push_negotiation(index, goal, intended_ns);
            }
            Goal::KeyExchange => self.push_exchange(index, intended_ns)?,
            Goal::Time => self.push_time(index, intended_ns)?,
        }
        Ok(true)
    }

    /// Makes room for one request more.
    fn make_room(&mut self) {
        if self.pending.len() == BATCH_SIZE {
            self.flush();
        }
    }

    /// Writes the first m1 of an operation.
    fn push_negotiation(&mut self, index: u32, goal: Goal, intended_ns: u64) {
        self.make_room();
        let begun_ns = monotonic_ns();
        let Some(guide) = &self.guide else { return };
        let out = self.out.buffer(self.pending.len());
        let entropy = &mut self.entropy;
        // Who is measured asks for the whole chain, as a client that comes for the first time.
        let held = match goal {
            Goal::C1 | Goal::Session => self.trusted.as_ref().map(|trusted| trusted.chain.clone()),
            Goal::Negotiation | Goal::KeyExchange | Goal::Time | Goal::Run => None,
        };
        let (negotiation, size) = match guide.replay && goal == Goal::Negotiation {
            true => {
                let fixed = &mut self.clients[index as usize].antp.static_negotiation;
                let fixed = fixed.get_or_insert_with(|| {
                    let mut negotiation = Negotiation::new(guide.offer(held));
                    negotiation.request(entropy, &mut [0; DATAGRAM_SIZE_MAX]);
                    negotiation
                });
                fixed.again(entropy, out)
            }
            false => {
                let mut negotiation = Negotiation::new(guide.offer(held));
                let size = negotiation.request(entropy, out);
                (negotiation, size)
            }
        };
        let operation = Operation::new(goal, Talk::Negotiation(negotiation));
        self.push_written(index, size, Box::new(operation), [intended_ns, begun_ns], false);
    }

    /// Writes m3 of a client that has a C1.
    fn push_exchange(&mut self, index: u32, intended_ns: u64) -> Result<(), Cause> {
        self.make_room();
        let (Some(guide), Some(trusted)) = (&self.guide, &self.trusted) else { return Err(Cause::NoCookie) };
        let out = self.out.buffer(self.pending.len());
        let (state, entropy) = (&mut self.clients[index as usize].antp, &mut self.entropy);
        if guide.replay {
            state.fix_exchange(&trusted.key, entropy)?;
        }
        let begun_ns = monotonic_ns();
        let (exchange, size) = state.exchange(&trusted.key, entropy, out)?;
        let mut operation = Box::new(Operation::new(Goal::KeyExchange, Talk::KeyExchange(exchange)));
        operation.crypto_ns = monotonic_ns() - begun_ns;
        self.push_written(index, size, operation, [intended_ns, begun_ns], false);
        Ok(())
    }

    /// Writes m5 of a client that has a session.
    fn push_time(&mut self, index: u32, intended_ns: u64) -> Result<(), Cause> {
        self.make_room();
        let Some(guide) = &self.guide else { return Err(Cause::NoCookie) };
        let out = self.out.buffer(self.pending.len());
        let (state, entropy) = (&mut self.clients[index as usize].antp, &mut self.entropy);
        let session = state.session.as_ref().ok_or(Cause::NoCookie)?;
        let mut operation = Operation::for_time(self.spares.pop(), session);
        let Talk::Time(exchange, _) = &mut operation.talk else { return Err(Cause::Local) };
        let (begun_ns, now) = (monotonic_ns(), clock::now());
        let size = match guide.replay {
            true => {
                let fixed = state.static_time.get_or_insert_with(|| {
                    let mut fixed = TimeExchange::idle();
                    guide.ask_in(&mut fixed, session, now, entropy, &mut [0; DATAGRAM_SIZE_MAX]);
                    fixed
                });
                fixed.again_in(exchange, now, entropy, out)
            }
            false => guide.ask_in(exchange, session, now, entropy, out),
        };
        operation.crypto_ns = monotonic_ns() - begun_ns;
        self.push_written(index, size, operation, [intended_ns, begun_ns], false);
        Ok(())
    }

    /// Takes a datagram with the origin of a request of ANTP in flight; one with time is looked at on when its tag has
    /// been verified together with others.
    pub(super) fn take_antp(
        &mut self,
        number: usize,
        transmit: u64,
        now: NtpTime,
        now_ns: u64,
    ) -> Option<Inspected> {
        let arrival = self.back.arrival(number);
        let flight = self.flights.find(transmit)?;
        let Asked::Antp(operation) = &mut flight.asked else { return None };
        let at = arrival.at.unwrap_or(now);
        match operation.take(arrival.octets, at) {
            Ok(Taken::Early) => {}
            Ok(Taken::Candidate(candidate)) => {
                return Some(Inspected {
                    client: flight.client,
                    transmit,
                    sent_ns: flight.sent_ns,
                    candidate: Found::Time(candidate),
                    genuine: false,
                });
            }
            Ok(taken) => {
                let at_ns = now_ns.saturating_add_signed(-now.since(at).as_nanos().max(0));
                self.go_on_with_antp(transmit, taken, at, at_ns);
            }
            Err(check) => self.antp_refused(transmit, &check, now_ns),
        }
        None
    }

    /// Verifies the tags of time; returns how long each took.
    pub(super) fn verify_times(&mut self, inspected: &mut [Option<Inspected>]) -> u64 {
        let begun_ns = monotonic_ns();
        let mut claims = Vec::with_capacity(inspected.len());
        for (datagram, inspected) in self.back.datagrams().zip(inspected) {
            if let Some(Inspected { transmit, candidate: Found::Time(_), genuine, .. }) = inspected
                && let Some(Asked::Antp(operation)) = self.flights.get(*transmit).map(|flight| &flight.asked)
                && let Some(claim) = operation.claim(datagram, genuine)
            {
                claims.push(claim);
            }
        }
        verify_times(&mut claims);
        (monotonic_ns() - begun_ns) / claims.len().max(1) as u64
    }

    /// The rest of the checks on time whose tag was looked at.
    pub(super) fn conclude_antp(
        &mut self,
        transmit: u64,
        candidate: &Candidate,
        genuine: bool,
        crypto_ns: u64,
        (now, now_ns): (NtpTime, u64),
    ) {
        let Some(Asked::Antp(operation)) = self.flights.find(transmit).map(|flight| &mut flight.asked) else {
            return;
        };
        match operation.conclude(candidate, genuine, crypto_ns) {
            Ok((accepted, at)) => {
                let at_ns = now_ns.saturating_add_signed(-now.since(at).as_nanos().max(0));
                self.go_on_with_antp(transmit, Taken::Time(accepted), at, at_ns);
            }
            Err(check) => self.antp_refused(transmit, &check, now_ns),
        }
    }

    /// A datagram with the origin of a request of ANTP in flight failed a check.
    fn antp_refused(&mut self, transmit: u64, check: &Check, now_ns: u64) {
        let Some(flight) = self.flights.find(transmit) else { return };
        flight.noted.get_or_insert(cause(check));
        let (index, sent_ns, principal) = (flight.client, flight.sent_ns, flight.principal);
        let expired = *check == Check::Server(ErrorCode::EXPIRED);
        if expired && principal && self.clients[index as usize].antp.forget(sent_ns) {
            self.renew_state(index, now_ns);
        }
    }

    /// A request of an operation was answered: the next one follows, or the operation has ended.
    fn go_on_with_antp(&mut self, transmit: u64, taken: Taken, at: NtpTime, at_ns: u64) {
        let Some(flight) = self.flights.remove(transmit) else { return };
        let client = &mut self.clients[flight.client as usize];
        client.answered(transmit);
        if flight.overdue {
            self.ledger.of(client.measured, flight.principal).fail(Cause::Late);
            return;
        }
        client.outstanding -= 1;
        let (index, times_ns) = (flight.client, [flight.intended_ns, flight.begun_ns]);
        let Flight { asked: Asked::Antp(mut operation), sent, sent_ns, .. } = flight else { return };
        operation.phases_ns[operation.phase()] += at_ns.saturating_sub(sent_ns);
        let replay = self.guide.as_ref().is_some_and(|guide| guide.replay);
        let result = match (taken, operation.goal) {
            // Nothing has been answered by these.
            (Taken::Early | Taken::Candidate(_), _) => return,
            (Taken::Part, Goal::Negotiation) if replay => Ok(Some(operation)),
            (Taken::Part, _) => self.next_round(index, operation, times_ns),
            (Taken::Negotiated(negotiated), goal) => match self.judged(&negotiated, &mut operation) {
                Err(cause) => Err((cause, operation)),
                Ok(_) if goal == Goal::Negotiation => Ok(Some(operation)),
                Ok(_) if goal == Goal::C1 => {
                    self.clients[index as usize].antp.negotiated(negotiated, monotonic_ns());
                    Ok(Some(operation))
                }
                Ok(key) => self.next_exchange(index, &negotiated, &key, operation, times_ns),
            },
            (Taken::Keyed(session), Goal::Run) => self.next_time(index, session, operation, times_ns),
            (Taken::Keyed(session), goal) => {
                if goal == Goal::Session {
                    self.clients[index as usize].antp.keyed(session, monotonic_ns());
                }
                Ok(Some(operation))
            }
            (Taken::Time(accepted), _) => {
                let offset_ns = offset(&accepted.header, sent, at);
                self.antp_answered(index, &operation, Some(offset_ns), transmit, times_ns, at_ns);
                if self.spares.len() < SPARE_COUNT_MAX {
                    self.spares.push(operation);
                }
                return;
            }
        };
        match result {
            Ok(None) => {}
            Ok(Some(operation)) => self.antp_answered(index, &operation, None, transmit, times_ns, at_ns),
            Err((cause, operation)) => {
                let (measured, principal) =
                    (self.clients[index as usize].measured, operation.goal.is_principal());
                self.ledger.of(measured, principal).fail(cause);
                self.datagram_ended(index, principal);
            }
        }
    }

    /// The key of a server whose chain is trusted. A run judges it each time, as a client does that knows nothing; for
    /// others one chain is judged once.
    fn judged(
        &mut self,
        negotiated: &Negotiated,
        operation: &mut Operation,
    ) -> Result<Arc<PublicKey>, Cause> {
        let octets = negotiated.chain().octets();
        if let Some(trusted) = &self.trusted
            && operation.goal != Goal::Run
            && trusted.chain.octets() == octets
        {
            return Ok(Arc::clone(&trusted.key));
        }
        let guide = self.guide.as_ref().ok_or(Cause::Negotiation)?;
        let begun_ns = monotonic_ns();
        let judged = guide.public_key(negotiated);
        operation.crypto_ns += monotonic_ns() - begun_ns;
        let key = judged.map(Arc::new).map_err(|distrust| {
            log::debug!("{distrust}");
            Cause::Negotiation
        })?;
        if operation.goal != Goal::Run {
            let chain = HeldChain::new(&negotiated.chain());
            self.trusted = Some(Trusted { chain, key: Arc::clone(&key) });
        }
        Ok(key)
    }

    fn next_round(&mut self, index: u32, mut operation: Box<Operation>, times_ns: [u64; 2]) -> Next {
        self.make_room();
        let out = self.out.buffer(self.pending.len());
        let Talk::Negotiation(negotiation) = &mut operation.talk else {
            return Err((Cause::Malformed, operation));
        };
        let size = negotiation.request(&mut self.entropy, out);
        self.push_written(index, size, operation, times_ns, true);
        Ok(None)
    }

    fn next_exchange(
        &mut self,
        index: u32,
        negotiated: &Negotiated,
        key: &PublicKey,
        mut operation: Box<Operation>,
        times_ns: [u64; 2],
    ) -> Next {
        self.make_room();
        let out = self.out.buffer(self.pending.len());
        let begun_ns = monotonic_ns();
        let Ok((exchange, size)) = negotiated.exchange(key, &mut self.entropy, out) else {
            return Err((Cause::Negotiation, operation));
        };
        operation.crypto_ns += monotonic_ns() - begun_ns;
        operation.talk = Talk::KeyExchange(exchange);
        self.push_written(index, size, operation, times_ns, true);
        Ok(None)
    }

    fn next_time(
        &mut self,
        index: u32,
        session: Session,
        mut operation: Box<Operation>,
        times_ns: [u64; 2],
    ) -> Next {
        self.make_room();
        let Some(guide) = &self.guide else { return Err((Cause::Malformed, operation)) };
        let out = self.out.buffer(self.pending.len());
        let mut exchange = TimeExchange::idle();
        let size = guide.ask_in(&mut exchange, &session, clock::now(), &mut self.entropy, out);
        operation.talk = Talk::Time(exchange, Arc::new(session));
        self.push_written(index, size, operation, times_ns, true);
        Ok(None)
    }

    /// An operation has ended well.
    fn antp_answered(
        &mut self,
        index: u32,
        operation: &Operation,
        offset_ns: Option<i64>,
        transmit: u64,
        [intended_ns, begun_ns]: [u64; 2],
        at_ns: u64,
    ) {
        let client = &mut self.clients[index as usize];
        let (measured, local, principal) = (client.measured, client.local, operation.goal.is_principal());
        self.ledger.of(measured, principal).answer(at_ns as i64 - intended_ns as i64, offset_ns);
        if !principal {
            return client.prepared();
        }
        if let Some(figures) = self.figures.as_mut().filter(|_| measured) {
            figures.answered(operation);
        }
        if measured && self.plan.joinable && self.joinables.len() < JOINABLE_COUNT_MAX {
            let whole_ns = monotonic_ns().saturating_sub(begun_ns);
            self.joinables.push(Joinable { source: local, transmit: Some(transmit), whole_ns });
        }
        self.transfer_ended(index);
    }
}

/// What follows an answer: nothing yet, as another request waits; the operation, which has ended well; or why it has
/// not.
type Next = Result<Option<Box<Operation>>, (Cause, Box<Operation>)>;

fn offset(header: &Header, sent: NtpTime, at: NtpTime) -> i64 {
    Sample::new(header, sent, at).offset.as_nanos()
}
