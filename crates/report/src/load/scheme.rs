//! What may be offered to a server, by the names that records and the command line have.

use std::fmt;

use super::Operation;

/// What is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// NTP without authentication.
    Plain,
    /// NTP under a symmetric key.
    Mac,
    /// NTS.
    Nts,
    /// Key exchanges of NTS alone.
    Ke,
    /// Key exchanges, each followed by transfers.
    Mix,
    /// Phase 1 of ANTP.
    AntpNegotiate,
    /// Phase 2 of ANTP.
    AntpExchange,
    /// Phase 3 of ANTP.
    Antp,
    /// All three phases of ANTP.
    AntpFull,
}

impl Scheme {
    /// Every scheme.
    pub const ALL: [Scheme; 9] = [
        Scheme::Plain,
        Scheme::Mac,
        Scheme::Nts,
        Scheme::Ke,
        Scheme::Mix,
        Scheme::AntpNegotiate,
        Scheme::AntpExchange,
        Scheme::Antp,
        Scheme::AntpFull,
    ];

    /// The scheme of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Scheme::ALL.into_iter().find(|scheme| scheme.name() == name)
    }

    /// The name, as in a record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Plain => "plain",
            Scheme::Mac => "mac",
            Scheme::Nts => "nts",
            Scheme::Ke => "ke",
            Scheme::Mix => "mix",
            Scheme::AntpNegotiate => "antp-negotiate",
            Scheme::AntpExchange => "antp-exchange",
            Scheme::Antp => "antp",
            Scheme::AntpFull => "antp-full",
        }
    }

    /// What the figures of a run count.
    #[must_use]
    pub const fn operation(self) -> Operation {
        match self {
            Scheme::Plain | Scheme::Mac | Scheme::Nts | Scheme::Antp => Operation::Transfer,
            Scheme::Ke | Scheme::Mix | Scheme::AntpExchange => Operation::KeyExchange,
            Scheme::AntpNegotiate => Operation::Negotiation,
            Scheme::AntpFull => Operation::Run,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
