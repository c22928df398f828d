//! The game of message authentication codes: what draft-aanchal4-ntp-mac-00 and draft-ietf-ntp-mac argue, as programs.
//!
//! Each file is an attack or an argument, and says under which conditions it holds. An attack takes [`Tagged`]
//! messages, as they are on the net, and gives back others, first for a [`Victim`] to judge, which is `crypto`'s code
//! alone, then in whole packets for a [`Pair`], which is the client and the server of `proto`.
//!
//! Deliberately absent: packets of other servers and clients. Who reads nonces from another field is another victim.

pub mod digest;
pub mod factors;
pub mod forged_packets;
pub mod gmac_nonce;
pub mod length_extension;
pub mod limits;
pub mod others;
pub mod pair;
pub mod poly1305_nonce;
pub mod refresh;
pub mod salt;
pub mod tagged;
pub mod victim;

use std::fmt;

use serde::Serialize;

pub use self::pair::Pair;
pub use self::tagged::Tagged;
pub use self::victim::Victim;

/// A program of this game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// MD5 and its like, extended.
    LengthExtension,
    /// GMAC under a repeated nonce.
    GmacNonce,
    /// Poly1305 under a repeated nonce.
    Poly1305Nonce,
    /// HMAC, CMAC and GMAC-SIV before the same adversary.
    Others,
    /// Replacing GMAC keys in time.
    Refresh,
    /// Salts that are shared.
    Salt,
    /// How many messages a key may authenticate.
    Limits,
}

impl Program {
    /// Every program, in the order of the drafts' argument.
    pub const ALL: [Program; 7] = [
        Program::LengthExtension,
        Program::GmacNonce,
        Program::Poly1305Nonce,
        Program::Others,
        Program::Refresh,
        Program::Salt,
        Program::Limits,
    ];

    /// The program of that name, or all of them for `all`.
    #[must_use]
    pub fn among(name: &str) -> Vec<Self> {
        Program::ALL.into_iter().filter(|program| name == "all" || name == program.name()).collect()
    }

    /// What it is called on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Program::LengthExtension => "length-extension",
            Program::GmacNonce => "gmac-nonce",
            Program::Poly1305Nonce => "poly1305-nonce",
            Program::Others => "others",
            Program::Refresh => "refresh",
            Program::Salt => "salt",
            Program::Limits => "limits",
        }
    }

    /// What it plays.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Program::LengthExtension => "MD5 and its like: a longer message from one tag",
            Program::GmacNonce => "GMAC under a repeated nonce",
            Program::Poly1305Nonce => "Poly1305 under a repeated nonce",
            Program::Others => "HMAC, CMAC and GMAC-SIV before the same adversary",
            Program::Refresh => "Three ways of replacing a GMAC key in time",
            Program::Salt => "Salts that associations share",
            Program::Limits => "How many messages a key may authenticate",
        }
    }

    /// Runs it. `messages_log2`: for which numbers of messages [`Program::Limits`] has a row, as base-2 logarithms.
    #[must_use]
    pub fn run(self, seed: u64, messages_log2: &[f64]) -> Played {
        match self {
            Program::LengthExtension => Played::LengthExtension(length_extension::LengthExtension::run(seed)),
            Program::GmacNonce => Played::GmacNonce(gmac_nonce::GmacNonce::run(seed)),
            Program::Poly1305Nonce => Played::Poly1305Nonce(poly1305_nonce::Poly1305Nonce::run(seed)),
            Program::Others => Played::Others(others::Others::run(seed)),
            Program::Refresh => Played::Refresh(refresh::Refresh::run(seed)),
            Program::Salt => Played::Salt(salt::Salt::run(seed)),
            Program::Limits => Played::Limits(limits::Limits::of(messages_log2)),
        }
    }
}

/// What came of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "program", rename_all = "kebab-case")]
pub enum Played {
    /// See [`length_extension`].
    LengthExtension(length_extension::LengthExtension),
    /// See [`gmac_nonce`].
    GmacNonce(gmac_nonce::GmacNonce),
    /// See [`poly1305_nonce`].
    #[serde(rename = "poly1305-nonce")]
    Poly1305Nonce(poly1305_nonce::Poly1305Nonce),
    /// See [`others`].
    Others(others::Others),
    /// See [`refresh`].
    Refresh(refresh::Refresh),
    /// See [`salt`].
    Salt(salt::Salt),
    /// See [`limits`].
    Limits(limits::Limits),
}

impl Played {
    /// Whether everything succeeded and failed as the theory says.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        match self {
            Played::LengthExtension(played) => played.is_as_expected(),
            Played::GmacNonce(played) => played.is_as_expected(),
            Played::Poly1305Nonce(played) => played.is_as_expected(),
            Played::Others(played) => played.is_as_expected(),
            Played::Refresh(played) => played.is_as_expected(),
            Played::Salt(played) => played.is_as_expected(),
            Played::Limits(played) => played.is_as_expected(),
        }
    }
}

/// What came of some programs.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// What decided keys, nonces and messages.
    pub seed: u64,
    /// Whether every attack succeeded or failed as the theory says.
    pub as_expected: bool,
    /// By program.
    pub programs: Vec<Played>,
}

impl Results {
    /// Runs `programs`; says when one is through. See [`Program::run`].
    #[must_use]
    pub fn play(programs: &[Program], seed: u64, messages_log2: &[f64], through: impl Fn()) -> Self {
        let played = programs.iter().map(|program| program.run(seed, messages_log2)).inspect(|_| through());
        let programs: Vec<Played> = played.collect();
        Results { seed, as_expected: programs.iter().all(Played::is_as_expected), programs }
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, played) in self.programs.iter().enumerate() {
            write!(f, "{}{played}", if index == 0 { "" } else { "\n\n" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Played::LengthExtension(played) => played.fmt(f),
            Played::GmacNonce(played) => played.fmt(f),
            Played::Poly1305Nonce(played) => played.fmt(f),
            Played::Others(played) => played.fmt(f),
            Played::Refresh(played) => played.fmt(f),
            Played::Salt(played) => played.fmt(f),
            Played::Limits(played) => played.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_has_the_same_result_and_another_has_another() {
        for program in [Program::GmacNonce, Program::Poly1305Nonce] {
            let run = |seed| program.run(seed, &[]);
            assert_eq!(run(1), run(1));
            assert_ne!(run(1), run(2));
        }
    }

    #[test]
    fn json_names_the_program() {
        let json = serde_json::to_value(Program::Poly1305Nonce.run(1, &[])).unwrap();
        assert_eq!(json["program"], "poly1305-nonce");
        assert_eq!(json["attempts"][0]["verdict"], "WIN-AUTH");
        assert_eq!(json["attempts"][2]["verdict"], "REJECT");
        let (client, server) = (&json["on_the_wire"]["client"], &json["on_the_wire"]["server"]);
        assert_eq!((&client[0]["verdict"], &server[0]["verdict"]), (&"WIN-AUTH".into(), &"WIN-AUTH".into()));
        assert_eq!(
            (&client[0]["forged"]["said"], &server[0]["forged"]["said"]),
            (&"accepted".into(), &"mac".into())
        );
        let json = serde_json::to_value(Program::Limits.run(1, &[32.0])).unwrap();
        assert_eq!((&json["program"], &json["rows"][0]["messages_log2"]), (&"limits".into(), &32.0.into()));
    }
}
