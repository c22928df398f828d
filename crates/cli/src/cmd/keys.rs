//! `authentick keys`: the keys of a server, without the server: those of cookies here, symmetric ones in [`symmetric`].

mod custody;
mod symmetric;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_daemon::Config;
use authentick_daemon::keystore::{ATTEMPT_COUNT, Held, KeyStore, StoreError, Stores, Swap};
use authentick_daemon::lock::OF_A_COMMAND;
use authentick_daemon::symmetric::notes;
use authentick_net::clock::unix_seconds;
use authentick_proto::keyset::{KeySet, Role};
use serde::Serialize;

use crate::args::{Keys, KeysVerb};
use crate::exit::{Exit, Failure};
use crate::output;

type Store = dyn KeyStore<KeySet>;

/// Retired keys that stay if neither command line nor configuration says how many.
const KEEP: usize = 7;

pub(crate) fn run(arguments: &Keys) -> Result<Exit, Failure> {
    if let KeysVerb::Symmetric(verb) = &arguments.verb {
        return symmetric::run(arguments, verb);
    }
    let (store, configured) = store(arguments)?;
    let configured_keep = configured.as_ref().and_then(|config| config.nts.as_ref()).map(|nts| nts.keep);
    if let KeysVerb::Generate = arguments.verb {
        let user = |path: &Path| custody::server_user(&configured.as_ref()?.user, path);
        store.prepare(store.path().and_then(user).as_ref())?;
    }
    store.path().map_or(Ok(()), custody::become_owner)?;
    let mut entropy = Entropy::from_system()?;
    let keys = match arguments.verb {
        KeysVerb::List | KeysVerb::Symmetric(_) => load(&*store)?.keys,
        KeysVerb::Generate => {
            store.prepare(None)?;
            if store.load()?.is_some() {
                let message = format!("{} holds keys already; rotate them instead", store.place());
                return Err(Exit::Configuration.because(message));
            }
            store.load_or_create(unix_seconds(), &mut entropy)?.keys
        }
        KeysVerb::Rotate { keep } => {
            let keep = keep.or(configured_keep).unwrap_or(KEEP);
            change(&*store, |keys| Ok(keys.rotate(unix_seconds(), keep, &mut entropy)))?
        }
        KeysVerb::Retire { id } => {
            change(&*store, |keys| keys.without(id).map_err(|error| Exit::Usage.because(error.to_string())))?
        }
    };
    show(&keys, arguments.json)?;
    if matches!(arguments.verb, KeysVerb::Rotate { .. } | KeysVerb::Retire { .. }) {
        log::info!("a running server takes this over on SIGHUP");
    }
    Ok(Exit::Done)
}

/// Where the keys are, and the configuration, if it was read.
fn store(arguments: &Keys) -> Result<(Arc<Store>, Option<Config>), Failure> {
    if let Some(directory) = &arguments.state_directory {
        return Ok((Stores::in_directory(directory).cookie_keys, None));
    }
    let config = Config::load(&arguments.config)?;
    Ok((Stores::of(&config).cookie_keys, Some(config)))
}

fn load(store: &Store) -> Result<Held<KeySet>, Failure> {
    store.check()?;
    store.load()?.ok_or_else(|| {
        let message = format!("{} does not exist; run: authentick keys generate", store.place());
        Exit::Configuration.because(message)
    })
}

/// Puts what `make` makes of the keys in their place; once more, if somebody else has changed them meanwhile.
fn change(
    store: &Store,
    mut make: impl FnMut(&KeySet) -> Result<KeySet, Failure>,
) -> Result<KeySet, Failure> {
    for _ in 0..ATTEMPT_COUNT {
        let old = load(store)?;
        let keys = make(&old.keys)?;
        if let Swap::Done(_) = store.compare_and_swap(Some(old.version), &keys, OF_A_COMMAND)? {
            return Ok(keys);
        }
    }
    Err(StoreError::Contended(store.place()).into())
}

#[derive(Serialize)]
struct Shown {
    id: String,
    role: &'static str,
    created: String,
    age_s: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { id, role, created, age_s } = self;
        let age = humantime::format_duration(Duration::from_secs(*age_s));
        write!(f, "{id}  {role:<7}  made {created}  ({age} ago)")
    }
}

fn show(keys: &KeySet, json: bool) -> Result<(), Failure> {
    let now = unix_seconds();
    let shown = keys.keys().map(|(role, key)| Shown {
        id: format!("{:08x}", key.id()),
        role: match role {
            Role::Current => "current",
            Role::Future => "future",
            Role::Retired => "retired",
        },
        created: notes::time(key.created()),
        age_s: now.saturating_sub(key.created()),
    });
    list(&shown.collect::<Vec<_>>(), json)
}

/// Prints keys: as JSON, or each on a line.
fn list(keys: &[impl Serialize + fmt::Display], json: bool) -> Result<(), Failure> {
    output::json_or_text(json, &keys, || keys.iter().map(|key| format!("{key}\n")).collect())
}
