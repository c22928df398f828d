//! Whom a client trusts: what is pinned in a file, the authorities in one, or the system's.

use std::path::Path;

use authentick_client::trust::Anchor;
use authentick_ke::tls::{Defect, Roots, certificates, to_pem};

use crate::exit::{Exit, Failure};
use crate::files;
use crate::server::server_name;

/// Under ANTP: trust in what is pinned in `file`.
pub(crate) fn pinned(file: &Path) -> Result<Anchor, Failure> {
    Anchor::pinned(&files::read("--pin", file)?).map_err(|defect| wrong("--pin", file, defect))
}

/// Under ANTP: trust in authorities for a server of this name.
pub(crate) fn authorities(roots: &Roots, name: &str) -> Result<Anchor, Failure> {
    Anchor::authorities(roots, server_name(name)?)
        .map_err(|bad| Exit::Configuration.because(format!("certificate authorities: {bad}")))
}

/// The authorities in `file`, or the system's if there is none.
pub(crate) fn roots(file: Option<&Path>) -> Result<Roots, Failure> {
    roots_and_pem(file).map(|(roots, _)| roots)
}

/// The same, and the authorities in `file` as a PEM text, for other hosts. The file is read once: it may be a pipe.
pub(crate) fn roots_and_pem(file: Option<&Path>) -> Result<(Roots, Option<String>), Failure> {
    let Some(file) = file else { return Ok((from_system()?, None)) };
    let wrong = |defect| wrong("--ca", file, defect);
    let certificates = certificates(&files::read("--ca", file)?).map_err(wrong)?;
    let pem = to_pem(&certificates);
    Ok((Roots::from_certificates(certificates).map_err(wrong)?, Some(pem)))
}

/// A defect of a file that an option names.
fn wrong(option: &str, file: &Path, Defect { problem, remedy }: Defect) -> Failure {
    Exit::Configuration.because(format!("{option} {}: {problem}; {remedy}", file.display()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_reach_agents_whatever_stands_between_them() {
        let key = rcgen::KeyPair::generate().unwrap();
        let authority = || rcgen::CertificateParams::default().self_signed(&key).unwrap().pem();
        let (one, other) = (authority(), authority());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        // Latin-1, and no line end between the two.
        let text = [b"\xef\xbb\xbf# M\xfcnchen\r\n", one.trim_end().as_bytes(), other.as_bytes()].concat();
        std::fs::write(&file, text).unwrap();
        let (roots, pem) = roots_and_pem(Some(&file)).unwrap();
        let pem = pem.unwrap().replace("\r\n", "\n");
        assert_eq!((roots.count(), pem), (2, format!("{one}{other}").replace("\r\n", "\n")));
        std::fs::write(&file, one.replace("CERTIFICATE", "TRUSTED CERTIFICATE")).unwrap();
        let message = roots_and_pem(Some(&file)).unwrap_err().message;
        for part in ["--ca", "ca.pem", "line 1", "TRUSTED CERTIFICATE", "openssl x509 -in"] {
            assert!(message.contains(part), "{part:?} is not in {message}");
        }
    }
}
