//! The command line as it is written. What it means is decided in `cmd`.

use std::path::PathBuf;

use authentick_wire::ke::AeadId;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs that `report` takes: with an older one, as many as a page has letters for.
const RUN_COUNT_MAX: usize = 25;

/// Authenticated network time, and the instrument that measures what it costs.
#[derive(Debug, Parser)]
#[command(version, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve, query and measure authenticated time on this host's loopback; nothing to set up
    Demo(Demo),
    /// Serve time
    Serve(Serve),
    /// Ask a server for the time, and say who vouches for it
    Query(Query),
    /// Make, list, rotate and retire cookie keys
    Keys(Keys),
    /// Render stored runs, and compare load runs
    Report(Report),
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Where report.html and run.json go
    #[arg(long, value_name = "DIR", default_value = "authentick-demo")]
    pub(crate) out: PathBuf,
    /// Exchanges with each scheme
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = clap::value_parser!(u32).range(200..=10_000))]
    pub(crate) exchanges: u32,
    /// Print the run record instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = authentick_daemon::config::DEFAULT_PATH)]
    pub(crate) config: PathBuf,
    /// Check the configuration and the files that it names, and stop
    #[arg(long)]
    pub(crate) check: bool,
}

/// How a server is to prove who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Authentication {
    /// Network Time Security (RFC 8915)
    Nts,
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
    /// Trust the authorities in this PEM file, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// The name that the server's certificate must have [default: HOST]
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
    /// Offer this AEAD algorithm alone: 15, 16, 17 or 30; may be repeated, the best first [default: 30, 15]
    #[arg(long, value_name = "ID", value_parser = aead)]
    pub(crate) aead: Vec<AeadId>,
    /// Exchanges
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// Seconds from one exchange to the next
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    pub(crate) interval: std::time::Duration,
    /// Seconds to wait for the key exchange, and for each answer
    #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
    pub(crate) timeout: std::time::Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// Records of load runs, or of the demo; further load runs are compared with the first
    #[arg(value_name = "RUN.json", required = true, num_args = 1..=RUN_COUNT_MAX)]
    pub(crate) runs: Vec<PathBuf>,
    /// Write a page that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Compare the load runs with this older one instead
    #[arg(long, value_name = "OLD.json")]
    pub(crate) against: Option<PathBuf>,
    /// End with exit code 1 if a run carries less than this share of the older one, such as 0.95
    #[arg(long, value_name = "RATIO", requires = "against", value_parser = least_ratio)]
    pub(crate) fail_below: Option<f64>,
}

#[derive(Args, Debug)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) verb: KeysVerb,
    /// The server's configuration, which names the state directory
    #[arg(long, global = true, value_name = "FILE", default_value = authentick_daemon::config::DEFAULT_PATH)]
    pub(crate) config: PathBuf,
    /// The state directory, instead of the one in the configuration
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_directory: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysVerb {
    /// Make a first set of keys, if there is none
    Generate,
    /// List identifiers, roles and ages, never secrets
    List,
    /// Let the future key seal, retire the current one, and make a new future one
    Rotate {
        /// Retired keys to keep [default: as configured, else 7]
        #[arg(long, value_name = "N")]
        keep: Option<usize>,
    },
    /// Forget a retired key: cookies under it no longer open
    Retire {
        /// Its identifier, as `keys list` shows it
        #[arg(value_name = "ID", value_parser = key_id)]
        id: u32,
    },
}

fn least_ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio > 0.0 && ratio.is_finite() => Ok(ratio),
        _ => Err("no ratio above 0, such as 0.95".to_owned()),
    }
}

fn aead(text: &str) -> Result<AeadId, String> {
    let id = text.parse().map(AeadId).map_err(|_| "no number".to_owned())?;
    match authentick_proto::auth::nts::algorithm(id) {
        Some(_) => Ok(id),
        None => Err("no AEAD algorithm of ours; choose 15, 16, 17 or 30".to_owned()),
    }
}

fn key_id(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 16).map_err(|_| "no key identifier: eight hexadecimal digits".to_owned())
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    const MOST: f64 = 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=MOST).contains(&seconds) => Ok(std::time::Duration::from_secs_f64(seconds)),
        _ => Err(format!("no number of seconds from 0 to {MOST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert!(aead("15").is_ok() && aead("31").is_err() && aead("x").is_err());
        assert!(seconds("0.5").is_ok() && seconds("-1").is_err() && seconds("nan").is_err());
        assert_eq!(key_id("5f3a0c11"), Ok(0x5f3a_0c11));
        assert!(Arguments::try_parse_from(["authentick", "query", "host", "--count", "0"]).is_err());
        assert_eq!(least_ratio("0.95"), Ok(0.95));
        assert!(["0", "-1", "nan", "inf", "x"].iter().all(|text| least_ratio(text).is_err()));
    }
}
