//! chrony's `chronyd`, as a server that leaves the clock alone (`-x`).

use std::path::Path;

use authentick_crypto::mac::MacAlgorithm;
use authentick_net::privilege::is_root;

use super::server::{Launch, Role, write};
use super::{Program, Scheme, Search, Setup, UNKNOWN_VERSION};
use crate::Error;

/// The AEADs of its NTS by their numbers: AES-SIV-CMAC-256, and AES-128-GCM-SIV.
const AEAD_SIV: u16 = 15;
const AEAD_GCM_SIV: u16 = 30;
/// A part of the name of nettle's function for the latter. Who calls it has it in the file.
const GCM_SIV_CALL: &[u8] = b"siv_gcm_aes128";
/// The version that brought the latter, in chrony's own list of changes.
const GCM_SIV_SINCE: (u32, u32) = (4, 4);

/// chrony on this machine.
#[derive(Clone, Debug)]
pub struct Chrony {
    daemon: Program,
    version: String,
    has_nts: bool,
    /// Why it has no AES-128-GCM-SIV, if so.
    without_gcm_siv: Option<String>,
    /// Types of keys that it takes, or why that is not known.
    keys: Result<Vec<MacAlgorithm>, String>,
}

impl Chrony {
    pub(super) fn find(search: &Search<'_>) -> Result<Self, Error> {
        let daemon = search.program("chrony", "usr/sbin/chronyd")?;
        if !is_root() {
            return Err(Error::unavailable("no chrony", &"chronyd starts as root only; run as root"));
        }
        let text = daemon.say(&["--version"]).map_err(|error| Error::unavailable("no chrony", &error))?;
        let (version, features) = parse(&text).unwrap_or((UNKNOWN_VERSION, ""));
        let has_call = daemon.contains(GCM_SIV_CALL);
        let without_gcm_siv = match version_pair(version) {
            Some(pair) if pair < GCM_SIV_SINCE => Some("has no AEAD 30, which came with 4.4".to_owned()),
            _ if has_call => None,
            _ => Some("was built without AEAD 30: it does not call nettle's AES-GCM-SIV".to_owned()),
        };
        Ok(Chrony {
            has_nts: features.contains("+NTS"),
            without_gcm_siv,
            keys: key_types(search),
            version: version.to_owned(),
            daemon,
        })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn serves(&self, scheme: Scheme) -> Result<(), String> {
        match scheme {
            Scheme::Plain => Ok(()),
            Scheme::Mac(algorithm) if self.keys.as_ref().map_err(Clone::clone)?.contains(&algorithm) => {
                Ok(())
            }
            Scheme::Mac(algorithm) => Err(format!("takes no keys of type {}", algorithm.name())),
            Scheme::Nts(_) if !self.has_nts => Err("was built without NTS".to_owned()),
            Scheme::Nts(AEAD_SIV) => Ok(()),
            Scheme::Nts(AEAD_GCM_SIV) => self.without_gcm_siv.clone().map_or(Ok(()), Err),
            Scheme::Nts(aead) => Err(format!("has no AEAD {aead}")),
            Scheme::Antp => Err("has no ANTP".to_owned()),
        }
    }

    pub(super) fn launch(&self, setup: &Setup<'_>, folder: &Path) -> Result<Vec<Launch>, Error> {
        let (config, keys) = (folder.join("chrony.conf"), folder.join("keys"));
        let taken = |key: &&super::Key| self.serves(Scheme::Mac(key.algorithm)).is_ok();
        write(&keys, &setup.keys.iter().filter(taken).map(super::Key::line).collect::<String>())?;
        let own = format!(
            "{}bindaddress {}\nkeyfile {}\ncmdport 0\nbindcmdaddress /\npidfile {}\nuser root\n",
            Chrony::server_lines(setup, self.has_nts),
            setup.address,
            keys.display(),
            folder.join("pid").display(),
        );
        write(&config, &own)?;
        let mut command = self.daemon.command(&setup.place);
        command.args(["-x", "-d", "-f"]).arg(config);
        Ok(vec![Launch { command, role: if self.has_nts { Role::All } else { Role::Time } }])
    }

    /// The lines of a configuration that make a server of stratum 1, each with its end; with NTS if there is a
    /// certificate.
    #[must_use]
    pub fn server_lines(setup: &Setup<'_>, with_nts: bool) -> String {
        let mut lines = format!("local stratum 1\nallow\nport {}\n", setup.ports.ntp);
        if let Some(identity) = setup.identity.filter(|_| with_nts) {
            lines += &format!(
                "ntsport {}\nntsserverkey {}\nntsservercert {}\n",
                setup.ports.ke,
                identity.key.display(),
                identity.chain.display()
            );
        }
        lines
    }
}

/// Version and features in `chronyd (chrony) version 4.3 (+CMDMON +NTS ..)`.
fn parse(text: &str) -> Option<(&str, &str)> {
    text.split_once(" version ")?.1.split_once(' ')
}

/// The first two numbers of a version, as in `4.6.1` or `4.8-pre1`.
fn version_pair(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split(|character: char| !character.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The types of keys for which `chronyc` makes one: it is built with what the daemon is.
fn key_types(search: &Search<'_>) -> Result<Vec<MacAlgorithm>, String> {
    let control = search
        .program("chrony", "usr/bin/chronyc")
        .map_err(|_| "may take keys, but chronyc, which tells their types, is not beside it".to_owned())?;
    let takes = |algorithm: &MacAlgorithm| {
        let line = control.say(&["keygen", "1", algorithm.name(), "128"]);
        line.is_ok_and(|line| line.starts_with(&format!("1 {} HEX:", algorithm.name())))
    };
    Ok(MacAlgorithm::ALL.into_iter().filter(takes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_features_are_read() {
        let text = "chronyd (chrony) version 4.3 (+CMDMON +NTP -NTS +SECHASH)";
        assert_eq!(parse(text), Some(("4.3", "(+CMDMON +NTP -NTS +SECHASH)")));
        assert_eq!(parse("no such option"), None);
        let found = ["4.3", "4.6.1", "4.10-pre1", "DEVELOPMENT", "4"].map(version_pair);
        assert_eq!(found, [Some((4, 3)), Some((4, 6)), Some((4, 10)), None, None]);
        assert!(version_pair("4.3") < Some(GCM_SIV_SINCE) && version_pair("4.10") > Some(GCM_SIV_SINCE));
    }
}
