//! Whom a client trusts: what is pinned in a file, the authorities in one, or the system's.

use std::path::Path;

use authentick_client::trust::Anchor;
use authentick_ke::tls::Roots;

use crate::exit::{Exit, Failure};
use crate::files;
use crate::server::server_name;

/// Under ANTP: trust in what is pinned in `file`.
pub(crate) fn pinned(file: &Path) -> Result<Anchor, Failure> {
    Anchor::pinned(&files::read("--pin", file)?).map_err(|error| {
        let problem = format!("neither a certificate nor a public key ({error})");
        files::wrong(file, &problem, "name a PEM file with --pin")
    })
}

/// Under ANTP: trust in authorities for a server of this name.
pub(crate) fn authorities(roots: &Roots, name: &str) -> Result<Anchor, Failure> {
    Anchor::authorities(roots, server_name(name)?)
        .map_err(|bad| Exit::Configuration.because(format!("certificate authorities: {bad}")))
}

/// The authorities in `file`, or the system's if there is none.
pub(crate) fn roots(file: Option<&Path>) -> Result<Roots, Failure> {
    let Some(file) = file else { return from_system() };
    Roots::from_pem(&files::read("--ca", file)?).map_err(|problem| {
        let message = format!("--ca {}: {problem}; name a PEM file of authorities", file.display());
        Exit::Configuration.because(message)
    })
}

fn from_system() -> Result<Roots, Failure> {
    let found = rustls_native_certs::load_native_certs();
    let roots = Roots::from_der(found.certs);
    if roots.count() == 0 {
        let reason = found.errors.first().map_or(String::new(), |error| format!(" ({error})"));
        let message = format!(
            "the system has no authorities{reason}; install ca-certificates, or name a file with --ca"
        );
        return Err(Exit::Configuration.because(message));
    }
    Ok(roots)
}
