//! From datagram to datagram of an operation.

use std::sync::Arc;

use authentick_crypto::kem::PublicKey;
use authentick_proto::antp::client::{HeldChain, Negotiated, Negotiation, Session, TimeExchange};
use authentick_proto::client::Sample;
use authentick_report::load::Cause;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;

use super::conversation::{Conversation, Goal, Taken, Talk};
use super::figures::Figures;
use super::guide::{Guide, Trusted};
use crate::flight::{Flight, Request};
use crate::limits::SPARE_COUNT_MAX;
use crate::scheme::Asked;
use crate::workload::{Arrived, Workload};
use crate::{Clock, Desk};

/// What a worker's clients say in ANTP.
#[derive(Debug)]
pub(crate) struct Speech {
    pub(super) guide: Arc<Guide>,
    /// What was learned of the server.
    pub(super) trusted: Option<Trusted>,
    /// Time requests that have ended, for the room that they take.
    #[expect(clippy::vec_box, reason = "flights hold boxes")]
    pub(super) spares: Vec<Box<Conversation>>,
    pub(super) figures: Box<Figures>,
}

/// Which request an answer was to.
struct Answered {
    client: u32,
    transmit: u64,
    /// When the operation was to begin, and when it began.
    times_ns: [u64; 2],
    arrived: Arrived,
}

impl Speech {
    pub(super) fn new(guide: Arc<Guide>) -> Self {
        Speech { guide, trusted: None, spares: Vec::new(), figures: Box::default() }
    }

    /// Adds a request that was written to the next slot.
    pub(super) fn push(
        load: &mut Workload,
        client: u32,
        size: usize,
        conversation: Box<Conversation>,
        [intended_ns, begun_ns]: [u64; 2],
        continued: bool,
    ) {
        let principal = conversation.goal.is_principal();
        let asked = Asked::Antp(conversation);
        load.push(Request { asked, client, principal, intended_ns, begun_ns }, size, None, continued);
    }

    /// Writes the first m1 of an operation.
    pub(super) fn push_negotiation<C: Clock>(
        &mut self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        client: u32,
        goal: Goal,
        intended_ns: u64,
    ) {
        let begun_ns = desk.clock.monotonic_ns();
        let (guide, entropy) = (&self.guide, &mut load.entropy);
        // Who is measured asks for the whole chain, as a client that comes for the first time.
        let held = match goal {
            Goal::C1 | Goal::Session => self.trusted.as_ref().map(|trusted| trusted.chain.clone()),
            Goal::Negotiation | Goal::KeyExchange | Goal::Time | Goal::Run => None,
        };
        let (negotiation, size) = match guide.replay && goal == Goal::Negotiation {
            true => {
                let fixed = &mut load.roster[client].antp.static_negotiation;
                let fixed = fixed.get_or_insert_with(|| {
                    let mut negotiation = Negotiation::new(guide.offer(held));
                    negotiation.request(entropy, &mut [0; DATAGRAM_SIZE_MAX]);
                    negotiation
                });
                fixed.again(entropy, desk.out)
            }
            false => {
                let mut negotiation = Negotiation::new(guide.offer(held));
                let size = negotiation.request(entropy, desk.out);
                (negotiation, size)
            }
        };
        let conversation = Box::new(Conversation::new(goal, Talk::Negotiation(negotiation)));
        Self::push(load, client, size, conversation, [intended_ns, begun_ns], false);
    }

    /// A request of an operation was answered: the next one follows, or the operation has ended well.
    ///
    /// # Errors
    /// Why it has failed.
    pub(super) fn go_on<C: Clock>(
        &mut self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        flight: Flight,
        taken: Taken,
        arrived: Arrived,
    ) -> Result<(), Cause> {
        let Flight { request, sent, sent_ns, .. } = flight;
        let Request { asked: Asked::Antp(mut conversation), client, intended_ns, begun_ns, .. } = request
        else {
            return Ok(());
        };
        let (transmit, times_ns) = (conversation.token().to_bits(), [intended_ns, begun_ns]);
        let answered = Answered { client, transmit, times_ns, arrived };
        conversation.phases_ns[conversation.phase()] += arrived.at_ns.saturating_sub(sent_ns);
        let mut offset_ns = None;
        match (taken, conversation.goal) {
            (Taken::Part, Goal::Negotiation) if self.guide.replay => {}
            (Taken::Part, _) => return Self::next_round(load, desk, &answered, conversation),
            (Taken::Negotiated(negotiated), goal) => {
                let key = self.judged(&negotiated, &mut conversation, desk.clock)?;
                match goal {
                    Goal::Negotiation => {}
                    Goal::C1 => load.roster[client].antp.negotiated(negotiated, arrived.now_ns),
                    Goal::KeyExchange | Goal::Time | Goal::Run | Goal::Session => {
                        return Self::next_exchange(load, desk, &answered, conversation, (&negotiated, &key));
                    }
                }
            }
            (Taken::Keyed(session), Goal::Run) => {
                return self.next_time(load, desk, &answered, conversation, session);
            }
            (Taken::Keyed(session), Goal::Session) => {
                load.roster[client].antp.keyed(session, arrived.now_ns);
            }
            (Taken::Keyed(_), Goal::Negotiation | Goal::KeyExchange | Goal::Time | Goal::C1) => {}
            (Taken::Time(accepted), _) => {
                offset_ns = Some(Sample::new(&accepted.header, sent, arrived.at).offset.as_nanos());
            }
        }
        self.ended(load, desk.clock, &answered, &conversation, offset_ns);
        if offset_ns.is_some() && self.spares.len() < SPARE_COUNT_MAX {
            self.spares.push(conversation);
        }
        Ok(())
    }

    /// The key of a server whose chain is trusted. A run judges it each time, as a client does that knows nothing; for
    /// others one chain is judged once.
    fn judged<C: Clock>(
        &mut self,
        negotiated: &Negotiated,
        conversation: &mut Conversation,
        clock: &C,
    ) -> Result<Arc<PublicKey>, Cause> {
        let octets = negotiated.chain().octets();
        if let Some(trusted) = &self.trusted
            && conversation.goal != Goal::Run
            && trusted.chain.octets() == octets
        {
            return Ok(Arc::clone(&trusted.key));
        }
        let begun_ns = clock.monotonic_ns();
        let judged = self.guide.judge.public_key(negotiated);
        conversation.crypto_ns += clock.monotonic_ns() - begun_ns;
        let key = Arc::new(judged.ok_or(Cause::Negotiation)?);
        if conversation.goal != Goal::Run {
            let chain = HeldChain::new(&negotiated.chain());
            self.trusted = Some(Trusted { chain, key: Arc::clone(&key) });
        }
        Ok(key)
    }

    fn next_round<C: Clock>(
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        answered: &Answered,
        mut conversation: Box<Conversation>,
    ) -> Result<(), Cause> {
        let Talk::Negotiation(negotiation) = &mut conversation.talk else { return Err(Cause::Malformed) };
        let size = negotiation.request(&mut load.entropy, desk.out);
        Self::push(load, answered.client, size, conversation, answered.times_ns, true);
        Ok(())
    }

    fn next_exchange<C: Clock>(
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        answered: &Answered,
        mut conversation: Box<Conversation>,
        (negotiated, key): (&Negotiated, &PublicKey),
    ) -> Result<(), Cause> {
        let begun_ns = desk.clock.monotonic_ns();
        let made = negotiated.exchange(key, &mut load.entropy, desk.out);
        let (exchange, size) = made.map_err(|_| Cause::Negotiation)?;
        conversation.crypto_ns += desk.clock.monotonic_ns() - begun_ns;
        conversation.talk = Talk::KeyExchange(exchange);
        Self::push(load, answered.client, size, conversation, answered.times_ns, true);
        Ok(())
    }

    fn next_time<C: Clock>(
        &self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        answered: &Answered,
        mut conversation: Box<Conversation>,
        session: Session,
    ) -> Result<(), Cause> {
        let mut exchange = TimeExchange::idle();
        let now = desk.clock.time_of_day();
        let size = self.guide.ask_in(&mut exchange, &session, now, &mut load.entropy, desk.out);
        conversation.talk = Talk::Time(exchange, Arc::new(session));
        Self::push(load, answered.client, size, conversation, answered.times_ns, true);
        Ok(())
    }

    /// An operation has ended well.
    fn ended<C: Clock>(
        &mut self,
        load: &mut Workload,
        clock: &C,
        answered: &Answered,
        conversation: &Conversation,
        offset_ns: Option<i64>,
    ) {
        let Answered { client: index, transmit, times_ns: [intended_ns, begun_ns], arrived } = *answered;
        let client = &mut load.roster[index];
        let (measured, principal) = (client.measured, conversation.goal.is_principal());
        if !principal {
            client.prepared();
        }
        let latency_ns = arrived.at_ns as i64 - intended_ns as i64;
        load.results.ledger.of(measured, principal).answer(latency_ns, offset_ns);
        if !principal {
            return;
        }
        if measured {
            self.figures.answered(conversation);
        }
        load.note_joinable(index, transmit, begun_ns, clock);
        load.operation_ended(index);
    }
}
