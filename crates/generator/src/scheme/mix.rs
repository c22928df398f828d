//! Key exchanges, each followed by transfers.

use authentick_report::load::Cause;

use super::ke::Ke;
use super::{Begun, Nature, Protocol, Scheme, push_sealed};
use crate::client::Client;
use crate::core::{Missing, Settings};
use crate::exchanges::Exchange;
use crate::workload::Call;
use crate::{Clock, nanos};

/// Key exchanges whose keys a client uses.
#[derive(Debug)]
pub(crate) struct Mix {
    /// How many transfers follow a key exchange of a measured client, and one of the background.
    transfers: u32,
    background_transfers: u32,
    /// Whether they share one cookie.
    same_cookie: bool,
    /// Whether each client sends one cookie again and again.
    replays: bool,
}

impl Mix {
    /// Sends the next transfer after a key exchange; if there is none, the operation has ended. None begins later than
    /// a timeout after the step's end: so long the last answers of other schemes are waited for too.
    fn follow(&self, call: &mut Call<'_, impl Clock>, index: u32) {
        let now_ns = call.clock.monotonic_ns();
        let grace_ns = nanos(call.load.settings.timeout);
        let is_over = call.load.streams.has_ended_for(now_ns, grace_ns);
        let client = &mut call.load.roster[index];
        if client.transfers_left == 0 || is_over {
            client.transfers_left = 0;
            return call.load.operation_ended(index);
        }
        client.transfers_left -= 1;
        call.load.counts_of(index, false, now_ns).scheduled += 1;
        if let Err(cause) = push_sealed(call, index, now_ns, self.same_cookie || self.replays) {
            call.load.counts_of(index, false, now_ns).skip(cause);
            call.load.roster[index].transfers_left = 0;
            call.load.operation_ended(index);
        }
    }
}

impl Protocol for Mix {
    const NATURE: Nature = Ke::NATURE;

    fn new(settings: &mut Settings) -> Result<Self, Missing> {
        let Scheme::Mix { transfers, same_cookie, background_transfers } = settings.scheme else {
            unreachable!("the object is made of this scheme alone");
        };
        let background_transfers = background_transfers.unwrap_or(transfers);
        Ok(Mix { transfers, background_transfers, same_cookie, replays: settings.replay_cookie })
    }

    fn begin(&mut self, call: &mut Call<'_, impl Clock>, measured: bool, intended_ns: u64) -> Begun {
        let idle =
            |client: &Client, _| !client.exchanging && client.transfers_left == 0 && client.outstanding == 0;
        let client = match measured || self.background_transfers > 0 {
            true => Some(call.load.roster.choose_idle(measured, idle).ok_or(Cause::LocalPort)?),
            // Nobody uses the keys.
            false => None,
        };
        if let Some(client) = client {
            call.load.roster[client].exchanging = true;
        }
        call.load.exchanges.want(Exchange { client, measured, principal: true, intended_ns });
        Ok(())
    }

    fn datagram_ended(&mut self, call: &mut Call<'_, impl Clock>, client: u32, _: bool, _: u64) {
        self.follow(call, client);
    }

    fn established(&mut self, call: &mut Call<'_, impl Clock>, exchange: &Exchange) {
        let Some(index) = exchange.client else {
            return call.load.streams.operation_ended(exchange.measured);
        };
        let client = &mut call.load.roster[index];
        if let Some(session) = client.session.as_mut().filter(|_| self.same_cookie) {
            session.jar.keep_oldest();
        }
        client.transfers_left = if exchange.measured { self.transfers } else { self.background_transfers };
        self.follow(call, index);
    }
}
