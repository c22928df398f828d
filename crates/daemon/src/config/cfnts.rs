//! `nts.cookie-keys` where the keys are in CFNTS's layout: one value for each hour in a memcached, and a master key
//! that makes a key of it.

use std::path::PathBuf;
use std::time::Duration;

use super::nts::COOKIE_KEYS;
use super::{ConfigError, Endpoint, InvalidEndpoint, Resolver, raw};

const SERVER: &str = "nts.cookie-keys.server";
const MASTER_KEY: &str = "nts.cookie-keys.master-key";

/// Where CFNTS has its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cfnts {
    /// The memcached. There is one, as it alone decides which of two values for an hour counts.
    pub server: Endpoint,
    /// The file whose octets are the master key, as CFNTS's `cookie_key_file`.
    pub master_key: PathBuf,
}

impl Cfnts {
    /// How long a key seals.
    pub(crate) const PERIOD: Duration = Duration::from_secs(3600);
    /// For how many periods more it opens.
    pub(crate) const PAST: usize = 24;
}

impl Resolver<'_> {
    /// What the table means if its store is `"cfnts"`, which is for cookie keys.
    pub(super) fn cfnts(&self, table: &str, raw: &raw::RotatingKeys) -> Result<Cfnts, ConfigError> {
        if table != COOKIE_KEYS {
            let problem = "no store of such keys: CFNTS's layout has cookie keys alone";
            let remedy = "write \"memcached\" and a table [fleet] to share them, or another store";
            return Err(self.wrong(&format!("{table}.store"), "cfnts", problem, remedy));
        }
        let given = [
            ("nts.cookie-keys.rotate", raw.rotate.is_some()),
            ("nts.cookie-keys.keep", raw.keep.is_some()),
            ("nts.cookie-keys.next", raw.next.is_some()),
            ("nts.cookie-keys.file", raw.file.is_some()),
        ];
        let problem = "without effect in CFNTS's layout, which has a key for each hour and keeps it for 24";
        self.refuse_given(&given, problem, "leave it out")?;
        let example = "name the memcached, as in server = \"192.0.2.9:11211\"";
        let Some(server) = &raw.server else {
            return Err(self.wrong(SERVER, "", "missing, and the keys are to be read there", example));
        };
        let server = self.memcached(SERVER, server)?;
        let Some(master) = &raw.master_key else {
            let remedy = "name the file that is cookie_key_file to CFNTS, or 16 random octets in a file, the same \
                          on all hosts";
            return Err(self.wrong(MASTER_KEY, "", "missing, and memcached has no keys without it", remedy));
        };
        Ok(Cfnts { server, master_key: self.absolute(MASTER_KEY, master)? })
    }

    /// Refuses what only CFNTS's layout needs, where the keys are in another one.
    pub(super) fn no_cfnts(&self, table: &str, raw: &raw::RotatingKeys) -> Result<(), ConfigError> {
        let [server, master_key] = ["server", "master-key"].map(|name| format!("{table}.{name}"));
        let given = [(&*server, raw.server.is_some()), (&*master_key, raw.master_key.is_some())];
        let problem = match table {
            COOKIE_KEYS => format!("without effect, as {table}.store is not \"cfnts\""),
            _ => "without effect, as CFNTS's layout has cookie keys alone".to_owned(),
        };
        let remedy = "remove it; the servers of store = \"memcached\" are in [fleet]";
        self.refuse_given(&given, &problem, remedy)
    }

    /// A memcached that `key` names.
    pub(super) fn memcached(&self, key: &str, text: &str) -> Result<Endpoint, ConfigError> {
        let server = text.parse().and_then(|server| match server {
            Endpoint::Address(address) if address.ip().is_unspecified() => Err(InvalidEndpoint::Form),
            Endpoint::Address(_) | Endpoint::Name { .. } => Ok(server),
        });
        server.map_err(|error| {
            let remedy = "write ADDRESS:PORT or NAME:PORT of a memcached, as in \"192.0.2.9:11211\"";
            self.wrong(key, text, error, remedy)
        })
    }
}
