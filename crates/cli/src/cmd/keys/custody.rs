//! Whose rights `authentick keys` uses where it is run as root: those of whoever can change what a path leads to. For
//! that user's directory root goes no further than the user itself could.

use std::path::Path;

use authentick_daemon::custody::{Custodian, custodian};
use authentick_net::privilege::{self, User};

use crate::exit::{Exit, Failure};

/// Makes the process the user in whose hands `path` is, for good, if it is root and root alone does not decide what the
/// path leads to.
pub(super) fn become_owner(path: &Path) -> Result<(), Failure> {
    if !privilege::is_root() {
        return Ok(());
    }
    let shown = path.display();
    let custodian = custodian(path)
        .map_err(|error| Exit::of_access(&error).because(format!("{shown}: cannot look at it: {error}")))?;
    let (uid, gid, at) = match custodian {
        Custodian::Root => return Ok(()),
        Custodian::User { uid, gid, at } => (uid, gid, at),
        Custodian::Many(at) => {
            let at = at.display();
            let message = format!(
                "{shown}: not touched as root, as others may write to {at}; run: chmod go-w {at}, or run this as the \
                 user that the server runs as"
            );
            return Err(Exit::Configuration.because(message));
        }
    };
    let user = privilege::find_user_by_id(uid)?.unwrap_or_else(|| User::nameless(uid, gid));
    user.become_user().map_err(|error| {
        let (name, at) = (&user.name, at.display());
        Exit::Internal.because(format!("cannot become {name}, to whom {at} belongs: {error}"))
    })?;
    log::debug!("now {}, to whom {} belongs", user.name, at.display());
    Ok(())
}

/// The user that the server becomes, if it is started as root: who is to own what root makes at `path`.
pub(super) fn server_user(name: &str, path: &Path) -> Option<User> {
    if !privilege::is_root() || name == "root" {
        return None;
    }
    let user = privilege::find_user(name).ok().flatten();
    if user.is_none() {
        log::warn!("there is no user {name} yet, who is to own {}", path.display());
    }
    user
}
