//! What `query` and `load` are told about ANTP.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use authentick_client::antp::ocsp::check_url;
use authentick_wire::antp::Suite;
use clap::{Args, ValueEnum};

use super::trust::Trust;
use super::values::seconds;

/// A key encapsulation mechanism of ANTP, and with it a suite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum KemArgument {
    /// P-256, as ECIES-KEM: the paper's second
    #[default]
    Ecdh,
    /// RSA-2048 with PKCS#1 v1.5: the paper's first
    Rsa,
    /// RSA-2048 with OAEP: ours
    RsaOaep,
    /// X25519: ours
    X25519,
}

impl KemArgument {
    /// The suite that has it.
    pub(crate) const fn suite(self) -> Suite {
        match self {
            KemArgument::Ecdh => Suite::P256,
            KemArgument::Rsa => Suite::RSA_PKCS1,
            KemArgument::RsaOaep => Suite::RSA_OAEP,
            KemArgument::X25519 => Suite::X25519,
        }
    }
}

/// With which mechanism clients and server agree on a key, and whom clients trust.
#[derive(Args, Debug)]
pub(crate) struct AntpLoad {
    /// The key encapsulation
    #[arg(long, value_enum, default_value_t)]
    pub(crate) kem: KemArgument,
    #[command(flatten)]
    pub(crate) trust: Trust,
}

/// Options of `query --auth antp`, but for the last two, which concern what it leaves behind.
#[derive(Args, Debug)]
pub(crate) struct AntpQuery {
    /// ANTP: offer this key encapsulation; may be repeated, the best first [default: ecdh]
    #[arg(long, value_enum, value_name = "KEM")]
    pub(crate) kem: Vec<KemArgument>,
    /// ANTP: have the tag sent in a packet of its own, after the time
    #[arg(long)]
    pub(crate) separate_tag: bool,
    /// ANTP: E, the longest round trip in seconds that is accepted; time is wrong by at most half of it [default: 1]
    #[arg(long, value_name = "S", value_parser = round_trip)]
    pub(crate) round_trip_max: Option<Duration>,
    /// ANTP: trust the certificates in this PEM file, or the public key, and nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ca", "server_name", "validate_at"])]
    pub(crate) pin: Option<PathBuf>,
    /// ANTP: judge the dates of certificates at this time, such as 2030-01-31T12:00:00Z, not by the clock
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) validate_at: Option<u64>,
    /// ANTP: ask this server too, and others, at least two; all are believed without the dates of their certificates,
    /// which are then judged at the time that most agree on
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with_all = ["pin", "validate_at"])]
    pub(crate) tentative: Vec<String>,
    /// ANTP: ask the responders of the authorities (OCSP, with a nonce) whether certificates are good now, and judge
    /// their dates at the time that they vouch for, not by the clock; at this URL, or where the certificates say
    #[arg(
        long,
        value_name = "URL",
        value_parser = responder,
        conflicts_with_all = ["pin", "validate_at", "tentative"]
    )]
    pub(crate) ocsp: Option<Option<String>>,
    /// Where chains, and which servers have spoken ANTP, are kept [default: $XDG_STATE_HOME/authentick, or
    /// ~/.local/state/authentick]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_directory: Option<PathBuf>,
    /// Forget that this server has spoken ANTP, which forbids --auth plain, and its chain; then ask
    #[arg(long)]
    pub(crate) forget_antp: bool,
}

fn round_trip(text: &str) -> Result<Duration, String> {
    match seconds(text) {
        Ok(span) if !span.is_zero() && span <= Duration::from_secs(60) => Ok(span),
        _ => Err("no number of seconds above 0 and up to 60".to_owned()),
    }
}

fn responder(text: &str) -> Result<String, String> {
    check_url(text)
        .map_err(|problem| format!("{problem}; what follows --ocsp is its URL, so HOST comes first"))
}

fn instant(text: &str) -> Result<u64, String> {
    let time = humantime::parse_rfc3339_weak(text).map_err(|error| error.to_string())?;
    time.duration_since(UNIX_EPOCH).map(|since| since.as_secs()).map_err(|_| "before 1970".to_owned())
}
