//! From datagram to datagram of an operation.

use std::sync::Arc;

use authentick_crypto::kem::PublicKey;
use authentick_proto::antp::client::{HeldChain, Negotiated, Negotiation, Progress, TimeExchange};
use authentick_proto::client::Sample;
use authentick_report::load::Cause;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;

use super::conversation::{Conversation, Goal, Taken, Talk};
use super::figures::Figures;
use super::guide::{BOUNDS, Guide, Trusted};
use crate::Clock;
use crate::counts::Answered;
use crate::flight::{Flight, Request};
use crate::limits::SPARE_COUNT_MAX;
use crate::scheme::Asked;
use crate::workload::{Arrived, Call};

/// The ANTP operations of a worker's clients.
#[derive(Debug)]
pub(crate) struct Speech {
    pub(super) guide: Arc<Guide>,
    /// What was learnt about the server.
    pub(super) trusted: Option<Trusted>,
    /// Finished time requests, whose memory is reused.
    #[expect(clippy::vec_box, reason = "flights hold boxes")]
    pub(super) spares: Vec<Box<Conversation>>,
    pub(super) figures: Box<Figures>,
}

impl Speech {
    /// Writes the first m1 of an operation.
    pub(super) fn push_negotiation(
        &mut self,
        call: &mut Call<'_, impl Clock>,
        client: u32,
        goal: Goal,
        intended_ns: u64,
    ) {
        let begun_ns = call.clock.monotonic_ns();
        let (guide, load) = (&self.guide, &mut *call.load);
        let entropy = &mut load.entropy;
        // A measured client asks for the whole chain, like a client that comes for the first time.
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
                fixed.again(entropy, call.out)
            }
            false => {
                let mut negotiation = Negotiation::new(guide.offer(held));
                let size = negotiation.request(entropy, call.out);
                (negotiation, size)
            }
        };
        let conversation = Box::new(Conversation::new(goal, Talk::Negotiation(negotiation)));
        load.push(conversation.request(client, [intended_ns, begun_ns]), size, None, false);
    }

    /// A request of an operation was answered: the next one follows, or the operation has succeeded.
    ///
    /// # Errors
    /// Why it has failed.
    pub(super) fn go_on(
        &mut self,
        call: &mut Call<'_, impl Clock>,
        flight: Flight,
        taken: Taken,
        came: Arrived,
    ) -> Result<(), Cause> {
        let Flight { request, sent, sent_ns, .. } = flight;
        let Request { asked: Asked::Antp(mut conversation), client, intended_ns, begun_ns, .. } = request
        else {
            return Ok(());
        };
        let times_ns = [intended_ns, begun_ns];
        conversation.phases_ns[conversation.phase()] += came.at_ns().saturating_sub(sent_ns);
        let mut answered =
            Answered { latency_ns: came.at_ns() as i64 - intended_ns as i64, ..Answered::default() };
        let next_size = match (taken, conversation.goal) {
            (Taken::Chain(Progress::More), Goal::Negotiation) if self.guide.replay => None,
            (Taken::Chain(Progress::More), _) => match &mut conversation.talk {
                Talk::Negotiation(negotiation) => Some(negotiation.request(&mut call.load.entropy, call.out)),
                Talk::KeyExchange(_) | Talk::Time(..) => return Err(Cause::Malformed),
            },
            (Taken::Chain(Progress::Done(negotiated)), goal) => {
                let key = self.judged(&negotiated, &mut conversation, call.clock)?;
                match goal {
                    Goal::Negotiation => None,
                    Goal::C1 => {
                        call.load.roster[client].antp.negotiated(negotiated, came.now.ns);
                        None
                    }
                    Goal::KeyExchange | Goal::Time | Goal::Run | Goal::Session => {
                        Some(next_exchange(call, &mut conversation, &negotiated, &key)?)
                    }
                }
            }
            (Taken::Keyed(session), Goal::Run) => {
                let (mut exchange, now) = (TimeExchange::idle(), call.clock.time_of_day());
                let entropy = &mut call.load.entropy;
                let size = session.ask_in(&mut exchange, self.guide.wanted, BOUNDS, now, entropy, call.out);
                conversation.talk = Talk::Time(exchange, Arc::new(session));
                Some(size)
            }
            (Taken::Keyed(session), Goal::Session) => {
                call.load.roster[client].antp.keyed(session, came.now.ns);
                None
            }
            (Taken::Keyed(_), Goal::Negotiation | Goal::KeyExchange | Goal::Time | Goal::C1) => None,
            (Taken::Time(accepted), _) => {
                answered.set_sample(&Sample::new(&accepted.header, sent, came.at), came.is_sound);
                // Other operations take several datagrams, or public-key work between them.
                let is_single = conversation.goal == Goal::Time;
                answered.from_send_ns = is_single.then(|| came.at_ns() as i64 - sent_ns as i64);
                None
            }
        };
        if let Some(size) = next_size {
            call.load.push(conversation.request(client, times_ns), size, None, true);
            return Ok(());
        }
        self.ended(call, client, &conversation, times_ns, &answered);
        if answered.offset_ns.is_some() && self.spares.len() < SPARE_COUNT_MAX {
            self.spares.push(conversation);
        }
        Ok(())
    }

    /// The key of a server whose chain is trusted. A run judges it each time, as a client does that knows nothing; for
    /// others one chain is judged once.
    fn judged(
        &mut self,
        negotiated: &Negotiated,
        conversation: &mut Conversation,
        clock: &impl Clock,
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

    /// An operation has succeeded.
    fn ended(
        &mut self,
        call: &mut Call<'_, impl Clock>,
        client: u32,
        conversation: &Conversation,
        times_ns: [u64; 2],
        answered: &Answered,
    ) {
        let (principal, [intended_ns, _]) = (conversation.goal.is_principal(), times_ns);
        call.load.answered(client, principal, intended_ns, answered);
        if !principal {
            return call.load.roster[client].prepared();
        }
        if call.load.roster[client].measured && call.load.is_counted(client, intended_ns) {
            self.figures.answered(conversation);
        }
        call.load.note_joinable(client, conversation.token().to_bits(), times_ns, call.clock);
        call.load.operation_ended(client);
    }
}

/// Writes m3 as the next request of an operation; returns its size.
fn next_exchange(
    call: &mut Call<'_, impl Clock>,
    conversation: &mut Conversation,
    negotiated: &Negotiated,
    key: &PublicKey,
) -> Result<usize, Cause> {
    let begun_ns = call.clock.monotonic_ns();
    let made = negotiated.exchange(key, &mut call.load.entropy, call.out);
    let (exchange, size) = made.map_err(|_| Cause::Negotiation)?;
    conversation.crypto_ns += call.clock.monotonic_ns() - begun_ns;
    conversation.talk = Talk::KeyExchange(exchange);
    Ok(size)
}
