//! Time servers of others, and memcached: found, started as servers only, ended with their value.
//!
//! [`Peer::find`] looks in a folder as `cargo xtask peers` fills it, then where programs are. None of them touches this
//! machine's clock: chrony runs with `-x`, ntpd-rs without sources, facebook/time's responder adds no addresses, and
//! all three start in the [`sandbox`](crate::sandbox), which answers whoever sets a clock and has taken the right away.
//! Each stays on one processor if its [`Place`] says so.
//!
//! [`Peer::serves`] says which [`Scheme`]s a program has, or in a sentence why it has one not. It is what the program
//! itself tells where it does (types of keys, options of the build), and what its version is known for otherwise; a
//! study asks once under each scheme before it measures.

mod chrony;
mod facebook_time;
mod memcached;
mod ntpd_rs;
mod place;
mod scheme;
mod search;
mod server;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::Error;

pub use self::chrony::Chrony;
pub use self::facebook_time::FacebookTime;
pub use self::memcached::{Memcached, Memory};
pub use self::ntpd_rs::NtpdRs;
pub use self::place::Place;
pub use self::scheme::{Key, Scheme};
pub use self::search::{Program, Search};
pub use self::server::Server;

/// A program that serves time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// chrony's `chronyd`.
    Chrony,
    /// `ntp-daemon` of ntpd-rs.
    NtpdRs,
    /// `ntpresponder` of facebook/time, with `ntske` for key exchange.
    FacebookTime,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 3] = [Kind::Chrony, Kind::NtpdRs, Kind::FacebookTime];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Chrony => "chrony",
            Kind::NtpdRs => "ntpd-rs",
            Kind::FacebookTime => "facebook/time",
        }
    }
}

/// A time server of others that is on this machine.
#[derive(Clone, Debug)]
pub enum Peer {
    /// chrony.
    Chrony(Chrony),
    /// ntpd-rs.
    NtpdRs(NtpdRs),
    /// facebook/time.
    FacebookTime(FacebookTime),
}

/// What a server is given.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// Where it runs.
    pub place: Place,
    /// The address at which it listens.
    pub address: IpAddr,
    /// The ports at which it listens.
    pub ports: Ports,
    /// A folder in which it gets one of its own, which goes away with it.
    pub folder: &'a Path,
    /// Its certificate; without one it has no NTS.
    pub identity: Option<Identity<'a>>,
    /// Keys for MACs; those of types that it does not take are left out.
    pub keys: &'a [Key],
}

/// Ports of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// NTP over UDP.
    pub ntp: u16,
    /// Key exchange over TCP.
    pub ke: u16,
    /// A TCP port for what a program insists on besides, as facebook/time's responder on its monitoring.
    pub spare: u16,
}

/// A server's certificate and key, in PEM.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The certificate, and those that lead to the authority's.
    pub chain: &'a Path,
    /// The private key.
    pub key: &'a Path,
}

impl Setup<'_> {
    /// Where it serves time.
    #[must_use]
    pub const fn ntp(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.ports.ntp)
    }

    /// Where it exchanges keys.
    #[must_use]
    pub const fn ke(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.ports.ke)
    }
}

impl Peer {
    /// Finds a program of this kind.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with where it was looked for and the remedy, or with why what is there does not run.
    pub fn find(kind: Kind, search: &Search<'_>) -> Result<Self, Error> {
        match kind {
            Kind::Chrony => Chrony::find(search).map(Peer::Chrony),
            Kind::NtpdRs => NtpdRs::find(search).map(Peer::NtpdRs),
            Kind::FacebookTime => FacebookTime::find(search).map(Peer::FacebookTime),
        }
    }

    /// Which one it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Peer::Chrony(_) => Kind::Chrony,
            Peer::NtpdRs(_) => Kind::NtpdRs,
            Peer::FacebookTime(_) => Kind::FacebookTime,
        }
    }

    /// Its version, as `4.3`; `of unknown version` if it does not tell.
    #[must_use]
    pub fn version(&self) -> &str {
        match self {
            Peer::Chrony(chrony) => chrony.version(),
            Peer::NtpdRs(ntpd_rs) => ntpd_rs.version(),
            Peer::FacebookTime(facebook_time) => facebook_time.version(),
        }
    }

    /// Whether it serves time under `scheme`.
    ///
    /// # Errors
    /// A sentence that says why not.
    pub fn serves(&self, scheme: Scheme) -> Result<(), String> {
        if scheme == Scheme::Antp {
            return Err(format!("{} has no ANTP, as nobody but us", self.title()));
        }
        match self {
            Peer::Chrony(chrony) => chrony.serves(scheme),
            Peer::NtpdRs(ntpd_rs) => ntpd_rs.serves(scheme),
            Peer::FacebookTime(facebook_time) => facebook_time.serves(scheme),
        }
        .map_err(|why| format!("{} {why}", self.title()))
    }

    /// Starts it as a server that says that its clock is good, and waits until it answers.
    ///
    /// # Errors
    /// If it does not start, or does not answer within ten seconds: with what it said last.
    pub fn start(&self, setup: &Setup<'_>) -> Result<Server, Error> {
        Server::start(self, setup)
    }

    /// Its name and version.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.kind().name(), self.version())
    }
}

/// What a version is called that a program does not tell.
const UNKNOWN_VERSION: &str = "of unknown version";
