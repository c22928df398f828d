//! Keys that rotate, those of cookies and of ANTP's state: where they are kept, and where the next one comes from.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cfnts::Cfnts;
use super::values::describe_duration;
use super::{ConfigError, Resolver, raw};

/// Where keys are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// In a file of the state directory.
    File,
    /// In this file, which something else replaces.
    Follow(PathBuf),
    /// With the servers of the fleet.
    Fleet,
    /// In a memcached, as CFNTS has them.
    Cfnts(Cfnts),
}

/// The word for a store.
#[derive(Clone, Copy)]
enum StoreWord {
    File,
    Follow,
    Memcached,
    Cfnts,
}

/// Where the next key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextKey {
    /// It is drawn, or has randomness mixed in.
    Random,
    /// From the one before it, and it seals as the time of day has it: hosts that begin with the same file go on with
    /// the same keys.
    Derived,
    /// The store has one for each hour of the day's clock.
    Hourly,
}

/// Settings of keys of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotatingKeys {
    /// The table that they are from, such as `nts.cookie-keys`.
    pub table: &'static str,
    /// Where they are kept.
    pub store: StoreKind,
    /// How long a key seals.
    pub rotate: Duration,
    /// How many retired keys still open.
    pub keep: usize,
    /// Where the next key comes from.
    pub next: NextKey,
}

impl RotatingKeys {
    /// The file that something else replaces, if the keys are made elsewhere.
    pub(crate) fn followed(&self) -> Option<&Path> {
        match &self.store {
            StoreKind::File | StoreKind::Fleet | StoreKind::Cfnts(_) => None,
            StoreKind::Follow(path) => Some(path),
        }
    }

    /// Where the keys are, if they have CFNTS's layout.
    pub(crate) fn cfnts(&self) -> Option<&Cfnts> {
        match &self.store {
            StoreKind::File | StoreKind::Fleet | StoreKind::Follow(_) => None,
            StoreKind::Cfnts(cfnts) => Some(cfnts),
        }
    }

    /// Whether others may have these keys before this server does: with more than one maker, or with a clock of their
    /// own to tell which key seals.
    pub(crate) fn are_awaited(&self) -> bool {
        self.store != StoreKind::File || self.next == NextKey::Derived
    }

    /// Whether servers share the keys through the store of the fleet.
    #[must_use]
    pub fn are_shared(&self) -> bool {
        self.store == StoreKind::Fleet
    }

    /// The name of one of the settings, for messages.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.table)
    }
}

impl Resolver<'_> {
    /// Where the keys of a table are, and when they rotate, within `rotations`. How many stay is for the caller to say,
    /// but in CFNTS's layout.
    pub(super) fn rotating_keys(
        &self,
        table: &'static str,
        raw: &raw::RotatingKeys,
        rotations: RangeInclusive<Duration>,
    ) -> Result<RotatingKeys, ConfigError> {
        let store = self.store(table, raw)?;
        if let StoreKind::Cfnts(_) = store {
            let (rotate, keep, next) = (Cfnts::PERIOD, Cfnts::PAST, NextKey::Hourly);
            return Ok(RotatingKeys { table, store, rotate, keep, next });
        }
        let next = self.next_key(table, raw, &store)?;
        let name = format!("{table}.rotate");
        let rotate = self.duration(&name, raw.rotate.as_deref().unwrap_or("1d"), rotations)?;
        if next == NextKey::Derived && rotate.subsec_nanos() != 0 {
            let value = describe_duration(rotate);
            let remedy = "write whole seconds: hosts count them to know which key seals";
            return Err(self.wrong(&name, value, "not a number of seconds", remedy));
        }
        Ok(RotatingKeys { table, store, rotate, keep: 0, next })
    }

    /// Where the keys are. Keys that something else makes rotate there, too.
    fn store(&self, table: &str, raw: &raw::RotatingKeys) -> Result<StoreKind, ConfigError> {
        let key = |name: &str| format!("{table}.{name}");
        let words = [
            ("file", StoreWord::File),
            ("follow", StoreWord::Follow),
            ("memcached", StoreWord::Memcached),
            ("cfnts", StoreWord::Cfnts),
        ];
        let what = "key store";
        let store = match self.word(&key("store"), raw.store.as_deref(), what, &words)? {
            StoreWord::Cfnts => return Ok(StoreKind::Cfnts(self.cfnts(table, raw)?)),
            StoreWord::File => Some(StoreKind::File),
            StoreWord::Memcached => Some(StoreKind::Fleet),
            StoreWord::Follow => None,
        };
        self.no_cfnts(table, raw)?;
        match (store, &raw.file) {
            (Some(store), None) => Ok(store),
            (Some(_), Some(file)) => {
                let remedy =
                    "write store = \"follow\" too, or leave this out: the file is in the state directory";
                Err(self.wrong(&key("file"), file, "only read if something else makes the keys", remedy))
            }
            (None, None) => {
                let name = table.rsplit('.').next().unwrap_or(table);
                let remedy =
                    format!("name the file that something else replaces: file = \"/run/keys/{name}\"");
                Err(self.wrong(&key("file"), "", "missing, and the keys are to be read there", &remedy))
            }
            (None, Some(file)) => {
                let keep = raw.keep.map(|keep| ("keep", keep.to_string()));
                let rotate = raw.rotate.clone().map(|rotate| ("rotate", rotate));
                let next = raw.next.clone().map(|next| ("next", next));
                if let Some((name, value)) = rotate.or(keep).or(next) {
                    let remedy = "leave it out: keys rotate where they are made";
                    let problem = "without effect on keys that something else makes";
                    return Err(self.wrong(&key(name), value, problem, remedy));
                }
                Ok(StoreKind::Follow(self.absolute(&key("file"), file)?))
            }
        }
    }

    /// Where the next key comes from. Keys that servers share through a service are drawn by one of them.
    fn next_key(
        &self,
        table: &str,
        raw: &raw::RotatingKeys,
        store: &StoreKind,
    ) -> Result<NextKey, ConfigError> {
        let name = format!("{table}.next");
        let words = [("random", NextKey::Random), ("derived", NextKey::Derived)];
        let next = self.word(&name, raw.next.as_deref(), "origin of keys", &words)?;
        match (next, store) {
            (NextKey::Random | NextKey::Hourly, _) | (NextKey::Derived, StoreKind::File) => Ok(next),
            (NextKey::Derived, StoreKind::Fleet | StoreKind::Follow(_) | StoreKind::Cfnts(_)) => {
                let remedy =
                    "leave it out, or write store = \"file\": derived keys need no service to be the same";
                Err(self.wrong(&name, "derived", "not for keys that one server makes for others", remedy))
            }
        }
    }
}
