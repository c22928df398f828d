//! The command line as it is written. What it means is decided in `cmd`.

mod allowed;
mod antp;
#[cfg(test)]
mod manual;

use std::path::PathBuf;

use authentick_crypto::mac::MacAlgorithm;
use authentick_load::agent::Limits as AgentLimits;
use authentick_load::rates;
use authentick_wire::ke::AeadId;
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::allowed::AllowedTypes;
pub(crate) use self::antp::{AntpLoad, AntpQuery};

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
    /// Load a server and say what it holds
    Load(Load),
    /// Ask a server for the time at a set rate, with NtpStress's arguments and report
    Stress(Stress),
    /// Make, list, rotate and retire cookie keys; and symmetric keys: `keys symmetric`
    Keys(Keys),
    /// Say what this host offers: instructions, clock, stamps, limits
    Doctor(Doctor),
    /// Render stored runs, and compare load runs
    Report(Report),
    /// Measure what cryptography costs here, beside what was published
    Bench(Bench),
    /// Repeat a paper's experiments, and render them beside what was published
    Study(Study),
    /// Extrapolate: how many clients one server holds
    Plan(Plan),
    /// Play the adversary: which attacks on an authentication scheme succeed, and under which conditions
    Game(Game),
}

#[derive(Args, Debug)]
pub(crate) struct Plan {
    #[command(subcommand)]
    pub(crate) verb: PlanVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanVerb {
    /// ANTP, as its paper extrapolates: from rates, poll interval and re-keying period
    Antp(PlanAntp),
}

#[derive(Args, Debug)]
pub(crate) struct PlanAntp {
    /// Time requests a second that one server answers, as `load antp --search` finds
    #[arg(long, value_name = "RATE", value_parser = rates::rate)]
    pub(crate) time_rate: f64,
    /// Key exchanges a second that it answers, as `load antp-exchange --search` finds
    #[arg(long, value_name = "RATE", value_parser = rates::rate, requires = "negotiation_rate")]
    pub(crate) exchange_rate: Option<f64>,
    /// Negotiations a second that it answers, as `load antp-negotiate --search` finds
    #[arg(long, value_name = "RATE", value_parser = rates::rate, requires = "exchange_rate")]
    pub(crate) negotiation_rate: Option<f64>,
    /// From one time request of a client to the next, such as 1024 (seconds) or 30min
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub(crate) poll: std::time::Duration,
    /// From one key exchange of a client to the next, such as 30days
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub(crate) rekey: std::time::Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) verb: BenchVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchVerb {
    /// MACs of NTP packets: the tables of the drafts on MACs for NTP, and which algorithm suits this host
    Mac(BenchMac),
}

#[derive(Args, Debug)]
pub(crate) struct BenchMac {
    /// Take some seconds instead of two minutes
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rounds, in which all that is compared takes its turn [default: 31, with --quick 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Milliseconds of a turn [default: 20, with --quick 3]
    #[arg(long, value_name = "MS", value_parser = turn_ms)]
    pub(crate) turn_ms: Option<std::time::Duration>,
    /// Single MACs of each kind that are timed in a round [default: 4000, with --quick 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub(crate) singles: Option<u32>,
    /// Print the record instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Be the process from which the instructions are hidden, under the orders of another
    #[arg(long, hide = true, conflicts_with_all = ["json", "html"])]
    pub(crate) without_instructions: bool,
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
    /// Stop when standard input ends too, as it does with whoever holds its other end
    #[arg(long, conflicts_with = "check")]
    pub(crate) until_eof: bool,
}

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
    /// Trust the authorities in this PEM file, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// The name that the server's certificate must have [default: HOST]
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
    /// Offer this AEAD algorithm alone: 15, 16, 17 or 30; may be repeated, the best first [default: 30, 15]
    #[arg(long, value_name = "ID", value_parser = aead)]
    pub(crate) aead: Vec<AeadId>,
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

/// Programs with key files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeysFormat {
    /// As it looks
    #[default]
    Auto,
    /// chrony's
    Chrony,
    /// ntpd's
    Ntp,
}

/// The key that clients share with the server.
#[derive(Args, Debug)]
pub(crate) struct SharedKeyArguments {
    /// The file with the key, as chrony and ntpd have them
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: PathBuf,
    /// Which of its keys
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) key_id: u32,
    /// Whose key file it is, where it could be either's
    #[arg(long, value_enum, default_value_t)]
    pub(crate) keys_format: KeysFormat,
    #[command(flatten)]
    pub(crate) allowed: AllowedTypes,
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
pub(crate) struct Doctor {
    /// Examine this host
    #[arg(long, required = true)]
    pub(crate) host: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Game {
    #[command(subcommand)]
    pub(crate) scheme: GameScheme,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GameScheme {
    /// Message authentication codes: what the drafts on MACs for NTP argue, as programs
    Mac(GameMac),
}

#[derive(Args, Debug)]
pub(crate) struct GameMac {
    /// What to play
    #[arg(value_enum, default_value_t = GameProgram::All)]
    pub(crate) program: GameProgram,
    /// What decides keys, nonces and messages: the same number has the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// `limits`: numbers of messages to have in the table, such as 1000000 or 2^40; several with commas
    #[arg(long, value_name = "Q", value_delimiter = ',', value_parser = power_of_two)]
    pub(crate) queries: Vec<f64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A program of the game of MACs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GameProgram {
    /// MD5 and its like: a longer message from one tag
    LengthExtension,
    /// GMAC under a repeated nonce
    GmacNonce,
    /// Poly1305 under a repeated nonce
    #[value(name = "poly1305-nonce")]
    Poly1305Nonce,
    /// HMAC, CMAC and GMAC-SIV before the same adversary
    Others,
    /// Three ways of replacing a GMAC key in time
    Refresh,
    /// Salts that associations share
    Salt,
    /// How many messages a key may authenticate
    Limits,
    /// All of them
    All,
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
    /// The same for symmetric keys, in a file that chrony and ntpd can read too
    Symmetric(SymmetricKeys),
}

#[derive(Args, Debug)]
pub(crate) struct SymmetricKeys {
    #[command(subcommand)]
    pub(crate) verb: SymmetricVerb,
    /// The key file, instead of the one in the configuration
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Whose key file it is, where it could be either's, and how a new one is written [auto: as chrony's]
    #[arg(long, global = true, value_enum, default_value_t)]
    pub(crate) keys_format: KeysFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SymmetricVerb {
    /// Make a key, and the file if there is none
    Generate {
        /// Its type
        #[arg(long = "type", value_name = "TYPE", default_value = "AES128", value_parser = mac_algorithm)]
        algorithm: MacAlgorithm,
        /// Its id [default: the lowest that is free]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        id: Option<u32>,
        /// With GMAC128: four octets of nonces are kept with the key, and eight random ones are on the wire
        #[arg(long)]
        salt: bool,
    },
    /// List ids, types, states, ages and uses, never secrets
    List,
    /// Make a key that takes the place of another; both are accepted for some time
    Rotate {
        /// The old one's id
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u32).range(1..))]
        id: u32,
        /// The new one's id [default: the next that is free]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        new_id: Option<u32>,
        /// How long the old one is still accepted
        #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = overlap)]
        overlap: std::time::Duration,
    },
    /// Remove a key: requests under it are not given time any more
    Retire {
        /// Its id
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u32).range(1..))]
        id: u32,
    },
}

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
        trust: Trust,
        /// Send one cookie of each client again and again, as no client does: cheaper to offer
        #[arg(long)]
        replay_cookie: bool,
    },
    /// Key exchanges alone; TARGET's port is that of the key exchange
    Ke {
        #[command(flatten)]
        load: Box<LoadArguments>,
        #[command(flatten)]
        trust: Trust,
    },
    /// Key exchanges, each followed by transfers; rates are those of the key exchanges
    Mix {
        #[command(flatten)]
        load: Box<LoadArguments>,
        #[command(flatten)]
        trust: Trust,
        /// Transfers after each key exchange
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
        transfers_per_exchange: u32,
        /// Send them all with one cookie, as the NTS study did
        #[arg(long)]
        same_cookie: bool,
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

/// The files by which agents and coordinators prove to each other who they are.
#[derive(Args, Debug)]
pub(crate) struct Agent {
    /// Where coordinators connect to
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: std::net::SocketAddr,
    /// This agent's certificates, its own first, PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate_chain: PathBuf,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) private_key: PathBuf,
    /// Authorities that vouch for coordinators, PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) coordinators_ca: PathBuf,
    /// Load targets in this prefix too, besides loopback and private ones; may be repeated
    #[arg(long, value_name = "PREFIX")]
    pub(crate) allow: Vec<authentick_proto::prefix::Prefix>,
    /// Operations a second, at most
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().rate_rps_max, value_parser = rates::rate)]
    pub(crate) rate_max: f64,
    /// Seconds of a step, at most
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().duration_max.as_secs())]
    pub(crate) seconds_max: u64,
    /// Simulated clients, at most
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().client_count_max)]
    pub(crate) clients_max: u32,
    /// Threads that send, at most
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().worker_count_max)]
    pub(crate) workers_max: u32,
    /// Leave it to the system on which processors threads run: other generators share this host
    #[arg(long)]
    pub(crate) unpinned: bool,
    /// Operations in flight in a closed loop, at most
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().in_flight_max)]
    pub(crate) in_flight_max: u32,
    /// Stop when standard input ends too, as it does with whoever holds its other end
    #[arg(long)]
    pub(crate) until_eof: bool,
}

/// Which agents send, and who gives them orders.
#[derive(Args, Debug)]
pub(crate) struct Coordination {
    /// Let these agents send instead of this host
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    #[arg(requires_all = ["agent_ca", "certificate_chain", "private_key"])]
    pub(crate) agents: Vec<String>,
    /// Authorities that vouch for agents, PEM
    #[arg(long, value_name = "FILE", requires = "agents")]
    pub(crate) agent_ca: Option<PathBuf>,
    /// The coordinator's certificates, its own first, PEM
    #[arg(long, value_name = "FILE", requires = "agents")]
    pub(crate) certificate_chain: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "agents")]
    pub(crate) private_key: Option<PathBuf>,
}

/// How a server under load proves who it is.
#[derive(Args, Debug)]
pub(crate) struct Trust {
    /// Port of the key exchange
    #[arg(long, value_name = "N", default_value_t = authentick_ke::PORT)]
    pub(crate) ke_port: u16,
    /// Trust the authorities in this PEM file, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// The name that the server's certificate must have [default: TARGET's host]
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
    /// Offer this AEAD algorithm alone: 15, 16, 17 or 30; may be repeated, the best first [default: 30, 15]
    #[arg(long, value_name = "ID", value_parser = aead)]
    pub(crate) aead: Vec<AeadId>,
    /// Seconds that a key exchange may take
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub(crate) ke_timeout: std::time::Duration,
}

/// Whom the user allows to load, besides what is nobody else's.
#[derive(Args, Debug)]
pub(crate) struct Permit {
    /// Load this host although its address is public; must repeat the name of the server
    #[arg(long, value_name = "HOST")]
    pub(crate) permit: Option<String>,
    /// A file of prefixes that may be loaded besides loopback and private addresses, one on a line
    #[arg(long, value_name = "FILE")]
    pub(crate) allow_list: Option<PathBuf>,
}

/// When requests leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalsArgument {
    /// At equal distances
    #[default]
    Constant,
    /// At exponentially distributed distances, as of many independent clients
    Exponential,
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
    /// Rates at equal distances, such as 100:100:8000
    #[arg(long, value_name = "FIRST:STEP:LAST", group = "model")]
    pub(crate) ramp: Option<String>,
    /// Rates in equal ratios, such as 1000:1.5:1000000
    #[arg(long, value_name = "FIRST:FACTOR:LAST", group = "model")]
    pub(crate) geometric: Option<String>,
    /// Search for the highest rate at which no more than --loss-max is lost
    #[arg(long, group = "model")]
    pub(crate) search: bool,
    /// No rate: keep so many requests in flight in each worker
    #[arg(long, value_name = "WINDOW", group = "model", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) closed: Option<u32>,
    /// Seconds that each step lasts
    #[arg(long, alias = "seconds", value_name = "S", default_value = "5", value_parser = step_seconds)]
    pub(crate) step_seconds: std::time::Duration,
    /// Share of requests that may go unanswered in a search
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = share, requires = "search")]
    pub(crate) loss_max: f64,
    /// Where a search starts
    #[arg(long, value_name = "RATE", default_value_t = 1000.0, value_parser = rates::rate, requires = "search")]
    pub(crate) search_from: f64,
    /// No rate above this one is offered in a search
    #[arg(long, value_name = "RATE", default_value_t = 10e6, value_parser = rates::rate, requires = "search")]
    pub(crate) rate_max: f64,
    /// Distances between requests
    #[arg(long, value_enum, default_value_t)]
    pub(crate) arrivals: ArrivalsArgument,
    /// Seed of exponential distances [default: a random one, which the record names]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Simulated clients, each with a port of its own
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) clients: u32,
    /// Spread the clients over the addresses of this prefix that this host has
    #[arg(long, value_name = "CIDR")]
    pub(crate) sources: Option<authentick_proto::prefix::Prefix>,
    /// Threads that send, each on a processor of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) workers: u32,
    /// Leave it to the system on which processors these threads run
    #[arg(long)]
    pub(crate) unpinned: bool,
    /// Seconds that a request waits for its answer
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    pub(crate) timeout: std::time::Duration,
    /// Requests a second of further clients beside the measured ones, which alone are measured
    #[arg(long, value_name = "RATE", value_parser = rates::rate)]
    pub(crate) background: Option<f64>,
    /// Report processor time and memory of this process of the server, which runs on this host
    #[arg(long, value_name = "PID")]
    pub(crate) server_pid: Option<u32>,
    /// Join the spans of an authentick server whose metrics are at this address
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) server_metrics: Option<String>,
    #[command(flatten)]
    pub(crate) coordination: Coordination,
    /// Client and server read the same clock, so that the true offset is zero [default: if they have one address]
    #[arg(long)]
    pub(crate) shared_clock: bool,
    /// What the path is called in the record [default: loopback, local or network, by the address]
    #[arg(long, value_name = "LABEL")]
    pub(crate) path: Option<String>,
    #[command(flatten)]
    pub(crate) permission: Permit,
    /// Show the run on a live screen, on standard error; the table or the record follows on standard output
    #[arg(long)]
    pub(crate) tui: bool,
    /// Print the run record instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the run record
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Keep the steps as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Keep the report as a page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Stress {
    /// The server [default port: 123]
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// Requests a second
    #[arg(value_name = "RATE", value_parser = rates::rate)]
    pub(crate) rate: f64,
    /// How long, in seconds
    #[arg(value_name = "SECONDS", value_parser = step_seconds)]
    pub(crate) seconds: std::time::Duration,
    /// Where the report goes
    #[arg(value_name = "REPORT", default_value = "ntpdata.txt")]
    pub(crate) report: PathBuf,
    #[command(flatten)]
    pub(crate) permission: Permit,
}

#[derive(Args, Debug)]
pub(crate) struct Study {
    #[command(subcommand)]
    pub(crate) verb: StudyVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudyVerb {
    /// Measure what a paper measured, and render it
    Run(Box<StudyRun>),
    /// Render what is in a study's folder, and nothing else
    Render {
        /// The folder of the study
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Papers whose experiments are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaperArgument {
    /// Spectracom, "NTP Server Capacity Testing": the request threshold, from one host and from several
    Threshold,
    /// draft-aanchal4-ntp-mac-00 and draft-ietf-ntp-mac: MACs for NTP, on this host
    Mac,
    /// "Authenticated Network Time Synchronization": the phases of ANTP under load, over a short and a long path
    Antp,
}

#[derive(Args, Debug)]
pub(crate) struct StudyRun {
    /// The paper
    #[arg(value_name = "PAPER", value_enum)]
    pub(crate) paper: PaperArgument,
    /// Where plan, records and report go; the same command again goes on there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Take a minute or less instead of a quarter of an hour (threshold) or two minutes (mac); some minutes instead of
    /// hours (antp)
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seconds of each row or trial, instead of the paper's
    #[arg(long, value_name = "S", value_parser = step_seconds)]
    pub(crate) step_seconds: Option<std::time::Duration>,
    /// Multiply the paper's rates [default: 1 with --target, else so that this machine's limit lies among them]
    #[arg(long, value_name = "FACTOR", value_parser = scale)]
    pub(crate) scale: Option<f64>,
    /// Measure this server instead of one of our own on loopback [default port: 123]
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) target: Option<String>,
    /// Load this host although its address is public; must repeat --target's host
    #[arg(long, value_name = "HOST", requires = "target")]
    pub(crate) permit: Option<String>,
    #[command(flatten)]
    pub(crate) coordination: Coordination,
    /// A record of the server in its earlier configuration, for the paper's third result
    #[arg(long, value_name = "RUN.json", requires = "new")]
    pub(crate) old: Option<PathBuf>,
    /// A record of the server in its updated configuration
    #[arg(long, value_name = "RUN.json", requires = "old")]
    pub(crate) new: Option<PathBuf>,
}

fn least_ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio > 0.0 && ratio.is_finite() => Ok(ratio),
        _ => Err("no ratio above 0, such as 0.95".to_owned()),
    }
}

/// A number of messages, as its base-2 logarithm.
fn power_of_two(text: &str) -> Result<f64, String> {
    const MOST_LOG2: f64 = 128.0;
    let log2 = match text.strip_prefix("2^") {
        Some(exponent) => exponent.parse::<f64>().ok(),
        None => text.parse::<u128>().ok().filter(|count| *count > 0).map(|count| (count as f64).log2()),
    };
    log2.filter(|log2| (0.0..=MOST_LOG2).contains(log2))
        .ok_or_else(|| format!("no number of messages from 1 to 2^{MOST_LOG2}, such as 1000000 or 2^40"))
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (0.001..=10_000.0).contains(&factor) => Ok(factor),
        _ => Err("no factor from 0.001 to 10000".to_owned()),
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

fn mac_algorithm(text: &str) -> Result<MacAlgorithm, String> {
    use authentick_daemon::symmetric::types::Type;
    match Type::find(text.as_bytes()) {
        Some(Type::Known(algorithm, _)) => Ok(algorithm),
        Some(Type::Foreign(name)) => Err(format!("keys of type {name} are not implemented here")),
        None => Err(format!("no type of keys; {}", authentick_daemon::symmetric::types::REMEDY)),
    }
}

fn overlap(text: &str) -> Result<std::time::Duration, String> {
    const MOST: std::time::Duration = std::time::Duration::from_secs(3650 * 86_400);
    match humantime::parse_duration(text) {
        Ok(duration) if duration <= MOST => Ok(duration),
        Ok(_) => Err("more than 3650 days; retire the key by hand instead".to_owned()),
        Err(error) => Err(format!("{error}; durations look like 30d or 12h")),
    }
}

/// Seconds, or a time with its unit.
fn interval(text: &str) -> Result<std::time::Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds) => Ok(std::time::Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text)
            .map_err(|error| format!("{error}; write seconds, or a time such as 30min or 30days")),
    }
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    const MOST: f64 = 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=MOST).contains(&seconds) => Ok(std::time::Duration::from_secs_f64(seconds)),
        _ => Err(format!("no number of seconds from 0 to {MOST}")),
    }
}

fn turn_ms(text: &str) -> Result<std::time::Duration, String> {
    match text.parse::<f64>() {
        Ok(ms) if (0.01..=10_000.0).contains(&ms) => Ok(std::time::Duration::from_secs_f64(ms / 1e3)),
        _ => Err("no number of milliseconds from 0.01 to 10000".to_owned()),
    }
}

fn step_seconds(text: &str) -> Result<std::time::Duration, String> {
    const MOST: f64 = 3600.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=MOST).contains(&seconds) => Ok(std::time::Duration::from_secs_f64(seconds)),
        _ => Err(format!("no number of seconds from 0.01 to {MOST}")),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("no share from 0 to below 1, such as 0.01".to_owned()),
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
        assert_eq!(
            (power_of_two("1"), power_of_two("2^40"), power_of_two("1024")),
            (Ok(0.0), Ok(40.0), Ok(10.0))
        );
        assert!(
            ["0", "-1", "2^", "2^129", "2^-1", "2^nan", "1.5", ""]
                .iter()
                .all(|text| power_of_two(text).is_err())
        );
        assert!(["0", "-1", "nan", "inf", "x"].iter().all(|text| least_ratio(text).is_err()));
    }
}
