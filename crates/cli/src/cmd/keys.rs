//! `authentick keys`: the keys of a server, without the server: those of cookies here, symmetric ones in [`symmetric`].

mod custody;
mod symmetric;

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use authentick_crypto::Entropy;
use authentick_daemon::Config;
use authentick_daemon::keystore::{KeyFile, KeyFileError};
use authentick_net::clock::unix_seconds;
use authentick_proto::keyset::{KeySet, Role};
use serde::Serialize;

use crate::args::{Keys, KeysVerb};
use crate::exit::{Exit, Failure};
use crate::output;

/// Retired keys that stay if neither command line nor configuration says how many.
const KEEP: usize = 7;

pub(crate) fn run(arguments: &Keys) -> Result<Exit, Failure> {
    if let KeysVerb::Symmetric(verb) = &arguments.verb {
        return symmetric::run(arguments, verb);
    }
    let (file, configured) = key_file(arguments)?;
    let configured_keep = configured.as_ref().and_then(|config| config.nts.as_ref()).map(|nts| nts.keep);
    if let KeysVerb::Generate = arguments.verb {
        let owner = configured.as_ref().map(|config| custody::server_user(&config.user, &file.path()));
        file.prepare_directory(owner.flatten().as_ref()).map_err(|error| failure(&error))?;
    }
    custody::become_owner(&file.path())?;
    let mut entropy = Entropy::from_system()?;
    let keys = match arguments.verb {
        KeysVerb::List | KeysVerb::Symmetric(_) => load(&file)?,
        KeysVerb::Generate => {
            file.prepare_directory(None).map_err(|error| failure(&error))?;
            if file.load().map_err(|error| failure(&error))?.is_some() {
                let message = format!("{} holds keys already; rotate them instead", file.path().display());
                return Err(Failure::new(Exit::Configuration, message));
            }
            file.load_or_create(unix_seconds(), &mut entropy).map_err(|error| failure(&error))?
        }
        KeysVerb::Rotate { keep } => {
            let _lock = file.lock().map_err(|error| failure(&error))?;
            let keep = keep.or(configured_keep).unwrap_or(KEEP);
            store(&file, load(&file)?.rotate(unix_seconds(), keep, &mut entropy))?
        }
        KeysVerb::Retire { id } => {
            let _lock = file.lock().map_err(|error| failure(&error))?;
            let kept = load(&file)?.without(id);
            store(&file, kept.map_err(|error| Failure::new(Exit::Usage, error.to_string()))?)?
        }
    };
    show(&keys, arguments.json)?;
    if matches!(arguments.verb, KeysVerb::Rotate { .. } | KeysVerb::Retire { .. }) {
        log::info!("a running server takes this over on SIGHUP");
    }
    Ok(Exit::Done)
}

/// The key file, and the configuration, if it was read.
fn key_file(arguments: &Keys) -> Result<(KeyFile, Option<Config>), Failure> {
    if let Some(directory) = &arguments.state_directory {
        return Ok((KeyFile::new(directory), None));
    }
    let config = Config::load(&arguments.config)?;
    Ok((KeyFile::new(&config.state_directory), Some(config)))
}

fn load(file: &KeyFile) -> Result<KeySet, Failure> {
    file.check_directory().map_err(|error| failure(&error))?;
    file.load().map_err(|error| failure(&error))?.ok_or_else(|| {
        let message = format!("{} does not exist; run: authentick keys generate", file.path().display());
        Failure::new(Exit::Configuration, message)
    })
}

fn store(file: &KeyFile, keys: KeySet) -> Result<KeySet, Failure> {
    file.store(&keys).map_err(|error| failure(&error))?;
    Ok(keys)
}

fn failure(error: &KeyFileError) -> Failure {
    let exit = custody::exit(error.is_permission(), error.is_held());
    Failure::new(exit, format!("{error}; {}", error.remedy()))
}

#[derive(Serialize)]
struct Shown {
    id: String,
    role: &'static str,
    created: String,
    age_s: u64,
}

fn show(keys: &KeySet, json: bool) -> Result<(), Failure> {
    let now = unix_seconds();
    let shown: Vec<Shown> = keys
        .keys()
        .map(|(role, key)| Shown {
            id: format!("{:08x}", key.id()),
            role: match role {
                Role::Current => "current",
                Role::Future => "future",
                Role::Retired => "retired",
            },
            created: humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(key.created()))
                .to_string(),
            age_s: now.saturating_sub(key.created()),
        })
        .collect();
    if json {
        return output::json(&shown);
    }
    let mut text = String::new();
    for key in shown {
        let age = humantime::format_duration(Duration::from_secs(key.age_s));
        let line = writeln!(text, "{}  {:<7}  made {}  ({age} ago)", key.id, key.role, key.created);
        line.expect("writing to a string cannot fail");
    }
    output::result(&text);
    Ok(())
}
