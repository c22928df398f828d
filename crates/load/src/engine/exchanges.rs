//! Key exchanges that the core wants: a connection each, which nobody waits for.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_generator::{Clock, Core, Desk, Exchange};
use authentick_ke::client::{Ask, Established};
use authentick_net::poller::Poller;
use authentick_report::load::Cause;
use slab::Slab;

use super::connection::{Connection, Progress};
use super::sockets::{HostClock, Sockets};
use crate::limits::{CONNECTIONS_FROM, LINGER_NS};

/// Connections of one sending thread.
pub(super) struct Exchanges {
    server: SocketAddr,
    timeout_ns: u64,
    /// What is asked; absent where no keys are exchanged.
    ask: Option<Ask>,
    connections: Slab<Connection>,
    /// No connection's time is up before this.
    due_ns: u64,
}

impl Exchanges {
    /// None yet, with `server`.
    pub(super) fn new(server: SocketAddr, timeout: Duration, ask: Option<Ask>) -> Self {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX / 4);
        Exchanges { server, timeout_ns, ask, connections: Slab::new(), due_ns: u64::MAX }
    }

    /// Connections that are open, those among them whose key exchange has ended.
    pub(super) fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// When the first connection's time is up.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        (!self.connections.is_empty()).then_some(self.due_ns)
    }

    /// Begins a key exchange from `source`, at `begun_ns`.
    ///
    /// # Errors
    /// The cause for which nothing was sent, or for which it failed at once.
    fn begin(
        &mut self,
        exchange: Exchange,
        source: Option<std::net::IpAddr>,
        begun_ns: u64,
        poller: &Poller,
    ) -> Result<(), Cause> {
        let Some(ask) = &self.ask else { return Err(Cause::Local) };
        let deadline_ns = begun_ns.saturating_add(self.timeout_ns);
        let connection = Connection::begin(self.server, source, ask, exchange, [begun_ns, deadline_ns])?;
        let key = self.connections.insert(connection);
        let number = CONNECTIONS_FROM + key as u64;
        if poller.add(&self.connections[key], number, Connection::INTEREST).is_err() {
            self.connections.remove(key);
            return Err(Cause::Local);
        }
        self.due_ns = self.due_ns.min(deadline_ns);
        Ok(())
    }

    /// Goes on with a connection that is ready.
    fn go_on(&mut self, key: usize, core: &mut Core, poller: &Poller, desk: &mut Desk<'_, HostClock>) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        match connection.advance() {
            Progress::Waiting => self.watch(key, poller),
            Progress::Established(established) => self.established(key, *established, core, poller, desk),
            Progress::Failed(cause) => self.failed(key, cause, core, poller, desk),
            Progress::Closed => drop(self.connections.remove(key)),
        }
    }

    /// Watches a connection for what it waits for now.
    fn watch(&mut self, key: usize, poller: &Poller) {
        let connection = &mut self.connections[key];
        if let Some(interest) = connection.new_interest() {
            let number = CONNECTIONS_FROM + key as u64;
            // The descriptor is in the set, as it was put there when the connection began.
            let _ = poller.change(&*connection, number, interest);
        }
    }

    /// A key exchange has ended: the server has some time to close the connection.
    fn linger(&mut self, key: usize, now_ns: u64, poller: &Poller) {
        let deadline_ns = now_ns + LINGER_NS;
        self.connections[key].deadline_ns = deadline_ns;
        self.due_ns = self.due_ns.min(deadline_ns);
        self.watch(key, poller);
    }

    fn established(
        &mut self,
        key: usize,
        established: Established,
        core: &mut Core,
        poller: &Poller,
        desk: &mut Desk<'_, HostClock>,
    ) {
        let now_ns = desk.clock.monotonic_ns();
        let Connection { exchange, begun_ns, local, .. } = self.connections[key];
        self.linger(key, now_ns, poller);
        core.established(&exchange, established.session, (begun_ns, local), now_ns, desk);
    }

    fn failed(
        &mut self,
        key: usize,
        cause: Cause,
        core: &mut Core,
        poller: &Poller,
        desk: &mut Desk<'_, HostClock>,
    ) {
        let now_ns = desk.clock.monotonic_ns();
        let exchange = self.connections[key].exchange;
        match self.connections[key].is_lingering() {
            true => self.linger(key, now_ns, poller),
            // It never stood, or hangs: there is nothing to wait for.
            false => drop(self.connections.remove(key)),
        }
        core.exchange_failed(&exchange, cause, now_ns);
    }

    /// Ends key exchanges whose time is up, and closes connections that the server leaves open.
    fn give_up(&mut self, now_ns: u64, core: &mut Core, poller: &Poller, desk: &mut Desk<'_, HostClock>) {
        if now_ns < self.due_ns {
            return;
        }
        let is_over = |connection: &Connection| connection.deadline_ns <= now_ns;
        let over: Vec<usize> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_over(connection))
            .map(|(key, _)| key)
            .collect();
        for key in over {
            let connection = &self.connections[key];
            match connection.is_lingering() {
                true => drop(self.connections.remove(key)),
                false => self.failed(key, connection.why_timed_out(), core, poller, desk),
            }
        }
        let deadlines = self.connections.iter().map(|(_, connection)| connection.deadline_ns);
        self.due_ns = deadlines.min().unwrap_or(u64::MAX);
    }
}

impl Sockets {
    /// Begins the key exchanges that the core wants.
    pub(super) fn begin_exchanges(&mut self) {
        while let Some(exchange) = self.core.next_exchange() {
            let source = self.sources.next();
            self.with_connections(|exchanges, core, poller, desk| {
                let begun_ns = desk.clock.monotonic_ns();
                match exchanges.begin(exchange, source, begun_ns, poller) {
                    Ok(()) => core.exchange_begun(&exchange, begun_ns),
                    Err(cause) if cause.is_skip() => core.exchange_skipped(&exchange, cause, begun_ns),
                    Err(cause) => {
                        // The host knows at once that nobody is there: as good as sent.
                        core.exchange_begun(&exchange, begun_ns);
                        core.exchange_failed(&exchange, cause, begun_ns);
                    }
                }
            });
        }
    }

    /// A connection is ready.
    pub(super) fn go_on(&mut self, key: usize) {
        self.with_connections(|exchanges, core, poller, desk| exchanges.go_on(key, core, poller, desk));
    }

    /// Gives key exchanges up whose time is over.
    pub(super) fn give_connections_up(&mut self, now_ns: u64) {
        self.with_connections(|exchanges, core, poller, desk| {
            exchanges.give_up(now_ns, core, poller, desk);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use authentick_crypto::Entropy;
    use authentick_generator::schedule::Share;
    use authentick_ke::client::Ask;
    use authentick_ke::tls::{Roots, client_config};
    use authentick_wire::ke::AeadId;
    use rustls::pki_types::ServerName;

    use super::*;
    use crate::agent::tests::plan;
    use crate::engine::Setup;
    use crate::plan::{Arrivals, Order, Plan, Scheme, Watch};

    /// A sending thread whose key exchanges fail at once: TCP connects to no broadcast address, such as this one of
    /// loopback.
    fn failing(scheme: Scheme) -> Sockets {
        let ke = "127.255.255.255:4460".parse().unwrap();
        let plan = Plan { scheme, ke, clients: 1, arrivals: Arrivals::Closed { window: 4 }, ..plan() };
        let ask = Ask {
            tls: client_config(Roots::from_der([])),
            server_name: ServerName::try_from("ntp.test").unwrap(),
            aeads: vec![AeadId::SIV_CMAC_256],
        };
        let share = Share { index: 0, count: 1 };
        let entropy = Entropy::from_system().unwrap();
        Sockets::new(Setup { plan: Arc::new(plan), ask: Some(ask), guide: None, share, entropy }).unwrap()
    }

    #[test]
    fn exchange_that_fails_at_once_does_not_go_on_and_is_as_good_as_sent() {
        let mut sockets = failing(Scheme::Ke);
        let exchange = Exchange { client: None, measured: true, principal: true, intended_ns: 0 };
        let begin = |sockets: &mut Sockets| {
            sockets.with_connections(|exchanges, _, poller, desk| {
                exchanges.begin(exchange, None, desk.clock.monotonic_ns(), poller)
            })
        };
        assert_eq!(begin(&mut sockets), Err(Cause::Unreachable));
        assert_eq!(sockets.exchanges.connection_count(), 0);
        let order = Order { rate_rps: None, background_rps: 0.0, duration: Duration::from_secs(1) };
        let now_ns = sockets.clock.monotonic_ns();
        sockets.core.start(&order, now_ns);
        sockets.core.open_turn();
        sockets.with_connections(|_, core, _, desk| assert!(core.begin(now_ns, desk)));
        sockets.begin_exchanges();
        assert!(!sockets.core.is_busy());
        assert_eq!(sockets.core.progress(), [1, 0, 1]);
        let tally = sockets.core.finish(0).tally;
        assert_eq!((tally.sent, tally.lost, &tally.causes), (1, 1, &[(Cause::Unreachable, 1)].into()));
        sockets.exchanges.ask = None;
        assert_eq!(begin(&mut sockets), Err(Cause::Local));
    }

    #[test]
    fn closed_loop_goes_on_with_idle_clients_after_exchanges_that_fail_at_once() {
        for scheme in [Scheme::Ke, Scheme::Mix { transfers: 1, same_cookie: false }] {
            let mut sockets = failing(scheme);
            let order = Order { rate_rps: None, background_rps: 0.0, duration: Duration::from_millis(50) };
            let report = sockets.step(&order, sockets.clock.monotonic_ns(), &Watch::default());
            let tally = &report.part.tally;
            assert!(tally.sent > 4, "{scheme:?}: {} places were used again", tally.sent);
            assert_eq!((tally.scheduled, tally.lost), (tally.sent, tally.sent), "{scheme:?}");
            assert_eq!(tally.causes, [(Cause::Unreachable, tally.sent)].into(), "{scheme:?}");
            assert!(!sockets.core.is_busy() && !sockets.core.is_exchanging());
        }
    }
}
