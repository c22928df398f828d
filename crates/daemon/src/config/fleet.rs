//! `[fleet]`: the servers that share keys with this one, and the store between them.

use std::path::PathBuf;
use std::time::Duration;

use authentick_fleet::{Name, Start};

use super::keys::RotatingKeys;
use super::{ConfigError, Endpoint, Resolver, raw};

/// Nodes of a fleet, at most.
pub const MEMBER_COUNT_MAX: usize = 64;
/// Servers of the store between them, at most: each is read and written for itself.
pub const SERVER_COUNT_MAX: usize = 8;

/// What this server is in a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// The fleet's name, which is the same on all nodes.
    pub id: Name,
    /// This node's name.
    pub node: Name,
    /// The names of all nodes, this one included.
    pub members: Vec<Name>,
    /// The servers that keep what nodes say, at least one.
    pub servers: Vec<Endpoint>,
    /// The file of seal keys.
    pub seal_keys: PathBuf,
    /// Whether this node rotates the keys.
    pub is_writer: bool,
    /// How long a rotation waits for a silent member; absent: until it says something.
    pub patience: Option<Duration>,
    /// What this node starts with if it has no keys.
    pub start: Start,
}

impl Resolver<'_> {
    /// The fleet, which has to be there if any of `keys` are shared, and only then.
    pub(super) fn fleet<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k RotatingKeys>,
        raw: Option<raw::Fleet>,
    ) -> Result<Option<Fleet>, ConfigError> {
        let shared = keys.into_iter().find(|keys| keys.are_shared());
        match (shared, raw) {
            (None, None) => Ok(None),
            (Some(keys), None) => {
                let remedy = "add a table [fleet] with id, node, members, servers and seal-key";
                let problem = "there is no fleet to share keys with";
                Err(self.wrong(&keys.key("store"), "memcached", problem, remedy))
            }
            (None, Some(_)) => {
                let remedy = "write cookie-keys = { store = \"memcached\" } in [nts], or the same of state-keys in \
                              [antp], or remove [fleet]";
                Err(self.wrong("fleet", "", "without effect, as no keys are shared", remedy))
            }
            (Some(_), Some(raw)) => self.used_fleet(&raw).map(Some),
        }
    }

    fn used_fleet(&self, raw: &raw::Fleet) -> Result<Fleet, ConfigError> {
        let (id, node) = (self.name("fleet.id", &raw.id)?, self.name("fleet.node", &raw.node)?);
        let members = self.members(&raw.members)?;
        if !members.contains(&node) {
            let remedy =
                "add it there, or write the name that it has there: members are all nodes, this one included";
            return Err(self.wrong("fleet.node", node, "not among fleet.members", remedy));
        }
        let patience = Duration::from_secs(1)..=Duration::from_secs(365 * 86_400);
        let starts = [("welcomed", Start::Welcomed), ("stored", Start::Stored)];
        let is_writer = self.is_writer(&raw.writer, &node, &members)?;
        Ok(Fleet {
            id,
            node,
            members,
            servers: self.servers(&raw.servers)?,
            seal_keys: self.absolute("fleet.seal-key", &raw.seal_key)?,
            is_writer,
            patience: match &raw.patience {
                Some(text) => Some(self.duration("fleet.patience", text, patience)?),
                None => None,
            },
            start: self.word("fleet.start", raw.start.as_deref(), "way to start", &starts)?,
        })
    }

    /// Whether `node` writes.
    fn is_writer(&self, raw: &raw::Writer, node: &Name, members: &[Name]) -> Result<bool, ConfigError> {
        match raw {
            raw::Writer::Here(is_here) => Ok(*is_here),
            raw::Writer::Named(text) if members.iter().any(|member| member.as_str() == text) => {
                Ok(node.as_str() == text)
            }
            raw::Writer::Named(text) => {
                let remedy =
                    "write the name that one of them has there, or true on that node and false on the others";
                Err(self.wrong("fleet.writer", text, "not among fleet.members", remedy))
            }
        }
    }

    pub(super) fn name(&self, key: &str, text: &str) -> Result<Name, ConfigError> {
        let remedy = "write 1 to 64 ASCII letters, digits, dots, hyphens and underscores";
        Name::new(text).ok_or_else(|| self.wrong(key, text, "no name", remedy))
    }

    fn members(&self, texts: &[String]) -> Result<Vec<Name>, ConfigError> {
        const KEY: &str = "fleet.members";
        if texts.len() > MEMBER_COUNT_MAX {
            let remedy = format!("name at most {MEMBER_COUNT_MAX}, and divide the others among more fleets");
            return Err(self.wrong(KEY, texts.len(), "too many nodes", &remedy));
        }
        let mut members = Vec::with_capacity(texts.len());
        for text in texts {
            let name = self.name(KEY, text)?;
            if members.contains(&name) {
                let remedy = "name each node once, and no two alike";
                return Err(self.wrong(KEY, name, "listed twice", remedy));
            }
            members.push(name);
        }
        Ok(members)
    }

    fn servers(&self, texts: &[String]) -> Result<Vec<Endpoint>, ConfigError> {
        const KEY: &str = "fleet.servers";
        let remedy = "name at least one memcached, as in servers = [\"192.0.2.9:11211\"]";
        if texts.is_empty() {
            return Err(self.wrong(KEY, "[]", "no server to share keys through", remedy));
        }
        if texts.len() > SERVER_COUNT_MAX {
            let remedy = format!("name at most {SERVER_COUNT_MAX}: every node asks each of them");
            return Err(self.wrong(KEY, texts.len(), "too many servers", &remedy));
        }
        let mut servers = Vec::with_capacity(texts.len());
        for text in texts {
            let server = self.memcached(KEY, text)?;
            if servers.contains(&server) {
                return Err(self.wrong(KEY, server, "listed twice", "remove one of them"));
            }
            servers.push(server);
        }
        Ok(servers)
    }
}
