//! Key exchanges, each followed by transfers.

use authentick_proto::client::NtsSession;
use authentick_report::load::Cause;

use super::ke::Ke;
use super::{Nature, Protocol, Scheme, open, push_sealed, seal};
use crate::arrivals::Inspected;
use crate::client::Client;
use crate::core::{Missing, Settings};
use crate::exchanges::Exchange;
use crate::workload::Workload;
use crate::{Buffer, Clock, Desk};

/// Key exchanges that a client goes on with.
#[derive(Debug)]
pub(crate) struct Mix {
    /// How many transfers follow a key exchange.
    transfers: u32,
    /// Whether they share one cookie.
    same_cookie: bool,
    /// Whether each client sends one cookie again and again.
    replays: bool,
}

impl Mix {
    /// Sends the next transfer after a key exchange; if there is none, the operation has ended.
    fn follow<C: Clock>(&self, load: &mut Workload, desk: &mut Desk<'_, C>, index: u32) {
        let is_stopped = load.streams.is_stopped();
        let client = &mut load.roster[index];
        let measured = client.measured;
        if client.transfers_left == 0 || is_stopped {
            client.transfers_left = 0;
            return load.streams.operation_ended(measured);
        }
        client.transfers_left -= 1;
        load.results.ledger.of(measured, false).scheduled += 1;
        let now_ns = desk.clock.monotonic_ns();
        if let Err(cause) = push_sealed(load, desk, index, now_ns, self.same_cookie || self.replays) {
            load.results.ledger.of(measured, false).skip(cause);
            load.roster[index].transfers_left = 0;
            load.streams.operation_ended(measured);
        }
    }
}

impl Protocol for Mix {
    const NATURE: Nature = Ke::NATURE;

    fn new(settings: &mut Settings) -> Result<Self, Missing> {
        let Scheme::Mix { transfers, same_cookie } = settings.scheme else { return Err(Missing::Mix) };
        Ok(Mix { transfers, same_cookie, replays: settings.replay_cookie })
    }

    fn begin<C: Clock>(
        &mut self,
        load: &mut Workload,
        _: &mut Desk<'_, C>,
        measured: bool,
        intended_ns: u64,
    ) -> Result<(), Cause> {
        let idle =
            |client: &Client, _| !client.exchanging && client.transfers_left == 0 && client.outstanding == 0;
        let client = load.roster.choose(measured, idle).ok_or(Cause::LocalPort)?;
        load.roster[client].exchanging = true;
        load.exchanges.want(Exchange { client: Some(client), measured, principal: true, intended_ns });
        Ok(())
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

    fn datagram_ended<C: Clock>(
        &mut self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        client: u32,
        _principal: bool,
        _now_ns: u64,
    ) {
        self.follow(load, desk, client);
    }

    fn established<C: Clock>(
        &mut self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        exchange: &Exchange,
        mut session: NtsSession,
        now_ns: u64,
    ) {
        let Some(index) = exchange.client else { return };
        if self.same_cookie {
            session.jar.keep_oldest();
        }
        let memory_ns = load.flights.life_ns();
        let client = &mut load.roster[index];
        client.established(session, now_ns, memory_ns);
        client.transfers_left = self.transfers;
        self.follow(load, desk, index);
    }

    fn not_established(&mut self, load: &mut Workload, exchange: &Exchange, _: u64) {
        if let Some(client) = exchange.client {
            load.roster[client].exchanging = false;
        }
        load.streams.operation_ended(exchange.measured);
    }
}
