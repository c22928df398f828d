//! How a server does: whether it is to be started again (`GET /healthz`, the watchdog of a service manager), and
//! whether clients are to be sent to it (`GET /readyz`).
//!
//! Each says what is wrong, a line for each thing, for who looks after the server.

use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;
use authentick_wire::header::Leap;

use crate::fleet::FleetState;
use crate::heartbeat::STALE_AFTER;
use crate::metrics::counters::Totals;
use crate::rotator::InForce;
use crate::shared::{ExchangeState, Shared};
use crate::validity;

/// What another start may mend: a thread that does not turn, of those that answer requests for time and that read the
/// clock. Empty if there is nothing.
///
/// A disk that hangs is not among it, as a server goes on without one, and no start brings it back. Nor is the key
/// exchange, which a busy host may leave without a processor for long ([`crate::background`]): another start would lose
/// connections, and not have a processor either.
pub(crate) fn ailments(shared: &Shared) -> Vec<String> {
    let boot_ns = shared.clock.boot_ns();
    let age = shared.looked.load().age(boot_ns);
    let of_clock = (age > STALE_AFTER).then(|| format!("clock: it was last read {} s ago", age.as_secs()));
    let of_workers = shared.workers.iter().enumerate().filter_map(|(index, worker)| {
        let age = worker.age(boot_ns);
        (age > STALE_AFTER).then(|| format!("worker {index}: it has not turned for {} s", age.as_secs()))
    });
    of_clock.into_iter().chain(of_workers).collect()
}

/// What a server tells and has done, in a few words.
pub(crate) fn status(shared: &Shared) -> String {
    let missing: Vec<String> = shared.addresses.missing().map(|served| served.address.to_string()).collect();
    let missing = match missing[..] {
        [] => String::new(),
        _ => format!("; on no interface: {}", missing.join(", ")),
    };
    if shared.workers.is_empty() {
        return format!("exchanging keys{missing}");
    }
    let snapshot = shared.snapshot();
    let clock = match snapshot.leap {
        Leap::Unsynchronised => "not synchronised".to_owned(),
        Leap::None | Leap::Insert | Leap::Delete => format!("stratum {}", snapshot.stratum),
    };
    format!("{clock}; {} requests received{missing}", Totals::of(&shared.workers).received)
}

/// What keeps clients from getting time or keys, now or soon. Empty if there is nothing.
pub(crate) fn obstacles(shared: &Shared) -> Vec<String> {
    let mut found = ailments(shared);
    let age = shared.files.age(shared.clock.boot_ns());
    if age > STALE_AFTER {
        found.push(format!("files: {} has hung for {} s", shared.files.work(), age.as_secs()));
    }
    found.extend(shared.addresses.obstacle());
    // A host that only exchanges keys tells nobody the time.
    if !shared.workers.is_empty() && shared.snapshot().leap == Leap::Unsynchronised {
        found.push("clock: it is not synchronised, so clients are told not to trust it".to_owned());
    }
    if let Some(nts) = &shared.nts {
        found.extend(of_keys::<KeySet>("cookie keys", &nts.keys));
        let certificates = nts.exchange.as_ref().map(ExchangeState::certificates);
        let certificates = certificates.iter().flat_map(|in_force| in_force.certificates());
        found.extend(certificates.filter_map(validity::problem));
    }
    if let Some(antp) = &shared.antp {
        found.extend(of_keys::<StateKeys>("ANTP's state keys", &antp.keys));
        let loaded = antp.loaded.load();
        found
            .extend(loaded.certificates.iter().filter_map(|(_, certificate)| validity::problem(certificate)));
    }
    found
}

/// What an operator has to look at though clients get time and keys, a line each.
pub(crate) fn notes(shared: &Shared) -> Vec<String> {
    shared.fleet.as_ref().map_or_else(Vec::new, FleetState::notes)
}

/// Why there are no keys, or none to come after them.
fn of_keys<K>(name: &str, keys: &InForce<K>) -> Option<String> {
    if keys.keys.load().is_none() {
        return Some(format!("{name}: there are none yet"));
    }
    keys.trouble.get().map(|trouble| format!("{name}: {trouble}"))
}
