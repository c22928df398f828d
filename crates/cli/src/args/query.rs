//! What `query` is told; for ANTP see `antp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, ValueEnum};

use self::Authentication::{Antp, Mac, Nts};
use super::paths::label;
use super::trust::NtsClient;
use super::values::{seconds, timeout};
use super::{AllowedTypes, AntpQuery, KeysFormat, Permit, name_of};

/// How a server is to prove who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Authentication {
    /// Network Time Security (RFC 8915)
    Nts,
    /// With a key that both sides know (RFC 8573): --keys and --key-id
    Mac,
    /// ANTP, our profile of it: public keys, and no TLS
    Antp,
    /// Not at all
    Plain,
}

#[derive(Args, Debug)]
pub(crate) struct Query {
    /// The server; PORT is that of NTP, used when the key exchange names none [default: 123]
    #[arg(value_name = "HOST[:PORT]")]
    pub(crate) server: String,
    /// How the server is to prove who it is; there is no falling back
    #[arg(long, value_enum, default_value_t = Authentication::Nts)]
    pub(crate) auth: Authentication,
    /// Port of the key exchange
    #[arg(long, value_name = "N", default_value_t = authentick_ke::PORT)]
    pub(crate) ke_port: u16,
    #[command(flatten)]
    pub(crate) client: NtsClient,
    /// The file with the key, as chrony and ntpd have them
    #[arg(long, value_name = "FILE", required_if_eq("auth", "mac"))]
    pub(crate) keys: Option<PathBuf>,
    /// Which of its keys
    #[arg(long, value_name = "N", required_if_eq("auth", "mac"), value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) key_id: Option<u32>,
    /// Whose key file it is, where it could be either's
    #[arg(long, value_enum, default_value_t)]
    pub(crate) keys_format: KeysFormat,
    #[command(flatten)]
    pub(crate) allowed: AllowedTypes,
    #[command(flatten)]
    pub(crate) antp: AntpQuery,
    /// Exchanges
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// Seconds from one exchange to the next; at least 1 for a public address without --permit
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    pub(crate) interval: Duration,
    /// Seconds to wait for the key exchange, and for each answer
    #[arg(long, value_name = "S", default_value = "5", value_parser = timeout)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) permission: Permit,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The options that mean something only under certain schemes, by id.
pub(super) const OF_SCHEMES: &[(&[Authentication], &[&str])] = &[
    (&[Nts, Antp], &["ca", "server_name"]),
    (&[Nts], &["ke_port", "aead"]),
    (&[Mac], &["keys", "key_id", "keys_format", "allow_legacy", "allow_experimental"]),
    (&[Antp], &["kem", "separate_tag", "round_trip_max", "pin", "validate_at", "tentative", "ocsp"]),
];

/// Refuses an option that has no effect under the chosen scheme: its user may think that something was verified.
///
/// # Errors
/// If there is one: its name, and the schemes that it is for.
pub(super) fn check_scheme(command: &Command, matches: &ArgMatches) -> Result<(), Error> {
    let Some(scheme) = matches.get_one::<Authentication>("auth") else { return Ok(()) };
    for (schemes, ids) in OF_SCHEMES.iter().filter(|(schemes, _)| !schemes.contains(scheme)) {
        let is_wrong = |option: &&Arg| {
            let id = option.get_id().as_str();
            ids.contains(&id) && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        if let Some(option) = command.get_arguments().find(is_wrong).map(label) {
            let (schemes, scheme) = (schemes.iter().map(name_of).collect::<Vec<_>>(), name_of(scheme));
            let problem =
                format!("{option} is for --auth {}, and has no effect with {scheme}\n", schemes.join(" or "));
            return Err(Error::raw(ErrorKind::ArgumentConflict, problem).with_cmd(command));
        }
    }
    Ok(())
}
