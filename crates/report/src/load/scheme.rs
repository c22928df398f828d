//! What may be offered to a server, by the names that records and the command line have.

use super::Operation;

/// What is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
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
