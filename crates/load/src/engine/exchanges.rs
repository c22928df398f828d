//! Key exchanges that the core wants: one non-blocking connection each.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_generator::{Clock, Exchange, nanos};
use authentick_ke::client::Ask;
use authentick_report::load::Cause;
use slab::Slab;

use super::connection::{Connection, Progress};
use super::sockets::Sockets;
use crate::limits::{CONNECTIONS_FROM, LINGER_NS};

/// Connections of one sending thread.
pub(super) struct Exchanges {
    server: SocketAddr,
    timeout_ns: u64,
    /// What is asked; absent where no keys are exchanged.
    ask: Option<Ask>,
    connections: Slab<Connection>,
    /// No connection times out before this.
    due_ns: u64,
}

impl Exchanges {
    /// None yet, with `server`.
    pub(super) fn new(server: SocketAddr, timeout: Duration, ask: Option<Ask>) -> Self {
        Exchanges { server, timeout_ns: nanos(timeout), ask, connections: Slab::new(), due_ns: u64::MAX }
    }

    /// Open connections, including those whose key exchange has ended.
    pub(super) fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// When the first connection's time is up.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        (!self.connections.is_empty()).then_some(self.due_ns)
    }
}

impl Sockets {
    /// Begins the key exchanges that the core wants.
    pub(super) fn begin_exchanges(&mut self) {
        while let Some(exchange) = self.core.next_exchange() {
            let begun_ns = self.clock.monotonic_ns();
            match self.begin_exchange(exchange, begun_ns) {
                Ok(()) => self.core.exchange_begun(&exchange, begun_ns),
                Err(cause) if cause.is_skip() => self.core.exchange_skipped(&exchange, cause, begun_ns),
                Err(cause) => {
                    // The host knows at once that nobody is there: as good as sent.
                    self.core.exchange_begun(&exchange, begun_ns);
                    self.core.exchange_failed(&exchange, cause, begun_ns);
                }
            }
        }
    }

    /// Begins a key exchange, at `begun_ns`.
    ///
    /// # Errors
    /// The cause for which nothing was sent, or for which it failed at once.
    fn begin_exchange(&mut self, exchange: Exchange, begun_ns: u64) -> Result<(), Cause> {
        let source = self.sources.next(exchange.measured);
        let Exchanges { server, timeout_ns, ask, connections, due_ns } = &mut self.exchanges;
        let ask = ask.as_ref().ok_or(Cause::Local)?;
        let deadline_ns = begun_ns.saturating_add(*timeout_ns);
        let connection = Connection::begin(*server, source, ask, exchange, [begun_ns, deadline_ns])?;
        let place = connections.vacant_entry();
        let number = CONNECTIONS_FROM + place.key() as u64;
        self.poller.add(&connection, number, Connection::INTEREST).map_err(|_| Cause::Local)?;
        place.insert(connection);
        *due_ns = deadline_ns.min(*due_ns);
        Ok(())
    }

    /// Goes on with a connection that is ready.
    pub(super) fn go_on(&mut self, key: usize) {
        let Some(connection) = self.exchanges.connections.get_mut(key) else { return };
        let progress = connection.advance();
        self.clock.exchanged_keys();
        match progress {
            Progress::Waiting => self.watch(key),
            Progress::Established(established) => {
                let Connection { exchange, begun_ns, local, .. } = *connection;
                let (now_ns, session) = (self.clock.monotonic_ns(), established.session);
                self.linger(key, now_ns);
                self.tell(|core, desk| core.established(&exchange, session, (begun_ns, local), now_ns, desk));
            }
            Progress::Failed(cause) => self.failed(key, cause),
            Progress::Closed => drop(self.exchanges.connections.remove(key)),
        }
    }

    /// Watches a connection for what it waits for now.
    fn watch(&mut self, key: usize) {
        let connection = &mut self.exchanges.connections[key];
        if let Some(interest) = connection.new_interest() {
            // The descriptor is in the set, as it was put there when the connection began.
            let _ = self.poller.change(&*connection, CONNECTIONS_FROM + key as u64, interest);
        }
    }

    /// A key exchange has ended: the server has some time to close the connection.
    fn linger(&mut self, key: usize, now_ns: u64) {
        let deadline_ns = now_ns + LINGER_NS;
        self.exchanges.connections[key].deadline_ns = deadline_ns;
        self.exchanges.due_ns = self.exchanges.due_ns.min(deadline_ns);
        self.watch(key);
    }

    fn failed(&mut self, key: usize, cause: Cause) {
        let now_ns = self.clock.monotonic_ns();
        let connection = &self.exchanges.connections[key];
        let exchange = connection.exchange;
        match connection.is_lingering() {
            true => self.linger(key, now_ns),
            // It never stood, or hangs: there is nothing to wait for.
            false => drop(self.exchanges.connections.remove(key)),
        }
        self.core.exchange_failed(&exchange, cause, now_ns);
    }

    /// Ends key exchanges whose time is up, and closes connections that the server leaves open.
    pub(super) fn give_connections_up(&mut self, now_ns: u64) {
        if now_ns < self.exchanges.due_ns {
            return;
        }
        let connections = self.exchanges.connections.iter();
        let over: Vec<usize> =
            connections.filter(|(_, held)| held.deadline_ns <= now_ns).map(|(key, _)| key).collect();
        for key in over {
            let connection = &self.exchanges.connections[key];
            match connection.is_lingering() {
                true => drop(self.exchanges.connections.remove(key)),
                false => self.failed(key, connection.why_timed_out()),
            }
        }
        let deadlines = self.exchanges.connections.iter().map(|(_, connection)| connection.deadline_ns);
        self.exchanges.due_ns = deadlines.min().unwrap_or(u64::MAX);
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
        let begin = |sockets: &mut Sockets| sockets.begin_exchange(exchange, sockets.clock.monotonic_ns());
        assert_eq!(begin(&mut sockets), Err(Cause::Unreachable));
        assert_eq!(sockets.exchanges.connection_count(), 0);
        let order = Order { duration: Duration::from_secs(1), ..Order::default() };
        let now_ns = sockets.clock.monotonic_ns();
        sockets.core.start(&order, now_ns);
        sockets.core.open_turn();
        sockets.tell(|core, desk| assert!(core.begin(now_ns, desk)));
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
        for scheme in
            [Scheme::Ke, Scheme::Mix { transfers: 1, same_cookie: false, background_transfers: None }]
        {
            let mut sockets = failing(scheme);
            let order = Order { duration: Duration::from_millis(50), ..Order::default() };
            let part = sockets.step(&order, sockets.clock.monotonic_ns(), &Watch::default());
            let tally = &part.tally;
            assert!(tally.sent > 4, "{scheme:?}: {} places were used again", tally.sent);
            assert_eq!((tally.scheduled, tally.lost), (tally.sent, tally.sent), "{scheme:?}");
            assert_eq!(tally.causes, [(Cause::Unreachable, tally.sent)].into(), "{scheme:?}");
            assert!(!sockets.core.is_busy() && !sockets.core.is_exchanging());
        }
    }
}
