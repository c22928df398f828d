//! facebook/time's `ntpresponder`, and `ntske` beside it for key exchange: they share a key that is built in.

use std::fs;

use super::server::{Launch, Role};
use super::{Program, Scheme, Search, Setup, UNKNOWN_VERSION};
use crate::Error;

/// The AEAD of its NTS that answers requests as RFC 8915 has them: AES-128-GCM-SIV.
const AEAD: u16 = 30;
/// Those that it agrees to, but answers only to a nonce of no octets.
const AEADS_WITHOUT_NONCE: [u16; 2] = [15, 17];
/// How Go writes the version of a program's module into it.
const MODULE: &[u8] = b"mod\tgithub.com/facebook/time\t";
/// The most octets of a version there.
const VERSION_SIZE_MAX: usize = 64;

/// facebook/time on this machine.
#[derive(Clone, Debug)]
pub struct FacebookTime {
    responder: Program,
    /// Its key exchange, or why it has no NTS.
    exchange: Result<Program, String>,
    version: String,
}

impl FacebookTime {
    pub(super) fn find(search: &Search<'_>) -> Result<Self, Error> {
        let responder = search.program("facebook/time", "ntpresponder")?;
        let exchange = match responder.contains(b"enable-nts") {
            true => search.program("facebook/time", "ntske").map_err(|error| format!("has no NTS: {error}")),
            false => Err("has no NTS: its responder is older than that".to_owned()),
        };
        let version = version(&responder).unwrap_or_else(|| UNKNOWN_VERSION.to_owned());
        Ok(FacebookTime { responder, exchange, version })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn serves(&self, scheme: Scheme) -> Result<(), String> {
        match (scheme, &self.exchange) {
            (Scheme::Plain, _) => Ok(()),
            (Scheme::Mac(_), _) => Err("reads MACs and does not verify them".to_owned()),
            (Scheme::Nts(_), Err(why)) => Err(why.clone()),
            (Scheme::Nts(AEAD), Ok(_)) => Ok(()),
            (Scheme::Nts(aead), Ok(_)) if AEADS_WITHOUT_NONCE.contains(&aead) => {
                Err(format!("agrees to AEAD {aead}, but answers only requests whose nonce is empty"))
            }
            (Scheme::Nts(aead), Ok(_)) => Err(format!("has no AEAD {aead}")),
            (Scheme::Antp, _) => Err("has no ANTP".to_owned()),
        }
    }

    pub(super) fn launch(&self, setup: &Setup<'_>) -> Result<Vec<Launch>, Error> {
        let mut responder = self.responder.command(&setup.place);
        // Otherwise it adds addresses to the loopback interface.
        responder.args(["-manage-loopback=false", "-workers", "2", "-ip", &setup.address.to_string()]);
        responder.args(["-port", &setup.ports.ntp.to_string()]);
        responder.args(["-monitoringport", &setup.ports.spare.to_string()]);
        let (Ok(exchange), Some(identity)) = (&self.exchange, setup.identity) else {
            return Ok(vec![Launch { command: responder, role: Role::Time }]);
        };
        responder.arg("-enable-nts");
        let mut keys = exchange.command(&setup.place);
        keys.args(["-addr", &setup.ke().to_string(), "-cert"]).arg(identity.chain);
        keys.arg("-key").arg(identity.key);
        Ok(vec![Launch { command: responder, role: Role::Time }, Launch { command: keys, role: Role::Keys }])
    }
}

/// The version that stands in a file beside the program, or in the program.
fn version(responder: &Program) -> Option<String> {
    let beside = responder.path().with_file_name("version");
    if let Ok(text) = fs::read_to_string(beside)
        && text.starts_with('v')
    {
        return Some(text.trim().to_owned());
    }
    let text = String::from_utf8_lossy(&responder.after(MODULE, VERSION_SIZE_MAX)?).into_owned();
    let (version, _) = text.split_once(|character: char| character.is_whitespace())?;
    (!version.is_empty()).then(|| version.to_owned())
}
