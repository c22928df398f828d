//! What the nodes of a fleet are told from one of them, and how they are.

use std::time::Duration;

use authentick_daemon::Config;
use authentick_daemon::fleet::by_hand::{Hand, Hands};
use authentick_daemon::fleet::{FleetKind, status_of_pages};
use authentick_daemon::keystore::by_hand;
use authentick_load::fetch_text;
use authentick_net::clock::unix_seconds;

use super::custody;
use crate::args::{FleetVerb, Keys};
use crate::exit::{Exit, Failure};
use crate::output;

/// What comes after keys were changed.
const TAKEN: &str =
    "this node's server takes this over within a second, or when it starts, and tells the others";
const WRITES: &str = "this node writes the fleet's keys from now on: say so in fleet.writer of its configuration and \
                      in that of the node that did, and restart both servers";

pub(super) fn run<K: FleetKind>(arguments: &Keys, verb: &FleetVerb) -> Result<Exit, Failure> {
    let (keys, then) = match verb {
        FleetVerb::Revoke { id, wait } => (hand::<K>(arguments)?.revoke(*id, wait.wait)?, TAKEN),
        FleetVerb::TakeOver { without, wait } => {
            (hand::<K>(arguments)?.take_over(without, wait.wait)?, WRITES)
        }
    };
    say(arguments, &keys, then)
}

/// How the fleet is, with keys of every kind that it shares; if `pages` of metrics are named, they say it of cookie
/// keys.
pub(super) fn status(arguments: &Keys, pages: &[String]) -> Result<Exit, Failure> {
    let status = match pages {
        [] => {
            let mut hands = Hands::new(&config(arguments)?, arguments.antp)?;
            hands.path().map_or(Ok(()), custody::become_owner)?;
            hands.status()?
        }
        urls => status_of_pages(urls, fetch_text),
    };
    output::json_or_text(arguments.json, &status, || status.to_string())?;
    Ok(if status.is_good() { Exit::Done } else { Exit::GATE_FAILED })
}

pub(super) fn rotate<K: FleetKind>(arguments: &Keys, drop: bool, wait: Duration) -> Result<Exit, Failure> {
    let keys = hand::<K>(arguments)?.rotate(drop, wait)?;
    say(arguments, &keys, TAKEN)
}

fn say<K: FleetKind>(arguments: &Keys, keys: &K, then: &str) -> Result<Exit, Failure> {
    super::list(&by_hand::shown(keys, unix_seconds()), arguments.json)?;
    log::info!("{then}");
    Ok(Exit::Done)
}

fn hand<K: FleetKind>(arguments: &Keys) -> Result<Hand<K>, Failure> {
    let hand = Hand::new(&config(arguments)?)?;
    custody::become_owner(hand.path())?;
    Ok(hand)
}

fn config(arguments: &Keys) -> Result<Config, Failure> {
    if arguments.state_directory.is_some() {
        return Err(Exit::Usage
            .because("--state-directory says nothing of a fleet; name a configuration with --config"));
    }
    Ok(Config::load(&arguments.config)?)
}
