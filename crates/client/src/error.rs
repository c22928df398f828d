//! Why a client got no time: where it failed, why, and by whose fault.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use authentick_ke::client::KeError;
use authentick_proto::antp::client::Check as AntpCheck;
use authentick_proto::client::Check;
use authentick_wire::header::ReferenceId;
use authentick_wire::ke::AeadId;
use thiserror::Error as Describe;

use crate::antp::Phase;
use crate::antp::ocsp::OcspError;
use crate::antp::store::StoreError;
use crate::antp::tentative::Disagreement;
use crate::exchange::Unanswered;
use crate::trust::Untrusted;

/// Whose fault it is that there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server's or the network's: nothing came in time, or the server cannot be reached.
    Silent,
    /// The server's, or somebody's on the path: what came breaks the syntax.
    Malformed,
    /// The same: what came is not proved to be the server's, or fails another check.
    Rejected,
    /// The server's: it answered that it does not serve this.
    Refused,
    /// This host's.
    Host,
    /// This host's, in a state that may pass, such as a full disk.
    Passing,
    /// The user's: a permission is missing.
    Rights,
    /// The user's: an argument, or what is kept in files, is wrong.
    Input,
}

impl Fault {
    /// By whose fault a file or an address cannot be used.
    #[must_use]
    pub fn of_access(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Fault::Rights,
            _ if authentick_net::passing::may_pass(error) => Fault::Passing,
            _ => Fault::Input,
        }
    }
}

/// What a client was doing when it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It looked up the addresses of this host.
    Host(String),
    /// It exchanged keys under NTS.
    KeyExchange {
        /// The name that the user gave.
        host: String,
        /// Its port.
        port: u16,
    },
    /// It asked this server for time.
    Server(SocketAddr),
    /// It was in a phase of ANTP with this server.
    Antp(SocketAddr, Phase),
    /// The same with a server of tentative trust, under the name that the user gave.
    Vote(String, Phase),
    /// It compared the answers of the servers of tentative trust.
    Tentative,
    /// It worked on its own files, or at several places, which the reason names.
    Store,
}

/// Why it failed.
#[derive(Debug, Describe)]
pub enum Why {
    /// None of a host's addresses responded: what happened at each.
    #[error("none of {} addresses responded: {}", .0.len(), each_of(.0))]
    NoneResponded(Vec<Error>),
    /// The system could not find an address for the name.
    #[error("cannot find its address: {0}")]
    Unresolved(io::Error),
    /// NTS: the key exchange failed.
    #[error("{error}")]
    KeyExchange {
        /// What went wrong.
        error: KeError,
        /// The algorithms that were offered.
        offered: Vec<AeadId>,
    },
    /// No answer passed.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// The same under ANTP.
    #[error(transparent)]
    UnansweredAntp(#[from] Unanswered<AntpCheck>),
    /// ANTP: the certificate chain is not to be trusted.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// ANTP: the authorities do not vouch for the chain.
    #[error(transparent)]
    Ocsp(#[from] OcspError),
    /// ANTP: the servers of tentative trust do not agree on a time.
    #[error(transparent)]
    Disagreement(#[from] Disagreement),
    /// ANTP: what is kept between runs.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a client got no time. The message says where and why; the program adds what the user can do.
#[derive(Debug, Describe)]
#[error("{place}{why}")]
pub struct Error {
    /// Where it failed.
    pub place: Place,
    /// Why.
    pub why: Why,
}

fn each_of(errors: &[Error]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Error {
    pub(crate) fn new(place: Place, why: impl Into<Why>) -> Self {
        Error { place, why: why.into() }
    }

    /// By whose fault.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.why.fault()
    }

    /// The kiss code that was the response, if one was.
    #[must_use]
    pub fn kiss(&self) -> Option<ReferenceId> {
        match &self.why {
            Why::Unanswered(Unanswered::Rejected(checks)) => checks.iter().find_map(|check| match check {
                Check::Kiss(code) | Check::CryptoNak(Some(code)) => Some(*code),
                _ => None,
            }),
            Why::UnansweredAntp(Unanswered::Rejected(checks)) => {
                checks.iter().find_map(|check| match check {
                    AntpCheck::Kiss(code) => Some(*code),
                    _ => None,
                })
            }
            _ => None,
        }
    }
}

impl Why {
    /// By whose fault.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Why::NoneResponded(_) | Why::Unresolved(_) => Fault::Silent,
            Why::KeyExchange { error, .. } => match error {
                KeError::Response(_) | KeError::TooLong => Fault::Malformed,
                error if error.is_authentication() => Fault::Rejected,
                error if error.is_refusal() => Fault::Refused,
                _ => Fault::Silent,
            },
            Why::Unanswered(unanswered) => unanswered.fault(),
            Why::UnansweredAntp(unanswered) => unanswered.fault(),
            Why::Untrusted(_) | Why::Disagreement(_) => Fault::Rejected,
            Why::Ocsp(error) => error.fault(),
            Why::Store(error) => error.fault(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Host(host) => write!(f, "{host}: "),
            Place::KeyExchange { host, port } => write!(f, "{host}: key exchange on port {port}: "),
            Place::Server(server) => write!(f, "{server}: "),
            Place::Antp(server, phase) => write!(f, "{server}: {phase}: "),
            Place::Vote(server, phase) => write!(f, "tentative trust: {server}: {phase}: "),
            Place::Tentative => f.write_str("tentative trust: "),
            Place::Store => Ok(()),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Error::new(Place::Store, error)
    }
}
