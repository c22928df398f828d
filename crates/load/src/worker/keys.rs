//! Key exchanges: those that are measured, and those that clients need.

use authentick_ke::client::Established;
use authentick_net::clock::monotonic_ns;
use authentick_report::load::Cause;

use super::Worker;
use crate::connection::{Connection, Progress, Purpose};
use crate::limits::{CONNECTIONS_FROM, FIRST_KEYS_COUNT_MAX, JOINABLE_COUNT_MAX, LINGER_NS, PATIENCE_MAX};
use crate::plan::{Joinable, Scheme, Watch};

impl Worker {
    /// Gets first keys for every client, before any load.
    ///
    /// # Errors
    /// A sentence on why a client has none.
    pub(crate) fn get_first_keys(&mut self, watch: &Watch) -> Result<(), String> {
        if self.plan.scheme != Scheme::Nts {
            return Ok(());
        }
        let give_up_ns = monotonic_ns() + 2 * self.ke_timeout_ns();
        let (mut next, mut told) = (0, 0);
        loop {
            let now_ns = monotonic_ns();
            while self.connections.len() < FIRST_KEYS_COUNT_MAX && next < self.clients.len() {
                if self.clients[next].wants_keys(now_ns) {
                    self.renew_keys(next as u32);
                }
                next += 1;
            }
            self.turn(now_ns, PATIENCE_MAX);
            let without = self.clients.iter().filter(|client| !client.has_cookie()).count();
            let ready = (self.clients.len() - without) as u64;
            watch.add_ready(ready - told);
            told = ready;
            if without == 0 {
                return Ok(());
            }
            if watch.is_stopped() {
                return Err("stopped while clients were getting their keys".to_owned());
            }
            // As long as there is progress, a slow server has its time.
            if next == self.clients.len() && self.connections.iter().all(|(_, one)| one.is_lingering()) {
                if now_ns > give_up_ns {
                    let causes = self.ledger.accompanying.tally().causes;
                    let why: Vec<String> =
                        causes.iter().map(|(cause, count)| format!("{cause}: {count}")).collect();
                    return Err(format!(
                        "{without} of {} clients got no keys ({}); is the key exchange server overloaded?",
                        self.clients.len(),
                        why.join(", ")
                    ));
                }
                next = 0;
            }
        }
    }

    fn ke_timeout_ns(&self) -> u64 {
        u64::try_from(self.plan.ke_timeout.as_nanos()).unwrap_or(u64::MAX / 4)
    }

    /// Begins a key exchange of a client that has no cookie, if none is under way.
    pub(super) fn renew_keys(&mut self, index: u32) {
        let now_ns = monotonic_ns();
        let client = &mut self.clients[index as usize];
        if !client.wants_keys(now_ns) {
            return;
        }
        let measured = client.measured;
        client.exchanging = true;
        self.ledger.of(measured, false).scheduled += 1;
        if let Err(cause) = self.begin_exchange(Purpose::Keys { client: index }, now_ns) {
            self.ledger.of(measured, false).skip(cause);
            self.clients[index as usize].not_established(now_ns);
        }
    }

    /// Begins a key exchange. `true`: it goes on; `false`: it was counted as sent, and has failed already.
    ///
    /// # Errors
    /// The cause for which nothing was sent.
    pub(super) fn begin_exchange(&mut self, purpose: Purpose, intended_ns: u64) -> Result<bool, Cause> {
        let source = self.next_source();
        let Some(ask) = &self.ask else { return Err(Cause::Local) };
        let begun_ns = monotonic_ns();
        let times_ns = [intended_ns, begun_ns, begun_ns.saturating_add(self.ke_timeout_ns())];
        let begun = Connection::begin(self.plan.ke, source, ask, purpose, times_ns);
        let (measured, principal) = self.group_of(purpose);
        if measured && principal && !begun.as_ref().is_err_and(|cause| cause.is_skip()) {
            self.last_sent_ns = begun_ns;
            self.lateness.record(begun_ns.saturating_sub(intended_ns) as i64);
        }
        match begun {
            Ok(connection) => {
                self.connections_due_ns = self.connections_due_ns.min(connection.deadline_ns);
                let key = self.connections.insert(connection);
                let number = CONNECTIONS_FROM + key as u64;
                if self.poller.add(&self.connections[key], number, Connection::INTEREST).is_err() {
                    self.connections.remove(key);
                    return Err(Cause::Local);
                }
                self.ledger.of(measured, principal).sent += 1;
                Ok(true)
            }
            Err(cause) if cause.is_skip() => Err(cause),
            Err(cause) => {
                // The host knows at once that nobody is there: as good as sent.
                let counts = self.ledger.of(measured, principal);
                counts.sent += 1;
                counts.fail(cause);
                self.unestablished(purpose);
                Ok(false)
            }
        }
    }

    /// Whether figures of it count, and whether it is what the scheme is named for.
    fn group_of(&self, purpose: Purpose) -> (bool, bool) {
        match purpose {
            Purpose::Operation { measured, .. } => (measured, true),
            Purpose::Keys { client } => (self.clients[client as usize].measured, false),
        }
    }

    /// Deals with what came of a connection's event.
    fn progressed(&mut self, key: usize, progress: Progress) {
        match progress {
            Progress::Waiting => {
                let connection = &mut self.connections[key];
                if let Some(interest) = connection.new_interest() {
                    let number = CONNECTIONS_FROM + key as u64;
                    // The descriptor is in the set, as it was put there when the connection began.
                    let _ = self.poller.change(&*connection, number, interest);
                }
            }
            Progress::Established(established) => self.established(key, *established),
            Progress::Failed(cause) => self.not_established(key, cause),
            Progress::Closed => drop(self.connections.remove(key)),
        }
    }

    /// A connection is ready.
    pub(super) fn go_on(&mut self, key: usize) {
        if let Some(connection) = self.connections.get_mut(key) {
            let progress = connection.advance();
            self.progressed(key, progress);
        }
    }

    /// Goes on from a key exchange that has brought keys.
    pub(super) fn established(&mut self, key: usize, established: Established) {
        let now_ns = monotonic_ns();
        let connection = &mut self.connections[key];
        connection.deadline_ns = now_ns + LINGER_NS;
        self.connections_due_ns = self.connections_due_ns.min(connection.deadline_ns);
        let (purpose, local) = (connection.purpose, connection.local);
        let (intended_ns, whole_ns) = (connection.intended_ns, now_ns.saturating_sub(connection.begun_ns));
        let (measured, principal) = self.group_of(purpose);
        let counts = self.ledger.of(measured, principal);
        counts.answer(now_ns as i64 - intended_ns as i64, None);
        if measured && self.plan.joinable && self.joinables.len() < JOINABLE_COUNT_MAX {
            let joinable = |source| Joinable { source, transmit: None, whole_ns };
            self.joinables.extend(local.map(joinable));
        }
        self.progressed(key, Progress::Waiting);
        let mut session = established.session;
        if self.plan.alternative_keys {
            session.switch_keys();
        }
        let memory_ns = self.flights.life_ns();
        match purpose {
            Purpose::Keys { client } => self.clients[client as usize].established(session, now_ns, memory_ns),
            Purpose::Operation { measured, client: None } => self.operation_ended(measured),
            Purpose::Operation { client: Some(index), .. } => {
                let Scheme::Mix { transfers, same_cookie } = self.plan.scheme else { return };
                if same_cookie {
                    session.jar.keep_oldest();
                }
                let client = &mut self.clients[index as usize];
                client.established(session, now_ns, memory_ns);
                client.transfers_left = transfers;
                self.follow(index);
            }
        }
    }

    /// Sends the next transfer after a key exchange; if there is none, the operation has ended.
    pub(super) fn follow(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        let measured = client.measured;
        if client.transfers_left == 0 || self.stopped {
            client.transfers_left = 0;
            return self.operation_ended(measured);
        }
        client.transfers_left -= 1;
        self.ledger.of(measured, false).scheduled += 1;
        if let Err(cause) = self.push_transfer(index, monotonic_ns()) {
            self.ledger.of(measured, false).skip(cause);
            self.clients[index as usize].transfers_left = 0;
            self.operation_ended(measured);
        }
    }

    /// A key exchange has failed.
    pub(super) fn not_established(&mut self, key: usize, cause: Cause) {
        let connection = &mut self.connections[key];
        let purpose = connection.purpose;
        connection.deadline_ns = monotonic_ns() + LINGER_NS;
        self.connections_due_ns = self.connections_due_ns.min(connection.deadline_ns);
        match connection.is_lingering() {
            true => self.progressed(key, Progress::Waiting),
            // It never stood, or hangs: there is nothing to wait for.
            false => drop(self.connections.remove(key)),
        }
        let (measured, principal) = self.group_of(purpose);
        self.ledger.of(measured, principal).fail(cause);
        self.unestablished(purpose);
        if let Purpose::Operation { measured, .. } = purpose {
            self.operation_ended(measured);
        }
    }

    /// What a failed key exchange means for its client.
    fn unestablished(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Keys { client } => self.clients[client as usize].not_established(monotonic_ns()),
            Purpose::Operation { client: Some(client), .. } => {
                self.clients[client as usize].exchanging = false;
            }
            Purpose::Operation { client: None, .. } => {}
        }
    }

    /// Ends key exchanges whose time is up, and closes connections that the server leaves open.
    pub(super) fn give_connections_up(&mut self, now_ns: u64) {
        let over: Vec<usize> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.deadline_ns <= now_ns)
            .map(|(key, _)| key)
            .collect();
        for key in over {
            let connection = &self.connections[key];
            match connection.is_lingering() {
                true => drop(self.connections.remove(key)),
                false => self.not_established(key, connection.why_timed_out()),
            }
        }
        let deadlines = self.connections.iter().map(|(_, connection)| connection.deadline_ns);
        self.connections_due_ns = deadlines.min().unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use authentick_crypto::Entropy;
    use authentick_ke::client::Ask;
    use authentick_ke::tls::{Roots, client_config};
    use authentick_wire::ke::AeadId;
    use rustls::pki_types::ServerName;

    use super::*;
    use crate::agent::tests::plan;
    use crate::plan::{Arrivals, Order, Plan};
    use crate::schedule::Share;
    use crate::worker::Setup;

    /// A worker whose key exchanges fail at once: TCP connects to no broadcast address, such as this one of loopback.
    fn failing(scheme: Scheme) -> Worker {
        let ke = "127.255.255.255:4460".parse().unwrap();
        let plan = Plan { scheme, ke, clients: 1, arrivals: Arrivals::Closed { window: 4 }, ..plan() };
        let ask = Ask {
            tls: client_config(Roots::from_der([])),
            server_name: ServerName::try_from("ntp.test").unwrap(),
            aeads: vec![AeadId::SIV_CMAC_256],
        };
        let share = Share { index: 0, count: 1 };
        let entropy = Entropy::from_system().unwrap();
        Worker::new(Setup { plan: Arc::new(plan), ask: Some(ask), guide: None, share, entropy }).unwrap()
    }

    #[test]
    fn exchange_that_fails_at_once_does_not_go_on_and_is_as_good_as_sent() {
        let mut worker = failing(Scheme::Ke);
        let purpose = Purpose::Operation { measured: true, client: None };
        assert_eq!(worker.begin_exchange(purpose, monotonic_ns()), Ok(false));
        let counts = &worker.ledger.principal;
        assert_eq!((counts.sent, counts.failed, counts.count_of(Cause::Unreachable)), (1, 1, 1));
        assert!(worker.connections.is_empty());
        worker.ask = None;
        assert_eq!(worker.begin_exchange(purpose, monotonic_ns()), Err(Cause::Local));
    }

    #[test]
    fn closed_loop_goes_on_with_idle_clients_after_exchanges_that_fail_at_once() {
        for scheme in [Scheme::Ke, Scheme::Mix { transfers: 1, same_cookie: false }] {
            let mut worker = failing(scheme);
            let order = Order { rate_rps: None, background_rps: 0.0, duration: Duration::from_millis(50) };
            let report = worker.step(&order, monotonic_ns(), &Watch::default());
            let tally = &report.part.tally;
            assert!(tally.sent > 4, "{scheme:?}: {} places were used again", tally.sent);
            assert_eq!((tally.scheduled, tally.lost), (tally.sent, tally.sent), "{scheme:?}");
            assert_eq!(tally.causes, [(Cause::Unreachable, tally.sent)].into(), "{scheme:?}");
            assert!(!worker.is_busy() && !worker.clients.iter().any(|client| client.exchanging));
        }
    }
}
