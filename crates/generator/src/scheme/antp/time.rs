//! Phase 3: m5 and m6, by clients that have their sessions before the load.

use authentick_proto::antp::client::TimeExchange;
use authentick_report::load::Cause;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;

use super::conversation::{Conversation, Talk};
use super::guide::BOUNDS;
use super::steps::Speech;
use super::{Aim, Begun, Goal, Nature, State};
use crate::Clock;
use crate::prepare::Provision;
use crate::workload::Call;

/// Time requests of ANTP.
#[derive(Debug)]
pub(crate) struct Time;

impl Aim for Time {
    const NATURE: Nature = Nature { provision: Some(Provision::SealedState), ..super::NATURE };
    const GOAL: Goal = Goal::Time;
    const PREPARATION: Option<Goal> = Some(Goal::Session);

    fn has(state: &State, _: u64) -> bool {
        state.session.is_some()
    }

    /// m5 of a client that has a session.
    fn push(speech: &mut Speech, call: &mut Call<'_, impl Clock>, client: u32, intended_ns: u64) -> Begun {
        let (guide, clock, load) = (&speech.guide, call.clock, &mut *call.load);
        let (state, entropy) = (&mut load.roster[client].antp, &mut load.entropy);
        let session = state.session.as_ref().ok_or(Cause::NoCookie)?;
        let mut conversation = Conversation::for_time(speech.spares.pop(), session);
        let Talk::Time(exchange, _) = &mut conversation.talk else { return Err(Cause::Local) };
        let (begun_ns, now) = (clock.monotonic_ns(), clock.time_of_day());
        let size = match guide.replay {
            true => {
                let fixed = state.static_time.get_or_insert_with(|| {
                    let mut fixed = TimeExchange::idle();
                    session.ask_in(
                        &mut fixed,
                        guide.wanted,
                        BOUNDS,
                        now,
                        entropy,
                        &mut [0; DATAGRAM_SIZE_MAX],
                    );
                    fixed
                });
                fixed.again_in(exchange, now, entropy, call.out)
            }
            false => session.ask_in(exchange, guide.wanted, BOUNDS, now, entropy, call.out),
        };
        conversation.crypto_ns = clock.monotonic_ns() - begun_ns;
        load.push(conversation.request(client, [intended_ns, begun_ns]), size, None, false);
        Ok(())
    }
}
