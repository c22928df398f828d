//! What can the load generator itself do, and does it find what an independent one finds?
//!
//! Goals: the rates of Debian's chrony and of our server by closed loop and by a bare generator, which shares nothing
//! of our engine, within a tenth of each other, and within the intervals of searches, under each of four schemes
//! (`agreement`); what one core of ours offers, checks, and keeps to its schedule; what simulated clients cost in
//! memory; and what NTS adds to a round trip of our server. Non-goals: how fast our server is (`capacity`). Offers are
//! made to a socket that nobody reads: an echo in the driver needs BPF, which is not here.
//!
//! `cargo bench -p authentick --bench instrument` takes twenty minutes; as root it makes two network namespaces,
//! otherwise it uses loopback and says so. `cargo xtask peers` brings chrony. `-- --milliseconds 50` shortens its
//! steps. Among the tests it runs once, with steps of some milliseconds. It fails only if something does not answer.

mod agreement;
#[path = "../capacity/antp.rs"]
mod antp;
#[path = "../capacity/chrony.rs"]
mod chrony;
#[path = "../capacity/floor.rs"]
#[expect(dead_code, reason = "the echo is another bench's")]
mod floor;
mod handshakes;
#[path = "../capacity/load.rs"]
#[expect(dead_code, reason = "labels are another bench's")]
mod load;
mod own;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use authentick_lab::certificates::Lab;
use authentick_lab::process::Process;
use authentick_report::units::{count, memory, microseconds, rate};
use authentick_rig::pair::Pair;
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};

use self::own::{Measured, Model};

type Error = Box<dyn std::error::Error>;

/// ntpperf, which could not send more from one core of such a machine: "Could not send requests at rate 65000".
const NTPPERF_RPS: f64 = 65_000.0;
/// A rate at which requests meet no others.
const QUIET_RPS: f64 = 1000.0;
/// What the pacer is to keep to.
const PACED_RPS: f64 = 100_000.0;

/// All clients have one address here, which no server should serve without limit.
const NO_KE_LIMITS: &str = "ke-limits = { per-prefix-rate = 0, per-network-rate = 0 }";

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--load", kind, ntp, ke_port, ca, milliseconds] => {
            load::measure([kind, ntp, ke_port, ca, milliseconds])
        }
        ["--handshakes", address, ca, milliseconds] => handshakes::measure([address, ca, milliseconds]),
        ["--own", ..] => {
            println!("{}", own::run(&words[1..])?);
            Ok(())
        }
        [.., "--milliseconds", milliseconds] | ["--milliseconds", milliseconds, ..]
            if words.contains(&"--bench") =>
        {
            bench(Size { milliseconds: milliseconds.parse()?, ..Size::FULL })
        }
        _ if words.contains(&"--bench") => bench(Size::FULL),
        _ => bench(Size::SMOKE),
    }
}

/// In which ways are compared: blocks of rounds, with a search between two blocks.
#[derive(Clone, Copy)]
struct Rounds {
    block_count: usize,
    /// Of one block.
    round_count: usize,
    /// How long each way loads in a round.
    milliseconds: u64,
}

/// How much to measure.
#[derive(Clone, Copy)]
struct Size {
    round_count: usize,
    milliseconds: u64,
    agreement: Rounds,
    /// How long each trial of a search lasts.
    trial_milliseconds: u64,
    /// Where searches begin and end.
    rates_rps: (f64, f64),
    client_count: u32,
    isolated: bool,
}

impl Size {
    const FULL: Size = Size {
        round_count: 3,
        milliseconds: 2000,
        agreement: Rounds { block_count: 4, round_count: 5, milliseconds: 300 },
        trial_milliseconds: 500,
        rates_rps: (100_000.0, 4e6),
        client_count: 8000,
        isolated: true,
    };
    const SMOKE: Size = Size {
        round_count: 1,
        milliseconds: 20,
        agreement: Rounds { block_count: 2, round_count: 1, milliseconds: 20 },
        trial_milliseconds: 20,
        rates_rps: (2000.0, 4000.0),
        client_count: 64,
        isolated: false,
    };
}

/// One line of the result.
struct Row {
    what: String,
    measured: String,
    to_reach: &'static str,
}

/// What everything needs.
struct Bench {
    size: Size,
    pair: Pair,
    files: Lab,
    this: PathBuf,
    rows: Vec<Row>,
}

fn bench(size: Size) -> Result<(), Error> {
    let (pair, why_not) = Pair::new(size.isolated);
    if let Some(reason) = why_not {
        println!("on loopback, as namespaces cannot be made: {reason}");
    }
    // A client verifies two signatures of P-256 and the server makes one: under such a certificate one core of clients
    // never has more than one core of servers can do. With RSA the server has by far the larger part.
    let files = Lab::new();
    files.renew_for(&KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?, |_| {});
    let mut bench = Bench { size, pair, files, this: std::env::current_exe()?, rows: Vec::new() };
    bench.head();
    agreement::measure(&bench)?;
    bench.offered()?;
    bench.against_ours()?;
    bench.print();
    Ok(())
}

impl Bench {
    fn add(&mut self, what: impl Into<String>, measured: String, to_reach: &'static str) {
        self.rows.push(Row { what: what.into(), measured, to_reach });
    }

    /// Where this is measured.
    fn head(&self) {
        println!("path: {}; server on one core, generator on another", self.pair.path_name());
        if !self.size.isolated {
            println!("smoke size: these figures say that the bench works, and nothing else");
        }
    }

    fn print(&self) {
        println!("{:<62} {:>26}   to reach", "what", "measured");
        for Row { what, measured, to_reach } in &self.rows {
            println!("{what:<62} {measured:>26}   {to_reach}");
        }
    }

    /// What one core offers to somebody who takes everything and says nothing.
    fn offered(&mut self) -> Result<(), Error> {
        let sink = self.pair.sink()?;
        let target = sink.local_addr()?;
        let (from, most) = self.size.rates_rps;
        let kept = self.own(target, 0, "plain", 512, Model::Search { from, most })?;
        let found = if kept.offered_rps > 0.0 { rate(kept.offered_rps) } else { "none found".to_owned() };
        self.add("one core, requests/s on schedule, to a silent socket", found, "500,000");
        let flood = self.own(target, 0, "plain", 512, Model::Rate(most))?;
        self.add("the same, without heed of the schedule", rate(flood.sent_rps), "-");
        Ok(())
    }

    /// Answers checked, lateness and memory, against our own server.
    fn against_ours(&mut self) -> Result<(), Error> {
        let listen = format!("{}:0", self.pair.server_address());
        let nts = format!("ke-listen = [{listen:?}]\nke-workers = 1\n{NO_KE_LIMITS}");
        let config = self.files.config(&format!("listen = [{listen:?}]"), &nts);
        let mut command = self.pair.on_server(Path::new(env!("CARGO_BIN_EXE_authentick")));
        let mut server = Process::start(command.arg("serve").arg("--config").arg(config));
        let ntp: SocketAddr = server.wait_for_line("serving time on ").parse()?;
        let ke: SocketAddr = server.wait_for_line("exchanging keys on ").parse()?;
        let (from, most) = self.size.rates_rps;
        let checked = self.own(ntp, ke.port(), "plain", 512, Model::Flood { from, most })?.answering()?;
        let ratio = checked.answered_rps / NTPPERF_RPS;
        let measured = format!("{} ({ratio:.1} x ntpperf)", rate(checked.answered_rps));
        self.add("one core, answers checked a second, plain", measured, "195,000 (3 x ntpperf)");
        let checked = self.own(ntp, ke.port(), "nts15", 512, Model::Flood { from, most })?.answering()?;
        self.add("one core, answers checked a second, NTS", rate(checked.answered_rps), "-");
        let paced = PACED_RPS.min(most);
        let mut late = Vec::new();
        for _ in 0..self.size.round_count {
            late.push(self.own(ntp, ke.port(), "plain", 512, Model::Rate(paced))?.answering()?.late_p99_us);
        }
        let measured = microseconds(median(&late));
        self.add(format!("lateness at {}/s, 99th percentile", rate(paced)), measured, "50 us");
        self.latency(ntp, ke)?;
        let clients = self.size.client_count;
        for scheme in ["plain", "nts15"] {
            let own = self.own(ntp, ke.port(), scheme, clients, Model::Rate(from / 10.0))?.answering()?;
            let what = format!("{} clients, {scheme}, resident memory", count(clients.into()));
            self.add(what, memory(own.resident_size), "200 MiB");
        }
        Ok(())
    }

    /// What authentication adds to a round trip while nobody else asks.
    fn latency(&mut self, ntp: SocketAddr, ke: SocketAddr) -> Result<(), Error> {
        let schemes = ["plain", "nts15", "nts30"];
        let mut medians: [Vec<f64>; 3] = Default::default();
        for _ in 0..2 * self.size.round_count + 1 {
            for (scheme, medians) in schemes.into_iter().zip(&mut medians) {
                let own = self.own(ntp, ke.port(), scheme, 64, Model::Rate(QUIET_RPS))?.answering()?;
                medians.push(own.latency_p50_us);
            }
        }
        let plain = median(&medians[0]);
        self.add(format!("median round trip at {}/s, plain", rate(QUIET_RPS)), microseconds(plain), "-");
        for (name, medians) in [("AEAD 15", &medians[1]), ("AEAD 30", &medians[2])] {
            let nts = median(medians);
            let measured = format!("{} (+{:.1} %)", microseconds(nts), (nts / plain - 1.0) * 100.0);
            self.add(format!("the same, NTS with {name}"), measured, "+3 %");
        }
        Ok(())
    }

    /// Our generator in a process of its own, without the program around it.
    fn own(
        &self,
        ntp: SocketAddr,
        ke_port: u16,
        scheme: &str,
        clients: u32,
        model: Model,
    ) -> Result<Measured, Error> {
        let output = self
            .pair
            .on_client(&self.this)
            .args(["--own", scheme, &ntp.to_string(), &ke_port.to_string()])
            .arg(self.files.ca())
            .args([clients.to_string(), model.to_string(), self.size.milliseconds.to_string()])
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| {
            format!("{scheme} to {ntp}, {model}: {text}{}", String::from_utf8_lossy(&output.stderr)).into()
        })
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
