//! NTS: transfers by clients that keep keys and cookies, and exchange keys when they have none.

use authentick_report::load::Cause;

use super::plain::Plain;
use super::{Begun, Nature, Outdated, Protocol, push_sealed};
use crate::Clock;
use crate::client::Client;
use crate::core::{Missing, Settings};
use crate::exchanges::Exchange;
use crate::prepare::Provision;
use crate::workload::Call;

/// Requests for time under NTS.
#[derive(Debug)]
pub(crate) struct Nts {
    /// Whether each client sends one cookie again and again.
    replays: bool,
}

impl Protocol for Nts {
    const NATURE: Nature = Nature { exchanges_keys: true, provision: Some(Provision::Keys), ..Plain::NATURE };

    fn new(settings: &mut Settings) -> Result<Self, Missing> {
        Ok(Nts { replays: settings.replay_cookie })
    }

    fn is_prepared(&self, client: &Client, _: u64) -> bool {
        client.has_cookie()
    }

    /// A key exchange of a client that has no cookie, if none is under way.
    fn prepare(&mut self, call: &mut Call<'_, impl Clock>, index: u32, now_ns: u64) -> bool {
        let client = &mut call.load.roster[index];
        if !client.wants_keys(now_ns) {
            return false;
        }
        client.exchanging = true;
        let (client, measured, intended_ns) = (Some(index), client.measured, now_ns);
        call.load.counts_of(index, false, now_ns).scheduled += 1;
        call.load.exchanges.want(Exchange { client, measured, principal: false, intended_ns });
        true
    }

    /// Begins a transfer of a client with a cookie; a client found without any starts to exchange keys.
    fn begin(&mut self, call: &mut Call<'_, impl Clock>, measured: bool, intended_ns: u64) -> Begun {
        let mut wanting = None;
        let now_ns = call.clock.monotonic_ns();
        let found = call.load.roster.choose(measured, |client, index| {
            if client.wants_keys(now_ns) {
                wanting.get_or_insert(index);
            }
            client.has_cookie()
        });
        if let Some(client) = wanting {
            self.prepare(call, client, now_ns);
        }
        push_sealed(call, found.ok_or(Cause::NoCookie)?, intended_ns, self.replays)
    }

    fn outdated(&mut self, call: &mut Call<'_, impl Clock>, request: Outdated, now_ns: u64) {
        if call.load.roster[request.client].forget_keys(request.epoch) {
            self.prepare(call, request.client, now_ns);
        }
    }
}
