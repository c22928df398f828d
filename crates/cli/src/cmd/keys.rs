//! `authentick keys`: the keys of a server, without the server: those of cookies and of ANTP's state here, symmetric
//! ones in [`symmetric`], the seal keys of a fleet in [`seal`], what a fleet is told in [`fleet`], and how one is tried
//! in [`drill`].

mod custody;
mod drill;
mod fleet;
mod seal;
mod symmetric;

use std::fmt;
use std::path::Path;

use authentick_crypto::Entropy;
use authentick_daemon::config::RotatingKeys;
use authentick_daemon::fleet::FleetKind;
use authentick_daemon::fleet::by_hand::Hand;
use authentick_daemon::keystore::{Stores, by_hand};
use authentick_net::clock::unix_seconds;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::{KeySet, KeySetError};
use serde::Serialize;

use crate::args::{Keys, KeysVerb, OwnVerb};
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(arguments: &Keys) -> Result<Exit, Failure> {
    match &arguments.verb {
        KeysVerb::Symmetric(_) | KeysVerb::Seal(_) | KeysVerb::Drill(_) if arguments.antp => {
            Err(Exit::Usage.because("--antp is for ANTP's state keys; leave it out, as this is about others"))
        }
        KeysVerb::Symmetric(verb) => symmetric::run(arguments, verb),
        KeysVerb::Seal(_) if arguments.state_directory.is_some() => Err(Exit::Usage.because(
            "--state-directory has no seal keys in it; leave it out, or name their file with --file",
        )),
        KeysVerb::Seal(verb) => seal::run(arguments, verb),
        KeysVerb::Drill(verb) => drill::run(verb, arguments.json),
        KeysVerb::Status { metrics } => fleet::status(arguments, metrics),
        KeysVerb::Fleet(verb) if arguments.antp => fleet::run::<StateKeys>(arguments, verb),
        KeysVerb::Fleet(verb) => fleet::run::<KeySet>(arguments, verb),
        KeysVerb::Own(verb) if arguments.antp => own::<StateKeys>(arguments, verb),
        KeysVerb::Own(verb) => own::<KeySet>(arguments, verb),
    }
}

/// What is done to keys of one kind where they are kept.
fn own<K: FleetKind>(arguments: &Keys, verb: &OwnVerb) -> Result<Exit, Failure> {
    if let OwnVerb::Rotate { now: true, drop, wait, .. } = verb {
        return fleet::rotate::<K>(arguments, *drop, *wait);
    }
    let (stores, configured) = Stores::find(arguments.state_directory.as_deref(), &arguments.config)?;
    let store = K::store(&stores);
    let settings = configured.as_ref().and_then(K::settings);
    if let OwnVerb::Generate = verb {
        let user = |path: &Path| custody::server_user(&configured.as_ref()?.user, path);
        store.prepare(store.path().and_then(user).as_ref())?;
    }
    let is_first = matches!(verb, OwnVerb::Generate) && settings.is_some_and(RotatingKeys::are_shared);
    let hand = configured.as_ref().filter(|_| is_first).map(Hand::<K>::new).transpose()?;
    store.path().map_or(Ok(()), custody::become_owner)?;
    hand.map_or(Ok(()), |mut hand| hand.check_first())?;
    let (now, mut entropy) = (unix_seconds(), Entropy::from_system()?);
    let taken = || Some("a running server takes this over on SIGHUP".to_owned());
    let (keys, then) = match verb {
        OwnVerb::List => (by_hand::load(&*store)?.keys, None),
        OwnVerb::Generate => (by_hand::generate(&*store, now, &mut entropy)?, None),
        OwnVerb::Rotate { keep, .. } => {
            (by_hand::rotate(&*store, settings, *keep, now, &mut entropy)?, taken())
        }
        OwnVerb::Refresh => {
            let (keys, then) = by_hand::refresh(&*store, settings, now, &mut entropy)?;
            (keys, Some(then))
        }
        OwnVerb::Retire { id } => {
            let wrong = |error: KeySetError| Exit::Usage.because(error.to_string());
            (by_hand::change(&*store, |keys| keys.without(*id).map_err(wrong))?, taken())
        }
    };
    list(&by_hand::shown(&keys, now), arguments.json)?;
    then.iter().for_each(|then| log::info!("{then}"));
    Ok(Exit::Done)
}

/// Prints keys: as JSON, or each on a line.
fn list(keys: &[impl Serialize + fmt::Display], json: bool) -> Result<(), Failure> {
    output::json_or_text(json, &keys, || keys.iter().map(|key| format!("{key}\n")).collect())
}
