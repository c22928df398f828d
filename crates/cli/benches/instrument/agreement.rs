//! Do a closed loop of ours, a bare generator and searches find the same rate of one server?
//!
//! Ways take turns in short rounds, so that a machine that slows down affects both. A round in which the generator's
//! own record says that the host kept it from its processor is excluded, for both ways, and counted. Rounds come in
//! blocks, with a search between two of them: what it finds is compared with the closed loop's median in both.
//!
//! Both loops give up a request after the same time. A search tolerates a loss of 5 %, not of 1 %: chrony's socket has
//! room for some 300 requests, and where the host keeps the server from its core for 5 ms at a time, it loses 1 % at
//! any rate. Under NTS both send the cookies of their clients again and again: a request that is lost takes a cookie
//! with it, and key exchanges for new ones would be a load of their own, on the same core.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use authentick_lab::peers;
use authentick_lab::process::Process;
use authentick_report::load::{Capacity, Evidence, LoadRecord, Step};
use authentick_report::units::rate;

use super::load::{self, Kind};
use super::{Bench, Error, NO_KE_LIMITS, Rounds, chrony, handshakes};

/// Requests in flight, as many as the bare generator has.
const WINDOW: &str = "512";
/// How long a request of a closed loop waits for its answer, in seconds: as long as one of the bare generator.
const PATIENCE: &str = "0.02";
/// How often a run is begun, where it is only to be seen that the bench works, until the server answers.
const FIRST_COUNT: usize = 20;
/// What a search tolerates.
const LOSS_MAX: f64 = 0.05;
/// A round does not count if somebody else had a sending thread's processor for more than this share of it.
const TAKEN_SHARE_MAX: f64 = 0.05;
/// Where chrony serves time and exchanges keys.
const CHRONY_PORTS: (u16, u16) = (10_323, 14_660);

/// What is asked of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Plain,
    Cmac,
    Nts,
    KeyExchange,
}

impl Scheme {
    const ALL: [Scheme; 4] = [Scheme::Plain, Scheme::Cmac, Scheme::Nts, Scheme::KeyExchange];

    const fn label(self) -> &'static str {
        match self {
            Scheme::Plain => "plain",
            Scheme::Cmac => "AES-CMAC",
            Scheme::Nts => "NTS, AEAD 15",
            Scheme::KeyExchange => "key exchange",
        }
    }

    /// Where a search starts, and the highest rate that it may offer, both by the bench's own.
    fn rates_rps(self, (from, most): (f64, f64)) -> (f64, f64) {
        match self {
            Scheme::KeyExchange => ((from / 500.0).max(10.0), (most / 50.0).max(20.0)),
            Scheme::Plain | Scheme::Cmac | Scheme::Nts => (from, most),
        }
    }
}

/// A server to load.
struct Subject {
    name: &'static str,
    ntp: SocketAddr,
    ke: SocketAddr,
    process: Process,
}

/// One server under one scheme.
struct Row {
    server: &'static str,
    scheme: Scheme,
    /// Answers a second, of each round that counts.
    bare: Vec<f64>,
    closed: Vec<f64>,
    /// Answers a second in rounds that were excluded: bare, closed.
    excluded: Vec<(f64, f64)>,
    searches: Vec<Searched>,
}

/// What a search found, and what the closed loop did around it.
#[derive(Clone, Copy)]
struct Searched {
    capacity: Option<Capacity>,
    /// The quartiles of the rounds before and after it, answers a second.
    closed_rps: [f64; 3],
}

/// Measures, and prints each comparison when it is made: what ends the bench early takes none of them away.
///
/// # Errors
/// What does not start or does not answer.
pub(super) fn measure(bench: &Bench) -> Result<(), Error> {
    let keys = bench.files.path().join("keys");
    chrony::write_keys(&keys, &load::key_file())?;
    let mut raw = String::from("server,load,way,answers/s by round\n");
    println!("{}", head());
    for subject in [ours(bench, &keys)?].into_iter().chain(debians_chrony(bench)?) {
        for scheme in Scheme::ALL {
            let row = compare(bench, &subject, scheme, &keys)?;
            println!("{row}");
            raw += &row.rounds();
        }
    }
    print!("{raw}");
    Ok(())
}

/// Our server, without the limits that keep one host from loading it.
fn ours(bench: &Bench, keys: &Path) -> Result<Subject, Error> {
    let listen = format!("{}:0", bench.pair.server_address());
    let config = bench.files.config(
        &format!("listen = [{listen:?}]"),
        &format!("ke-listen = [{listen:?}]\nke-workers = 1\n{NO_KE_LIMITS}\n[symmetric]\nkeys = {keys:?}"),
    );
    let mut command = bench.pair.on_server(Path::new(env!("CARGO_BIN_EXE_authentick")));
    let mut process = Process::start(command.arg("serve").arg("--config").arg(config));
    let ntp = process.wait_for_line("serving time on ").parse()?;
    let ke = process.wait_for_line("exchanging keys on ").parse()?;
    Ok(Subject { name: "authentick", ntp, ke, process })
}

fn debians_chrony(bench: &Bench) -> Result<Option<Subject>, Error> {
    let Some((program, libraries)) = peers::chronyd() else {
        println!("without chrony: run `cargo xtask peers` first");
        return Ok(None);
    };
    let (ntp, ke) = CHRONY_PORTS;
    let config = chrony::config(bench.files.path(), ntp, ke)?;
    let mut command = bench.pair.on_server(&program);
    command.args(["-x", "-d", "-f"]).arg(config).env("LD_LIBRARY_PATH", libraries);
    let mut process = Process::start(&mut command);
    process.wait_for_line("chronyd version");
    let at = |port| SocketAddr::new(bench.pair.server_address(), port);
    Ok(Some(Subject { name: "chrony", ntp: at(ntp), ke: at(ke), process }))
}

/// All ways, in turns.
fn compare(bench: &Bench, subject: &Subject, scheme: Scheme, keys: &Path) -> Result<Row, Error> {
    let Rounds { block_count, round_count, milliseconds } = bench.size.agreement;
    let mut row = Row {
        server: subject.name,
        scheme,
        bare: Vec::new(),
        closed: Vec::new(),
        excluded: Vec::new(),
        searches: Vec::new(),
    };
    let (from, most) = scheme.rates_rps(bench.size.rates_rps);
    let (from, most, loss_max) = (from.to_string(), most.to_string(), LOSS_MAX.to_string());
    let search = [
        "--search",
        "--search-from",
        &from,
        "--rate-max",
        &most,
        "--loss-max",
        &loss_max,
        "--timeout",
        "0.1",
    ];
    let search = search.map(str::to_owned);
    let mut blocks: Vec<Vec<f64>> = Vec::new();
    let mut found: Vec<Option<Capacity>> = Vec::new();
    let run = Run { bench, subject, scheme, keys, milliseconds };
    for block in 0..block_count {
        if block > 0 {
            found.push(run.load(&search, bench.size.trial_milliseconds)?.capacity);
        }
        let first = row.closed.len();
        for _ in 0..round_count {
            let bare = run.bare()?;
            let record = run.load(&closed(scheme), milliseconds)?;
            let step = record.steps.first().ok_or("a closed loop without a step")?;
            match is_disturbed(step) {
                true => row.excluded.push((bare, step.answered_rps())),
                false => {
                    row.bare.push(bare);
                    row.closed.push(step.answered_rps());
                }
            }
        }
        blocks.push(row.closed[first..].to_vec());
    }
    let around =
        blocks.windows(2).map(|blocks| [1, 2, 3].map(|quarters| quartile(&blocks.concat(), quarters)));
    let searched = found.into_iter().zip(around);
    row.searches = searched.map(|(capacity, closed_rps)| Searched { capacity, closed_rps }).collect();
    Ok(row)
}

fn closed(scheme: Scheme) -> Vec<String> {
    let window = match scheme {
        Scheme::KeyExchange => handshakes::WINDOW.to_string(),
        Scheme::Plain | Scheme::Cmac | Scheme::Nts => WINDOW.to_owned(),
    };
    let patience = ["--timeout", PATIENCE].map(str::to_owned);
    [vec!["--closed".to_owned(), window], patience.to_vec()].concat()
}

/// Whether the generator's host kept a sending thread from its processor.
fn is_disturbed(step: &Step) -> bool {
    let Some(Evidence { preempted_share, steal_share, stalls, .. }) = &step.evidence else { return false };
    let stalled = stalls.total_us / 1e6 / step.seconds.max(1e-9);
    [preempted_share.unwrap_or(0.0), steal_share.unwrap_or(0.0), stalled]
        .into_iter()
        .any(|share| share > TAKEN_SHARE_MAX)
}

/// What one way of loading needs.
struct Run<'a> {
    bench: &'a Bench,
    subject: &'a Subject,
    scheme: Scheme,
    keys: &'a Path,
    milliseconds: u64,
}

impl Run<'_> {
    /// Answers a second that the bare generator gets.
    fn bare(&self) -> Result<f64, Error> {
        let Run { bench, subject, scheme, milliseconds, .. } = self;
        let kind = match scheme {
            Scheme::Plain => Some(Kind::Plain),
            Scheme::Cmac => Some(Kind::Cmac),
            Scheme::Nts => Some(Kind::Nts15),
            Scheme::KeyExchange => None,
        };
        let mut command = bench.pair.on_client(&bench.this);
        match kind {
            Some(kind) => {
                let port = subject.ke.port().to_string();
                command.args(["--load", &kind.to_string(), &subject.ntp.to_string(), &port])
            }
            None => command.args(["--handshakes", &subject.ke.to_string()]),
        };
        let output = command.arg(bench.files.ca()).arg(milliseconds.to_string()).output()?;
        let problem = || {
            let errors = String::from_utf8_lossy(&output.stderr);
            format!("bare, {}, {}: {errors}", subject.name, scheme.label())
        };
        let measured: load::Measured =
            String::from_utf8_lossy(&output.stdout).parse().map_err(|_| problem())?;
        // Within some milliseconds a busy machine may not get through a single key exchange.
        match (measured.rate() > 0.0 || !bench.size.isolated) && measured.invalid == 0 {
            true => Ok(measured.rate()),
            false => Err(problem().into()),
        }
    }

    /// A run of the program under test, in steps of so many milliseconds; its record.
    fn load(&self, model: &[String], milliseconds: u64) -> Result<LoadRecord, Error> {
        let Run { bench, subject, scheme, keys, .. } = self;
        let seconds = (milliseconds as f64 / 1e3).to_string();
        let mut command = bench.pair.on_client(Path::new(env!("CARGO_BIN_EXE_authentick")));
        command.arg("load");
        let (ca, port): (PathBuf, _) = (bench.files.ca(), subject.ke.port().to_string());
        match scheme {
            Scheme::Plain => command.args(["plain", &subject.ntp.to_string()]),
            Scheme::Cmac => {
                command.args(["mac", &subject.ntp.to_string(), "--key-id", "1", "--keys"]).arg(keys)
            }
            Scheme::Nts => command
                .args(["nts", &subject.ntp.to_string(), "--ke-port", &port, "--aead", "15"])
                .args(["--replay-cookie", "--server-name", "ntp.test", "--ca"])
                .arg(ca),
            Scheme::KeyExchange => command
                .args(["ke", &subject.ke.to_string(), "--server-name", "ntp.test", "--aead", "15", "--ca"])
                .arg(ca),
        };
        command.args(["--json", "--step-seconds", &seconds]);
        command.args(["--server-pid", &subject.process.id().to_string()]);
        command.args(model);
        // The first question has no more time than any other, which on a busy machine can be too little.
        let mut output = command.output()?;
        for _ in 1..if bench.size.isolated { 1 } else { FIRST_COUNT } {
            if !String::from_utf8_lossy(&output.stderr).contains(": no answer") {
                break;
            }
            output = command.output()?;
        }
        LoadRecord::from_json(&String::from_utf8_lossy(&output.stdout)).map_err(|_| {
            let errors = String::from_utf8_lossy(&output.stderr);
            format!("load {} of {}: {errors}", scheme.label(), subject.name).into()
        })
    }
}

/// The value below which so many quarters of all lie; 0 of none.
fn quartile(values: &[f64], quarters: usize) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) * quarters / 4).copied().unwrap_or(0.0)
}

fn spread(values: &[f64], show: fn(f64) -> String) -> String {
    let [low, middle, high] = [1, 2, 3].map(|quarters| show(quartile(values, quarters)));
    format!("{middle} ({low} .. {high})")
}

fn head() -> String {
    format!(
        "{:<11} {:<13} {:>30} {:>30} {:>21} {:>8}   searches: closed loop around each, and what it found",
        "server", "load", "bare, answers/s (quartiles)", "closed loop", "closed / bare", "excluded"
    )
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratios: Vec<f64> =
            self.closed.iter().zip(&self.bare).map(|(closed, bare)| closed / bare).collect();
        let searches: Vec<String> = self.searches.iter().map(ToString::to_string).collect();
        write!(
            formatter,
            "{:<11} {:<13} {:>30} {:>30} {:>21} {:>8}   {}",
            self.server,
            self.scheme.label(),
            spread(&self.bare, rate),
            spread(&self.closed, rate),
            spread(&ratios, |ratio| format!("{ratio:.2}")),
            format!("{} of {}", self.excluded.len(), self.excluded.len() + self.closed.len()),
            searches.join("; "),
        )
    }
}

impl Row {
    /// Every round, a line for each way.
    fn rounds(&self) -> String {
        let (bare_excluded, closed_excluded) = self.excluded.iter().copied().unzip::<_, _, Vec<_>, Vec<_>>();
        let ways = [
            ("bare", &self.bare),
            ("closed", &self.closed),
            ("bare excluded", &bare_excluded),
            ("closed excluded", &closed_excluded),
        ];
        let line = |(way, rates): (&str, &Vec<f64>)| {
            let rates: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
            format!("{},{:?},{way},{}\n", self.server, self.scheme, rates.join(","))
        };
        ways.map(line).concat()
    }
}

/// What the closed loop did, what the search found, and whether it covers the median of that, a rate between its
/// quartiles, or none of them, and then by how much.
///
/// A search finds rates of requests, of which at the lower end at most the tolerated share is lost: the others are
/// answers.
impl fmt::Display for Searched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Searched { capacity, closed_rps } = *self;
        let [low_rps, closed_rps, high_rps] = closed_rps;
        write!(f, "{} ({} .. {}): ", rate(closed_rps), rate(low_rps), rate(high_rps))?;
        let Some(Capacity { at_least, below, limited_by, .. }) = capacity else { return f.write_str("none") };
        let Some(least) = at_least else { return write!(f, "none, {limited_by}") };
        match below {
            Some(below) => write!(f, "{} .. {}, ", rate(least), rate(below))?,
            None => write!(f, "{} or more, {limited_by}, ", rate(least))?,
        }
        let over = |rps: f64| 1.0 - rps / (least * (1.0 - LOSS_MAX));
        let under = |rps: f64| below.map_or(0.0, |below| rps / below - 1.0);
        let beyond = over(closed_rps).max(under(closed_rps));
        match beyond {
            ..=0.0 => f.write_str("covered"),
            _ if over(high_rps) <= 0.0 && under(low_rps) <= 0.0 => {
                write!(f, "{:.1} % off, within the quartiles", beyond * 100.0)
            }
            _ => write!(f, "{:.1} % off", beyond * 100.0),
        }
    }
}
