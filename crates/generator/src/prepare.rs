//! What clients need before the load: first keys, or sealed state of ANTP.

use authentick_report::load::Cause;

use crate::core::Core;
use crate::limits::{PREPARING_COUNT_MAX, STATE_PATIENCE_NS};
use crate::scheme::{Protocol, dispatch, schemes};
use crate::{Clock, Desk, nanos};

/// What clients of a scheme need before the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provision {
    /// Keys and cookies, from key exchanges.
    Keys,
    /// C1 or a session of ANTP.
    SealedState,
}

impl Provision {
    const fn name(self) -> &'static str {
        match self {
            Provision::Keys => "keys",
            Provision::SealedState => "sealed state of ANTP",
        }
    }

    /// What to ask if clients get none.
    const fn suspicion(self) -> &'static str {
        match self {
            Provision::Keys => "is the key exchange server overloaded?",
            Provision::SealedState => "is the server overloaded, or does it limit the rate?",
        }
    }
}

fn listed(causes: &[(Cause, u64)]) -> String {
    let why: Vec<String> = causes.iter().map(|(cause, count)| format!("{cause}: {count}")).collect();
    why.join(", ")
}

/// How far clients are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Clients that have become ready since the last time.
    pub new_count: u64,
    /// Whether all are.
    pub is_complete: bool,
}

/// Why the load cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unready {
    /// The user stopped it.
    #[error("stopped while clients were getting their {}", match .0 {
        Provision::Keys => "keys",
        Provision::SealedState => "sealed state",
    })]
    Stopped(Provision),
    /// Clients did not get what they need.
    #[error("{count} of {client_count} clients got no {} ({}); {}",
        .provision.name(), listed(.causes), .provision.suspicion())]
    Without {
        /// What that is.
        provision: Provision,
        /// How many have none.
        count: usize,
        /// Of how many.
        client_count: usize,
        /// Why: how many attempts failed for which reason.
        causes: Vec<(Cause, u64)>,
    },
}

/// How far the preparation is.
#[derive(Debug, Default)]
pub(crate) struct Preparation {
    /// The next client to look at.
    next: u32,
    told_count: u64,
    /// When it began, or made progress last.
    since_ns: u64,
}

impl Core {
    /// Clients are to get what they need before the load; `None` if that is nothing. [`Core::prepare`] is called until
    /// it begins nothing more, and then [`Core::readiness`], again and again.
    pub fn begin_preparation(&mut self, now_ns: u64) -> Option<Provision> {
        self.preparation = Preparation { since_ns: now_ns, ..Preparation::default() };
        self.load.settings.scheme.nature().provision
    }

    /// Begins what one client needs; `false` if there is no such client now, or enough is under way. `connection_count`
    /// connections of key exchanges are open.
    pub fn prepare(&mut self, now_ns: u64, connection_count: usize, desk: &mut Desk<'_, impl Clock>) -> bool {
        let Core { speaker, load, preparation, .. } = self;
        while (preparation.next as usize) < load.roster.clients.len() {
            let waiting_count = connection_count + load.flights.count() + load.outbox.count();
            if waiting_count >= PREPARING_COUNT_MAX {
                return false;
            }
            let index = preparation.next;
            preparation.next += 1;
            if schemes!(dispatch, speaker, scheme => scheme.prepare(&mut desk.call(load), index, now_ns)) {
                return true;
            }
        }
        false
    }

    /// How far clients are.
    ///
    /// # Errors
    /// Why the load cannot begin.
    pub fn readiness(&mut self, now_ns: u64, is_stopped: bool) -> Result<Readiness, Unready> {
        let Core { speaker, load, preparation, .. } = self;
        let Some(provision) = load.settings.scheme.nature().provision else {
            return Ok(Readiness { new_count: 0, is_complete: true });
        };
        let clients = &load.roster.clients;
        let ready_count = schemes!(dispatch, speaker, scheme => {
            clients.iter().filter(|client| scheme.is_prepared(client, now_ns)).count()
        });
        let count = clients.len() - ready_count;
        // What still waits would end in a step that did not begin it.
        let is_complete = count == 0 && load.flights.count() == 0;
        let new_count = (ready_count as u64).saturating_sub(preparation.told_count);
        preparation.told_count = ready_count as u64;
        if is_complete {
            return Ok(Readiness { new_count, is_complete });
        }
        if is_stopped {
            return Err(Unready::Stopped(provision));
        }
        let is_through = preparation.next as usize == clients.len();
        let (may_give_up, patience_ns) = match provision {
            Provision::Keys => {
                (is_through && load.exchanges.open_count == 0, 2 * nanos(load.settings.ke_timeout))
            }
            Provision::SealedState => {
                // As long as there is progress, a slow server has its time.
                if new_count > 0 {
                    preparation.since_ns = now_ns;
                }
                (count > 0, STATE_PATIENCE_NS.saturating_add(2 * load.flights.life_ns()))
            }
        };
        if may_give_up && now_ns.saturating_sub(preparation.since_ns) > patience_ns {
            let causes = load.results.ledger.get(true, false).tally().causes.into_iter().collect();
            return Err(Unready::Without { provision, count, client_count: clients.len(), causes });
        }
        if is_through && (may_give_up || provision == Provision::SealedState) {
            preparation.next = 0;
        }
        Ok(Readiness { new_count, is_complete })
    }
}
