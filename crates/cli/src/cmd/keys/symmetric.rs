//! `authentick keys symmetric`: the keys that a server shares with its clients.

use authentick_crypto::Entropy;
use authentick_daemon::Config;
use authentick_daemon::keystore::StateDirectory;
use authentick_daemon::symmetric::edit::{self, EditError, Order};
use authentick_daemon::symmetric::uses::Stored;
use authentick_daemon::symmetric::{Dialect, KeyFile, Keys as Held, notes, shown};
use authentick_net::clock::unix_seconds;
use authentick_proto::symmetric::Caution;

use super::custody;
use crate::args::{Keys, SymmetricKeys, SymmetricVerb};
use crate::exit::{Exit, Failure};
use crate::output;

/// Where the keys are, and what the configuration says of them.
struct Place {
    file: KeyFile,
    dialect: Dialect,
    /// Where the server keeps their uses, if that is known.
    state_directory: Option<StateDirectory>,
}

pub(super) fn run(arguments: &Keys, symmetric: &SymmetricKeys) -> Result<Exit, Failure> {
    let place = place(arguments, symmetric)?;
    custody::become_owner(place.file.path())?;
    let (file, now) = (&place.file, unix_seconds());
    let mut entropy = Entropy::from_system()?;
    let keys = match symmetric.verb {
        SymmetricVerb::List => file.load()?,
        SymmetricVerb::Generate { algorithm, id, salt } => {
            let order = Order { id, algorithm, salt };
            let made = edit::generate(file, order, place.dialect, now, &mut entropy);
            let (keys, id) = made.map_err(|error| unchanged(&place, error))?;
            log::info!("key {id} is made");
            if let Some(caution) = Caution::of(algorithm) {
                output::error(&format!("warning: key {id} is for {algorithm}: {caution}"));
            }
            keys
        }
        SymmetricVerb::Rotate { id, new_id, overlap } => {
            let rotated = edit::rotate(file, id, new_id, overlap.as_secs(), now, &mut entropy);
            let (keys, next) = rotated.map_err(|error| unchanged(&place, error))?;
            let end = notes::time(now.saturating_add(overlap.as_secs()));
            log::info!("key {next} takes the place of key {id}, which is accepted until {end}");
            keys
        }
        SymmetricVerb::Retire { id } => {
            edit::retire(file, id, now).map_err(|error| unchanged(&place, error))?
        }
    };
    show(&place, &keys, now, arguments.json)?;
    if !matches!(symmetric.verb, SymmetricVerb::List) {
        log::info!("a running server takes this over within seconds");
    }
    Ok(Exit::Done)
}

fn place(arguments: &Keys, symmetric: &SymmetricKeys) -> Result<Place, Failure> {
    let named = symmetric.keys_format.into();
    let (file, format, state_directory) = match &symmetric.keys {
        Some(path) => (KeyFile::new(path, named), named, None),
        None => {
            let config = Config::load(&arguments.config)?;
            let Some(configured) = config.symmetric else {
                let message = format!(
                    "{}: there is no [symmetric] in it; name a key file with --keys",
                    arguments.config.display()
                );
                return Err(Exit::Configuration.because(message));
            };
            let format = named.or(configured.format);
            let mut file = KeyFile::new(&configured.keys, format);
            if !configured.keys.exists()
                && let Some(user) = custody::server_user(&config.user, &configured.keys)
            {
                // The server reads it again on SIGHUP, when it is not root any more.
                file = file.with_owner(&user);
            }
            (file, format, Some(config.state))
        }
    };
    let dialect = format.unwrap_or(Dialect::Chrony);
    let state_directory = arguments.state_directory.as_deref().map(StateDirectory::of).or(state_directory);
    Ok(Place { file, dialect, state_directory })
}

fn unchanged(place: &Place, error: EditError) -> Failure {
    match error {
        EditError::File(error) => error.into(),
        error => {
            let path = place.file.path().display();
            Exit::Usage.because(format!("{path}: {error}; {}", error.remedy()))
        }
    }
}

fn show(place: &Place, keys: &Held, now: u64, json: bool) -> Result<(), Failure> {
    let stored = match &place.state_directory {
        None => None,
        Some(directory) => {
            Stored::load(directory.path()).inspect_err(|error| log::warn!("uses are not known: {error}")).ok()
        }
    };
    let path = place.file.path().display();
    for warning in &keys.warnings {
        output::error(&format!("warning: {path}: {warning}"));
    }
    super::list(&shown::all(keys, stored.as_ref(), now), json)
}
