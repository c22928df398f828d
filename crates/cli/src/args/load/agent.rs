//! What an agent of `load` is told, and who gives it orders.

use std::net::SocketAddr;
use std::path::PathBuf;

use authentick_load::agent::Limits as AgentLimits;
use authentick_load::rates;
use authentick_proto::prefix::Prefix;
use clap::Args;

/// The files by which agents and coordinators prove to each other who they are.
#[derive(Args, Debug)]
pub(crate) struct Agent {
    /// Where coordinators connect to
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: SocketAddr,
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
    pub(crate) allow: Vec<Prefix>,
    /// Highest rate that is accepted, in operations a second
    #[arg(long, alias = "rate-max", value_name = "N", default_value_t = AgentLimits::default().rate_rps_max)]
    #[arg(value_parser = rates::rate)]
    pub(crate) rate_limit: f64,
    /// Longest step that is accepted, in seconds
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().duration_max.as_secs())]
    pub(crate) seconds_max: u64,
    /// Most simulated clients that are accepted
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().client_count_max)]
    pub(crate) clients_max: u32,
    /// Most sending threads that are accepted
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().worker_count_max)]
    pub(crate) workers_max: u32,
    /// Do not pin threads: other generators share this host
    #[arg(long)]
    pub(crate) unpinned: bool,
    /// Most operations in flight in a closed loop that are accepted
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().in_flight_max)]
    pub(crate) in_flight_max: u32,
    /// Stop also at the end of standard input, so that the agent ends with the program that started it
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

impl Coordination {
    /// Certificate chain, private key, and the authorities of agents: the parser takes all of them or none.
    pub(crate) fn files(&self) -> Option<[&PathBuf; 3]> {
        Some([self.certificate_chain.as_ref()?, self.private_key.as_ref()?, self.agent_ca.as_ref()?])
    }
}
