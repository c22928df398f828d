//! NTS: transfers by clients that keep keys and cookies, and exchange keys when they have none.

use authentick_proto::client::NtsSession;
use authentick_report::load::Cause;

use super::plain::Plain;
use super::{Nature, Protocol, open, push_sealed, seal};
use crate::arrivals::Inspected;
use crate::client::Client;
use crate::core::{Missing, Settings};
use crate::exchanges::Exchange;
use crate::prepare::Provision;
use crate::workload::Workload;
use crate::{Buffer, Clock, Desk};

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

    fn prepare<C: Clock>(
        &mut self,
        load: &mut Workload,
        _: &mut Desk<'_, C>,
        client: u32,
        now_ns: u64,
    ) -> bool {
        load.renew_keys(client, now_ns)
    }

    /// Of a client with a cookie; on the way, one without any starts to exchange keys.
    fn begin<C: Clock>(
        &mut self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        measured: bool,
        intended_ns: u64,
    ) -> Result<(), Cause> {
        let mut wanting = None;
        let now_ns = desk.clock.monotonic_ns();
        let found = load.roster.choose(measured, |client, index| {
            if client.wants_keys(now_ns) {
                wanting.get_or_insert(index);
            }
            client.has_cookie()
        });
        if let Some(client) = wanting {
            load.renew_keys(client, now_ns);
        }
        push_sealed(load, desk, found.ok_or(Cause::NoCookie)?, intended_ns, self.replays)
    }

    fn finish<'a>(&self, load: &Workload, buffers: impl Iterator<Item = &'a mut Buffer>) {
        seal(load.outbox.pending(), &load.roster, buffers);
    }

    fn verify<'a, C: Clock>(
        &self,
        load: &Workload,
        datagrams: impl Iterator<Item = &'a mut [u8]>,
        inspected: &mut [Option<Inspected>],
        _: &C,
    ) -> u64 {
        open(&load.roster, datagrams, inspected);
        0
    }

    fn outdated<C: Clock>(
        &mut self,
        load: &mut Workload,
        _: &mut Desk<'_, C>,
        client: u32,
        sent_ns: u64,
        now_ns: u64,
    ) {
        if load.roster[client].forget_keys(sent_ns, now_ns) {
            load.renew_keys(client, now_ns);
        }
    }

    fn established<C: Clock>(
        &mut self,
        load: &mut Workload,
        _: &mut Desk<'_, C>,
        exchange: &Exchange,
        session: NtsSession,
        now_ns: u64,
    ) {
        let memory_ns = load.flights.life_ns();
        if let Some(client) = exchange.client {
            load.roster[client].established(session, now_ns, memory_ns);
        }
    }

    fn not_established(&mut self, load: &mut Workload, exchange: &Exchange, now_ns: u64) {
        if let Some(client) = exchange.client {
            load.roster[client].not_established(now_ns);
        }
    }
}
