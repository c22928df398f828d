//! Phase 2: m3 and m4, by clients that renew their C1 in time.

use authentick_proto::antp::client::KeyExchange;
use authentick_report::load::{Cause, Operation};

use super::conversation::{Conversation, Talk};
use super::steps::Speech;
use super::{Aim, Begun, Goal, Nature, State};
use crate::Clock;
use crate::prepare::Provision;
use crate::workload::Call;

/// Key exchanges of ANTP. Each costs the sending thread public-key work.
#[derive(Debug)]
pub(crate) struct Exchange;

impl Aim for Exchange {
    const NATURE: Nature = Nature {
        principal: Operation::KeyExchange,
        accompanying: Operation::Negotiation,
        provision: Some(Provision::SealedState),
        ..super::NATURE
    };
    const GOAL: Goal = Goal::KeyExchange;
    const PREPARATION: Option<Goal> = Some(Goal::C1);

    fn has(state: &State, now_ns: u64) -> bool {
        state.has_c1(now_ns)
    }

    fn wants(state: &State, now_ns: u64) -> bool {
        state.wants_c1(now_ns)
    }

    /// m3 of a client that has a C1.
    fn push(speech: &mut Speech, call: &mut Call<'_, impl Clock>, client: u32, intended_ns: u64) -> Begun {
        let trusted = speech.trusted.as_ref().ok_or(Cause::NoCookie)?;
        let load = &mut *call.load;
        let (state, entropy) = (&mut load.roster[client].antp, &mut load.entropy);
        if speech.guide.replay {
            state.fix_exchange(&trusted.key, entropy)?;
        }
        let begun_ns = call.clock.monotonic_ns();
        let (exchange, size): (KeyExchange, usize) = state.exchange(&trusted.key, entropy, call.out)?;
        let mut conversation = Box::new(Conversation::new(Self::GOAL, Talk::KeyExchange(exchange)));
        conversation.crypto_ns = call.clock.monotonic_ns() - begun_ns;
        load.push(conversation.request(client, [intended_ns, begun_ns]), size, None, false);
        Ok(())
    }
}
