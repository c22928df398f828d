//! `GET /healthz`: whether a server is to be started again. `GET /readyz`: whether clients are to be sent to it.
//!
//! Each says what is wrong, a line for each thing, for who looks after the server.

use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;
use authentick_wire::header::Leap;

use crate::heartbeat::STALE_AFTER;
use crate::rotator::InForce;
use crate::shared::{ExchangeState, Shared};
use crate::validity;

/// What another start may mend: a thread that does not turn. That this is answered shows another one that does. A disk
/// that hangs is not among it, as a server goes on without one, and no start brings it back. Empty if there is nothing.
pub(super) fn ailments(shared: &Shared) -> Vec<String> {
    let age = shared.looked.load().age(shared.clock.boot_ns());
    let is_late = age > STALE_AFTER;
    is_late.then(|| format!("clock: it was last read {} s ago", age.as_secs())).into_iter().collect()
}

/// What keeps clients from getting time or keys, now or soon. Empty if there is nothing.
pub(super) fn obstacles(shared: &Shared) -> Vec<String> {
    let mut found = ailments(shared);
    let age = shared.files.age(shared.clock.boot_ns());
    if age > STALE_AFTER {
        found.push(format!("files: {} has hung for {} s", shared.files.work(), age.as_secs()));
    }
    // A host that only exchanges keys tells nobody the time.
    if !shared.workers.is_empty() && shared.snapshot().leap == Leap::Unsynchronised {
        found.push("clock: it is not synchronised, so clients are told not to trust it".to_owned());
    }
    if let Some(nts) = &shared.nts {
        found.extend(of_keys::<KeySet>("cookie keys", &nts.keys));
        let certificate = nts.exchange.as_ref().map(ExchangeState::certificate);
        found.extend(certificate.and_then(|certificate| validity::problem(&certificate)));
    }
    if let Some(antp) = &shared.antp {
        found.extend(of_keys::<StateKeys>("ANTP's state keys", &antp.keys));
        let loaded = antp.loaded.load();
        found
            .extend(loaded.certificates.iter().filter_map(|(_, certificate)| validity::problem(certificate)));
    }
    found
}

/// Why there are no keys, or none to come after them.
fn of_keys<K>(name: &str, keys: &InForce<K>) -> Option<String> {
    if keys.keys.load().is_none() {
        return Some(format!("{name}: there are none yet"));
    }
    keys.trouble.get().map(|trouble| format!("{name}: {trouble}"))
}
