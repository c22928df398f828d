//! ntpd-rs's `ntp-daemon`, as a server without sources: it reads the clock and has nothing to steer it by.

use std::path::Path;

use super::server::{Launch, Role, write};
use super::{Program, Scheme, Search, Setup, UNKNOWN_VERSION};
use crate::Error;

/// The AEADs of its NTS by their numbers: AES-SIV-CMAC-256 and -512.
const AEADS: [u16; 2] = [15, 17];

/// ntpd-rs on this machine.
#[derive(Clone, Debug)]
pub struct NtpdRs {
    daemon: Program,
    version: String,
}

impl NtpdRs {
    pub(super) fn find(search: &Search<'_>) -> Result<Self, Error> {
        let daemon = search.program("ntpd-rs", "bin/ntp-daemon")?;
        let text = daemon.say(&["--version"]).map_err(|error| Error::unavailable("no ntpd-rs", &error))?;
        let version = text.trim().strip_prefix("ntp-daemon ").unwrap_or(UNKNOWN_VERSION).to_owned();
        Ok(NtpdRs { daemon, version })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn serves(&self, scheme: Scheme) -> Result<(), String> {
        match scheme {
            Scheme::Plain => Ok(()),
            Scheme::Mac(_) => Err("has no symmetric keys".to_owned()),
            Scheme::Nts(aead) if AEADS.contains(&aead) => Ok(()),
            Scheme::Nts(aead) => Err(format!("has no AEAD {aead}, but 15 and 17")),
            Scheme::Antp => Err("has no ANTP".to_owned()),
        }
    }

    pub(super) fn launch(&self, setup: &Setup<'_>, folder: &Path) -> Result<Vec<Launch>, Error> {
        let config = folder.join("ntp.toml");
        write(&config, &NtpdRs::configuration(setup))?;
        let mut command = self.daemon.command(&setup.place);
        command.arg("-c").arg(config);
        Ok(vec![Launch { command, role: Role::All }])
    }

    /// The configuration of a server of stratum 1; with NTS if there is a certificate.
    #[must_use]
    pub fn configuration(setup: &Setup<'_>) -> String {
        let mut text = format!(
            "[observability]\nlog-level = \"info\"\n[synchronization]\nlocal-stratum = 1\n\
             [[server]]\nlisten = \"{}\"\n",
            setup.ntp()
        );
        if let Some(identity) = setup.identity {
            text += &format!(
                "[[nts-ke-server]]\nlisten = \"{}\"\nntp-port = {}\n\
                 certificate-chain-path = {:?}\nprivate-key-path = {:?}\n[keyset]\nstale-key-count = 1\n",
                setup.ke(),
                setup.ports.ntp,
                identity.chain,
                identity.key
            );
        }
        text
    }
}
