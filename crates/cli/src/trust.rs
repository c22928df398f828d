//! Whom a client trusts: the authorities in a file, or the system's.

use std::path::Path;

use authentick_ke::tls::Roots;

use crate::exit::{Exit, Failure};

/// The authorities in `file`, or the system's if there is none.
pub(crate) fn roots(file: Option<&Path>) -> Result<Roots, Failure> {
    match file {
        Some(file) => from_file(file),
        None => from_system(),
    }
}

fn from_file(file: &Path) -> Result<Roots, Failure> {
    let pem = std::fs::read(file).map_err(|error| {
        let exit = Exit::of_access(&error);
        Failure::new(exit, format!("--ca {}: cannot read: {error}", file.display()))
    })?;
    Roots::from_pem(&pem).map_err(|problem| {
        let message = format!("--ca {}: {problem}; name a PEM file of authorities", file.display());
        Failure::new(Exit::Configuration, message)
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
        return Err(Failure::new(Exit::Configuration, message));
    }
    Ok(roots)
}
