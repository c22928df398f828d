//! Our own program, wherever it was built: run to its end, or as a server.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::certificates::Lab;
use crate::hosts::{Host, Hosts};
use crate::process::{PATIENCE, Process};

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The binary. Tests of its package find it in `CARGO_BIN_EXE_authentick`.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
}

impl Program {
    /// The program at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Program { path: path.into() }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Output {
        Command::new(&self.path).args(arguments).output().unwrap()
    }

    /// Starts a server with the configuration in this file.
    ///
    /// # Panics
    /// If it does not come up.
    #[must_use]
    pub fn serve(&self, config: &Path) -> Server {
        self.start(Command::new(&self.path), config)
    }

    /// The same with a soft and hard limit of so many descriptors.
    ///
    /// # Panics
    /// If it does not come up.
    #[must_use]
    pub fn serve_with_descriptors(&self, count: usize, config: &Path) -> Server {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {count} && exec \"$0\" \"$@\"")]).arg(&self.path);
        self.start(command, config)
    }

    /// The same on a host. What [`Server`] asks of the server is then to be asked within that host.
    ///
    /// # Panics
    /// If it does not come up.
    #[must_use]
    pub fn serve_on(&self, hosts: &Hosts, host: Host, config: &Path) -> Server {
        self.start(hosts.on(host, &self.path), config)
    }

    fn start(&self, mut command: Command, config: &Path) -> Server {
        let mut process = Process::start(command.arg("serve").arg("--config").arg(config));
        let text = std::fs::read_to_string(config).unwrap();
        let mut address = |key: &str, part: &str| match text.lines().any(|line| line == format!("{key} = []"))
        {
            true => NOWHERE,
            false => process.wait_for_line(part).parse().unwrap(),
        };
        let ntp = address("listen", "serving time on ");
        let ke = address("ke-listen", "exchanging keys on ");
        let metrics = process.wait_for_line("showing metrics on http://");
        let metrics = metrics.trim_end_matches("/metrics").parse().unwrap();
        Server { ntp, ke, metrics, process, program: self.clone() }
    }
}

/// A running `authentick serve`. Its methods panic where a test would.
#[derive(Debug)]
pub struct Server {
    /// The process.
    pub process: Process,
    /// Where it serves time; port 0 if it does not.
    pub ntp: SocketAddr,
    /// Where it exchanges keys; port 0 if it does not.
    pub ke: SocketAddr,
    /// Where it shows metrics.
    pub metrics: SocketAddr,
    program: Program,
}

impl Server {
    /// Asks the endpoint.
    #[must_use]
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.metrics).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// A metric by its name and labels as they are written.
    #[must_use]
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
    }

    /// A metric of the certificate whose chain is in this file.
    #[must_use]
    pub fn of_certificate(&self, name: &str, chain: &Path) -> f64 {
        let (text, start) = (self.get("/metrics"), format!("{name}{{certificate={chain:?}"));
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        let value = line.and_then(|line| line.rsplit(' ').next());
        value.unwrap_or_else(|| panic!("no {start} in\n{text}")).parse().unwrap()
    }

    /// How many datagrams came to this end.
    #[must_use]
    pub fn outcome(&self, label: &str) -> f64 {
        self.metric(&format!("ntp_server_packets_total{{outcome=\"{label}\"}}"))
    }

    /// `query` under NTS with further arguments.
    #[must_use]
    pub fn query(&self, lab: &Lab, arguments: &[&str]) -> Output {
        let (ca, host, port) = (lab.ca(), self.ke.ip().to_string(), self.ke.port().to_string());
        let mut all = vec!["query", &host, "--ca", ca.to_str().unwrap(), "--ke-port", &port];
        all.extend(arguments);
        self.program.run(all)
    }
}
