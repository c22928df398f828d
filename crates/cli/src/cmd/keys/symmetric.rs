//! `authentick keys symmetric`: the keys that a server shares with its clients.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_daemon::Config;
use authentick_daemon::symmetric::edit::{self, EditError, Order};
use authentick_daemon::symmetric::uses::{Stored, limit_of};
use authentick_daemon::symmetric::{Dialect, Foreign, Key, KeyFile, Keys as Held, notes};
use authentick_net::clock::unix_seconds;
use authentick_proto::symmetric::Caution;
use serde::Serialize;

use super::custody;
use crate::args::{Keys, SymmetricKeys, SymmetricVerb};
use crate::exit::{Exit, Failure};
use crate::output;

/// Where the keys are, and what the configuration says of them.
struct Place {
    file: KeyFile,
    dialect: Dialect,
    /// Where the server keeps their uses, if that is known.
    state_directory: Option<PathBuf>,
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
        log::info!("a running server takes this over on SIGHUP");
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
            (file, format, Some(config.state_directory))
        }
    };
    let dialect = format.unwrap_or(Dialect::Chrony);
    let state_directory = arguments.state_directory.clone().or(state_directory);
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

/// A line of the list. What is not known is absent.
#[derive(Default, Serialize)]
struct Shown {
    id: u32,
    state: &'static str,
    #[serde(rename = "type")]
    kind: Option<&'static str>,
    bits: Option<usize>,
    salted: bool,
    line: Option<usize>,
    made: Option<String>,
    age_s: Option<u64>,
    replaced_by: Option<u32>,
    /// From when on the key is not accepted, or when it was removed.
    retires: Option<String>,
    /// Tags made under the key, by clients and the server; the most that they can be unless `uses_exact`.
    uses: Option<u64>,
    uses_exact: Option<bool>,
    uses_limit: Option<u64>,
}

impl Shown {
    fn of(key: &Key, stored: Option<&Stored>, now: u64) -> Self {
        let uses = stored.map(|stored| stored.of(&key.key));
        Shown {
            id: key.id(),
            state: key.standing(now).label(),
            kind: Some(key.algorithm().name()),
            bits: Some(8 * key.key.key().expose().len()),
            salted: key.key.salt().is_some(),
            line: Some(key.line),
            made: key.note.made.map(notes::time),
            age_s: key.note.made.map(|made| now.saturating_sub(made)),
            replaced_by: key.note.replaced_by,
            retires: key.note.retires.map(notes::time),
            uses: uses.map(|uses| uses.count),
            uses_exact: uses.map(|uses| uses.is_exact),
            uses_limit: limit_of(&key.key),
        }
    }

    fn foreign(key: &Foreign) -> Self {
        Shown {
            id: key.id,
            state: "unusable",
            kind: Some(key.name),
            line: Some(key.line),
            ..Shown::default()
        }
    }

    fn retired(note: &notes::Note, now: u64) -> Self {
        Shown {
            id: note.id,
            state: "retired",
            made: note.made.map(notes::time),
            age_s: note.made.map(|made| now.saturating_sub(made)),
            replaced_by: note.replaced_by,
            retires: note.retired.map(notes::time),
            ..Shown::default()
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10}  {:<11}", self.id, self.kind.unwrap_or("-"))?;
        match self.bits {
            Some(bits) => write!(f, "  {bits:>4} bits")?,
            None => write!(f, "  {:>9}", "")?,
        }
        write!(f, "  {:<8}", self.state)?;
        match (&self.made, self.age_s) {
            (Some(made), Some(age)) => {
                let age = humantime::format_duration(Duration::from_secs(age));
                write!(f, "  made {made} ({age} ago)")?;
            }
            _ => write!(f, "  made at an unknown time")?,
        }
        if let Some(uses) = self.uses {
            let most = if self.uses_exact == Some(true) { "" } else { "at most " };
            write!(f, "  used {most}{uses} times")?;
            if let Some(limit) = self.uses_limit {
                write!(f, " of 2^{}", limit.ilog2())?;
            }
        }
        if let Some(next) = self.replaced_by {
            write!(f, "  replaced by {next}")?;
        }
        if let Some(end) = &self.retires {
            let verb = if self.kind.is_some() { "retires" } else { "retired" };
            write!(f, "  {verb} {end}")?;
        }
        Ok(())
    }
}

fn show(place: &Place, keys: &Held, now: u64, json: bool) -> Result<(), Failure> {
    let stored = match &place.state_directory {
        None => None,
        Some(directory) => {
            Stored::load(directory).inspect_err(|error| log::warn!("uses are not known: {error}")).ok()
        }
    };
    let path = place.file.path().display();
    for warning in &keys.warnings {
        output::error(&format!("warning: {path}: {warning}"));
    }
    let held = keys.keys.iter().map(|key| Shown::of(key, stored.as_ref(), now));
    let retired = keys.retired.iter().map(|note| Shown::retired(note, now));
    let foreign = keys.foreign.iter().map(Shown::foreign);
    let shown: Vec<Shown> = held.chain(foreign).chain(retired).collect();
    super::list(&shown, json)
}
