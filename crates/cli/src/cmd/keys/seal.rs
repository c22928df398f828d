//! `authentick keys seal`: the key under which the nodes of a fleet seal what they say to each other.

use std::path::PathBuf;

use authentick_crypto::Entropy;
use authentick_daemon::Config;
use authentick_daemon::fleet::seal_file::SealFile;
use authentick_net::clock::unix_seconds;
use authentick_net::privilege::User;

use super::custody;
use crate::args::{Keys, SealKeys, SealVerb};
use crate::exit::{Exit, Failure};

pub(super) fn run(arguments: &Keys, seal: &SealKeys) -> Result<Exit, Failure> {
    let (path, owner) = place(arguments, seal)?;
    custody::become_owner(&path)?;
    let (now, mut entropy) = (unix_seconds(), Entropy::from_system()?);
    let file = match seal.verb {
        SealVerb::List => SealFile::read(&path)?,
        SealVerb::Generate => {
            let file = SealFile::generate(&path, owner.as_ref(), now, &mut entropy)?;
            log::info!("copy {} to all nodes, for their users alone to read", path.display());
            file
        }
        SealVerb::Rotate => {
            let (file, step) = SealFile::rotate(&path, now, &mut entropy)?;
            log::info!("{step}");
            file
        }
    };
    super::list(&file.shown(now), arguments.json)?;
    Ok(Exit::Done)
}

/// Where the keys are, and to whom the file is to belong if root makes it.
fn place(arguments: &Keys, seal: &SealKeys) -> Result<(PathBuf, Option<User>), Failure> {
    if let Some(file) = &seal.file {
        return Ok((file.clone(), None));
    }
    let config = Config::load(&arguments.config)?;
    let fleet = config.fleet.ok_or_else(|| {
        let file = arguments.config.display();
        let message = format!("{file}: there is no [fleet] in it; name a file of seal keys with --file");
        Exit::Configuration.because(message)
    })?;
    let is_made = matches!(seal.verb, SealVerb::Generate);
    let owner = is_made.then(|| custody::server_user(&config.user, &fleet.seal_keys)).flatten();
    Ok((fleet.seal_keys, owner))
}
