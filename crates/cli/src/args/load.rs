//! What `load` is told: schemes, rates, clients and output.

mod agent;

use std::net::IpAddr;
use std::time::Duration;

use authentick_load::rates;
use authentick_proto::prefix::Prefix;
use authentick_report::load::Threshold;
use clap::{Args, Subcommand, ValueEnum};

pub(crate) use self::agent::{Agent, Coordination};
use super::trust::NtsClient;
use super::values::{OutputPath, number, step_seconds, timeout};
use super::{AntpLoad, Permit, SharedKeyArguments};

#[derive(Args, Debug)]
pub(crate) struct Load {
    #[command(subcommand)]
    pub(crate) scheme: LoadScheme,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LoadScheme {
    /// NTP without authentication
    Plain {
        #[command(flatten)]
        load: Box<LoadArguments>,
    },
    /// NTP under a key that all clients share with the server
    Mac {
        #[command(flatten)]
        load: Box<LoadArguments>,
        #[command(flatten)]
        key: SharedKeyArguments,
    },
    /// NTS: clients with keys and cookies of their own, which exchange keys when they have none
    Nts {
        #[command(flatten)]
        load: Box<LoadArguments>,
        #[command(flatten)]
        nts: NtsLoad,
        /// Send one cookie of each client again and again, as no client does: cheaper to offer
        #[arg(long)]
        replay_cookie: bool,
    },
    /// Key exchanges alone; TARGET's port is that of the key exchange
    Ke {
        #[command(flatten)]
        load: Box<LoadArguments>,
        #[command(flatten)]
        nts: NtsLoad,
    },
    /// Key exchanges, each followed by transfers; rates are those of the key exchanges
    Mix {
        #[command(flatten)]
        load: Box<LoadArguments>,
        #[command(flatten)]
        nts: NtsLoad,
        /// Transfers after each key exchange
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
        transfers_per_exchange: u32,
        /// Send them all with one cookie, as the NTS study did
        #[arg(long)]
        same_cookie: bool,
        /// Transfers after each key exchange of the background [default: as many]; with 0, its exchanges hold no client
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000), requires = "background")]
        background_transfers: Option<u32>,
    },
    /// Phase 1 of ANTP: negotiations, each until the certificate chain is complete
    AntpNegotiate {
        #[command(flatten)]
        load: Box<LoadArguments>,
        #[command(flatten)]
        antp: AntpLoad,
        /// Send the same m1 of each client again and again, and take its first answer, as the paper's load did
        #[arg(long)]
        replay: bool,
    },
    /// Phase 2 of ANTP: key exchanges, of clients that negotiate before and renew that every 30 s
    AntpExchange {
        #[command(flatten)]
        load: Box<LoadArguments>,
        #[command(flatten)]
        antp: AntpLoad,
        /// Send the same m3 of each client again and again, renewed every 30 s: no public-key work for the generator
        #[arg(long)]
        replay: bool,
    },
    /// Phase 3 of ANTP: requests for time, of clients that exchange keys before
    Antp {
        #[command(flatten)]
        load: Box<LoadArguments>,
        #[command(flatten)]
        antp: AntpLoad,
        /// Send the same m5 of each client again and again, as no client does
        #[arg(long)]
        replay: bool,
        /// Ask for tags in packets of their own; latency is that of the early packet, if it is genuine
        #[arg(long)]
        separate_tag: bool,
    },
    /// All phases of ANTP, one after the other, as of clients that know nothing yet; rates are those of whole runs
    AntpFull {
        #[command(flatten)]
        load: Box<LoadArguments>,
        #[command(flatten)]
        antp: AntpLoad,
        /// Ask for tags in packets of their own; latency is that of the early packet, if it is genuine
        #[arg(long)]
        separate_tag: bool,
    },
    /// Take part in runs of a coordinator: send what it orders
    Agent(Agent),
}

impl LoadArguments {
    /// How long each step lasts. A search has many, each of which tells of one rate.
    pub(crate) fn step_duration(&self) -> Duration {
        self.step_seconds.unwrap_or(Duration::from_secs(if self.search { 1 } else { 5 }))
    }
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("model").multiple(false))]
pub(crate) struct LoadArguments {
    /// The server; PORT is that of NTP [default: 123], for `ke` that of the key exchange [default: 4460]
    #[arg(value_name = "HOST[:PORT]")]
    pub(crate) target: String,
    /// One rate, in requests a second [default: 1000]
    #[arg(long, value_name = "RATE", value_parser = rates::rate, group = "model")]
    pub(crate) rate: Option<f64>,
    /// Rates in equal steps, such as 100:100:8000
    #[arg(long, value_name = "FIRST:STEP:LAST", group = "model")]
    pub(crate) ramp: Option<String>,
    /// Rates that grow by a factor, such as 1000:1.5:1000000
    #[arg(long, value_name = "FIRST:FACTOR:LAST", group = "model")]
    pub(crate) geometric: Option<String>,
    /// Search for the highest rate at which no more than --loss-max is lost
    #[arg(long, group = "model")]
    pub(crate) search: bool,
    /// Closed loop: keep this many requests in flight in each worker, at no set rate
    #[arg(long, value_name = "WINDOW", group = "model", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) closed: Option<u32>,
    /// Seconds that each step lasts [default: 5, in a search 1]
    #[arg(long, alias = "seconds", value_name = "S", value_parser = step_seconds)]
    pub(crate) step_seconds: Option<Duration>,
    /// Seconds of warm-up before each step: the same load, not counted
    #[arg(long, value_name = "S", default_value = "0", value_parser = warm_up)]
    pub(crate) warm_up: Duration,
    /// End after two steps in a row that lose more than this share; 1: never [default: 0.5 with --geometric]
    #[arg(long, value_name = "SHARE", value_parser = loss, conflicts_with_all = ["rate", "search", "closed"])]
    pub(crate) stop_at_loss: Option<f64>,
    /// Share of requests that may go unanswered in a search
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = share, requires = "search")]
    pub(crate) loss_max: f64,
    /// Seconds that a search takes at most, a last trial aside
    #[arg(long, value_name = "S", default_value = "60", value_parser = step_seconds, requires = "search")]
    pub(crate) budget: Duration,
    /// Where a search starts if it has no closed loop
    #[arg(long, value_name = "RATE", default_value_t = 1000.0, value_parser = rates::rate, requires = "search")]
    pub(crate) search_from: f64,
    /// No rate above this one is offered in a search, which then has no closed loop [default: 10000000]
    #[arg(long, value_name = "RATE", value_parser = rates::rate, requires = "search")]
    pub(crate) rate_max: Option<f64>,
    /// Intervals between requests
    #[arg(long, value_enum, default_value_t)]
    pub(crate) arrivals: ArrivalsArgument,
    /// Seed of the instants at which requests are due [default: a random one, which the record names]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Simulated clients, each with a port of its own
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) clients: u32,
    /// Spread the clients over the addresses of this prefix that this host has
    #[arg(long, value_name = "CIDR")]
    pub(crate) sources: Option<Prefix>,
    /// Threads that send, each on a processor of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) workers: u32,
    /// Do not pin these threads: the system chooses their processors
    #[arg(long)]
    pub(crate) unpinned: bool,
    /// Seconds that a request waits for its answer
    #[arg(long, value_name = "S", default_value = "1", value_parser = timeout)]
    pub(crate) timeout: Duration,
    /// Background load in requests a second, from further clients, which are not measured
    #[arg(long, value_name = "RATE", value_parser = rates::rate)]
    pub(crate) background: Option<f64>,
    /// Simulated clients of the background [default: as many as are measured]
    #[arg(long, value_name = "N", requires = "background")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) background_clients: Option<u32>,
    /// Addresses of this host that the background sends from, so that a server can tell it from measured clients
    #[arg(long, value_name = "ADDRESS[,..]", value_delimiter = ',', requires = "background")]
    pub(crate) background_sources: Vec<IpAddr>,
    /// A process of the server on this host, whose processor time and memory to record; may be repeated
    #[arg(long, value_name = "PID")]
    pub(crate) server_pid: Vec<u32>,
    /// Name of the server in the record and in reports
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Load the server even if the first request for time has no good answer
    #[arg(long, alias = "force")]
    pub(crate) force_first: bool,
    /// Exit with 4 if a step crosses this threshold, such as p99>2ms or loss>1%; may be repeated
    #[arg(long, value_name = "THRESHOLD")]
    pub(crate) fail_if: Vec<Threshold>,
    /// Fetch the spans of an authentick server from its metrics endpoint, and join them to the client's times
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) server_metrics: Option<String>,
    /// Write a row for each exchange of a measured client to this file, as CSV: both sides' times, stage by stage
    #[arg(long, value_name = "FILE", requires = "server_metrics")]
    pub(crate) spans: Option<OutputPath>,
    #[command(flatten)]
    pub(crate) coordination: Coordination,
    /// Client and server read the same clock, so that the true offset is zero [default: if they have one address]
    #[arg(long)]
    pub(crate) shared_clock: bool,
    /// Name of the network path in the record [default: loopback, local or network, by the address]
    #[arg(long, value_name = "LABEL")]
    pub(crate) path: Option<String>,
    #[command(flatten)]
    pub(crate) permission: Permit,
    /// Show the run on a live screen, on standard error; the table or the record follows on standard output
    #[arg(long)]
    pub(crate) tui: bool,
    /// Print the run record as JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the run record to this file
    #[arg(long, alias = "out", value_name = "FILE")]
    pub(crate) record: Option<OutputPath>,
    /// Write the steps to this file, as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<OutputPath>,
    /// Write the report to this file, as an HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<OutputPath>,
}

/// When requests leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalsArgument {
    /// All equal
    #[default]
    Constant,
    /// Exponentially distributed, as from many independent clients
    Exponential,
}

/// How a server of NTS under load proves who it is.
#[derive(Args, Debug)]
pub(crate) struct NtsLoad {
    /// Port of the key exchange
    #[arg(long, value_name = "N", default_value_t = authentick_ke::PORT)]
    pub(crate) ke_port: u16,
    #[command(flatten)]
    pub(crate) client: NtsClient,
    /// Seconds that a key exchange may take
    #[arg(long, value_name = "S", default_value = "10", value_parser = timeout)]
    pub(crate) ke_timeout: Duration,
}

fn loss(text: &str) -> Result<f64, String> {
    number(text, 0.0..=1.0, "no share from 0 to 1, such as 0.5")
}

fn warm_up(text: &str) -> Result<Duration, String> {
    number(text, 0.0..=3600.0, "no number of seconds from 0 to 3600").map(Duration::from_secs_f64)
}

fn share(text: &str) -> Result<f64, String> {
    number(text, 0.0..1.0, "no share from 0 to below 1, such as 0.01")
}
