//! How many requests a second does one core answer, beside chrony and beside a bare echo?
//!
//! Goal: ratios. Server and generator have a core each; our server, Debian's chrony and an echo that only moves
//! datagrams are loaded in turn, round after round, in one run, and ratios are taken within a round. Requests are real:
//! each NTS request has a client, a key and a cookie of its own, and answers are checked, a sample of them down to the
//! tag. Non-goals: absolute figures (the machine may be shared), latency, key exchange.
//!
//! `cargo bench -p authentick --bench capacity` takes two minutes; as root it makes two network namespaces, otherwise it
//! uses loopback and says so. `cargo xtask peers` brings chrony. Among the tests it runs once, for a few milliseconds.

mod floor;
mod lab;
mod load;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::lab::{Lab, Program};
use self::load::{Kind, Measured};

type Error = Box<dyn std::error::Error>;

/// Ports on the servers' host: NTP and key exchange.
const OURS: (u16, u16) = (11123, 14460);
const OURS_WILDCARD: (u16, u16) = (12123, 15460);
const CHRONY: (u16, u16) = (13123, 16460);
const ECHO: u16 = 10123;
const ECHO_WILDCARD: u16 = 10124;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--echo", address] => Ok(floor::echo(address.parse()?)?),
        ["--load", kind, ntp, ke_port, ca, milliseconds] => {
            let target = load::Target { ntp: ntp.parse()?, ke_port: ke_port.parse()?, ca: ca.into() };
            let measured = load::run(kind.parse()?, &target, Duration::from_millis(milliseconds.parse()?))?;
            println!("{measured}");
            Ok(())
        }
        _ if words.contains(&"--bench") => bench(Size::FULL),
        _ => bench(Size::SMOKE),
    }
}

/// How long to measure.
#[derive(Clone, Copy)]
struct Size {
    round_count: usize,
    milliseconds: u64,
    isolated: bool,
}

impl Size {
    const FULL: Size = Size { round_count: 7, milliseconds: 1000, isolated: true };
    const SMOKE: Size = Size { round_count: 1, milliseconds: 30, isolated: false };
}

/// One row of the result: a server under one kind of load.
struct Row {
    name: &'static str,
    kind: Kind,
    ports: (u16, u16),
    rates: Vec<f64>,
    invalid: u64,
}

fn bench(size: Size) -> Result<(), Error> {
    let folder = tempfile::tempdir()?;
    let ca = certificates(folder.path())?;
    let (lab, why_not) = match size.isolated {
        true => Lab::new(),
        false => Lab::loopback(),
    };
    if let Some(reason) = why_not {
        println!("on loopback, as namespaces cannot be made: {reason}");
    }
    let address = lab.server_address();
    let this = std::env::current_exe()?;
    let mut servers = vec![
        Program::start(lab.on_server(&this).args(["--echo", &SocketAddr::new(address, ECHO).to_string()]))?,
        Program::start(lab.on_server(&this).args(["--echo", &format!("0.0.0.0:{ECHO_WILDCARD}")]))?,
    ];
    let ours = servers.len();
    for (name, listen, ports) in
        [("ours", address.to_string(), OURS), ("wildcard", "0.0.0.0".to_owned(), OURS_WILDCARD)]
    {
        let config = authentick(folder.path(), name, &listen, ports)?;
        let program = Path::new(env!("CARGO_BIN_EXE_authentick"));
        servers.push(Program::start(lab.on_server(program).arg("serve").arg("--config").arg(config))?);
    }
    let chrony = match lab::chronyd() {
        Some((program, libraries)) => {
            let config = chrony(folder.path())?;
            let mut command = lab.on_server(&program);
            command.args(["-x", "-d", "-f"]).arg(config).env("LD_LIBRARY_PATH", libraries);
            servers.push(Program::start(&mut command)?);
            true
        }
        None => {
            println!("without chrony: run `cargo xtask peers` first");
            false
        }
    };
    std::thread::sleep(Duration::from_millis(1500));

    let mut rows = rows(chrony);
    for round in 0..size.round_count {
        for row in &mut rows {
            let measured = load(&lab, &this, row, &ca, size.milliseconds)?;
            row.rates.push(measured.rate());
            row.invalid += measured.invalid;
        }
        if size.isolated {
            eprintln!("round {} of {}", round + 1, size.round_count);
        }
    }
    print!("{}", report(&rows, &lab, &servers[ours]));
    match rows.iter().all(|row| row.invalid == 0 && row.rates.iter().all(|&rate| rate > 0.0)) {
        true => Ok(()),
        false => Err("a server gave no answers, or bad ones".into()),
    }
}

fn rows(chrony: bool) -> Vec<Row> {
    let row = |name, kind, ports| Row { name, kind, ports, rates: Vec::new(), invalid: 0 };
    let mut rows = vec![
        row("echo", Kind::EchoPlain, (ECHO, 0)),
        row("authentick", Kind::Plain, OURS),
        row("echo, wildcard", Kind::EchoPlain, (ECHO_WILDCARD, 0)),
        row("authentick, wildcard", Kind::Plain, OURS_WILDCARD),
        row("echo", Kind::EchoNts, (ECHO, 0)),
        row("authentick", Kind::Nts15, OURS),
        row("authentick", Kind::Nts30, OURS),
    ];
    if chrony {
        rows.insert(4, row("chrony", Kind::Plain, CHRONY));
        rows.push(row("chrony", Kind::Nts15, CHRONY));
    }
    rows
}

fn load(lab: &Lab, this: &Path, row: &Row, ca: &Path, milliseconds: u64) -> Result<Measured, Error> {
    let target = SocketAddr::new(lab.server_address(), row.ports.0).to_string();
    let (kind, ke_port, milliseconds) =
        (row.kind.to_string(), row.ports.1.to_string(), milliseconds.to_string());
    let output =
        lab.on_client(this).args(["--load", &kind, &target, &ke_port]).arg(ca).arg(&milliseconds).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.parse().map_err(|_| {
        format!("{} under {kind}: {text}{}", row.name, String::from_utf8_lossy(&output.stderr)).into()
    })
}

fn report(rows: &[Row], lab: &Lab, ours: &Program) -> String {
    let mut text = String::new();
    let median = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        text.write_fmt(arguments)
            .and_then(|()| text.write_char('\n'))
            .expect("writing to a string cannot fail");
    };
    line(format_args!(
        "path: {}; server on one core, generator on another; {} rounds",
        lab.name(),
        rows[0].rates.len()
    ));
    line(format_args!("{:<22} {:<16} {:>12}", "server", "load", "answers/s"));
    for row in rows {
        line(format_args!("{:<22} {:<16} {:>12.0}", row.name, row.kind.label(), median(&row.rates)));
    }
    let find = |name: &str, kind: Kind| rows.iter().find(|row| row.name == name && row.kind == kind);
    let pairs = [
        ("plain / chrony", ("authentick", Kind::Plain), ("chrony", Kind::Plain), "1.10"),
        ("plain / echo", ("authentick", Kind::Plain), ("echo", Kind::EchoPlain), "0.93"),
        (
            "plain / echo, wildcard",
            ("authentick, wildcard", Kind::Plain),
            ("echo, wildcard", Kind::EchoPlain),
            "0.93",
        ),
        ("NTS 15 / chrony", ("authentick", Kind::Nts15), ("chrony", Kind::Nts15), "1.0 now, 1.35 to come"),
        ("NTS 30 / chrony's 15", ("authentick", Kind::Nts30), ("chrony", Kind::Nts15), "-"),
        ("NTS 15 / our plain", ("authentick", Kind::Nts15), ("authentick", Kind::Plain), "0.90 to come"),
        ("NTS 15 / echo of its size", ("authentick", Kind::Nts15), ("echo", Kind::EchoNts), "-"),
    ];
    line(format_args!("{:<26} {:>6} {:>15}   {}", "ratio", "median", "min .. max", "to reach"));
    for (name, (a, a_kind), (b, b_kind), goal) in pairs {
        let (Some(a), Some(b)) = (find(a, a_kind), find(b, b_kind)) else { continue };
        let ratios: Vec<f64> = a.rates.iter().zip(&b.rates).map(|(a, b)| a / b).collect();
        let (least, most) =
            ratios.iter().fold((f64::MAX, 0.0f64), |(low, high), &r| (low.min(r), high.max(r)));
        line(format_args!(
            "{name:<26} {:>6.2} {:>15}   {goal}",
            median(&ratios),
            format!("{least:.2} .. {most:.2}")
        ));
    }
    let (resident, cpu) = ours.usage();
    line(format_args!(
        "authentick: resident {:.1} MiB, {cpu:.1} s of processor time",
        resident as f64 / 1048576.0
    ));
    text
}

/// A test authority and a server certificate; returns the authority's file.
fn certificates(folder: &Path) -> Result<PathBuf, Error> {
    let key = rcgen::KeyPair::generate()?;
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = rcgen::CertifiedIssuer::self_signed(params, key)?;
    let key = rcgen::KeyPair::generate()?;
    let names = ["ntp.test", "127.0.0.1", "198.18.0.1"].map(str::to_owned).to_vec();
    let certificate = rcgen::CertificateParams::new(names)?.signed_by(&key, &authority)?;
    let ca = folder.join("ca.pem");
    std::fs::write(&ca, authority.pem())?;
    std::fs::write(folder.join("chain.pem"), certificate.pem() + &authority.pem())?;
    std::fs::write(folder.join("key.pem"), key.serialize_pem())?;
    Ok(ca)
}

fn authentick(folder: &Path, name: &str, listen: &str, (ntp, ke): (u16, u16)) -> Result<PathBuf, Error> {
    let config = folder.join(format!("{name}.toml"));
    let folder = folder.display();
    std::fs::write(
        &config,
        format!(
            "[server]\nlisten = [\"{listen}:{ntp}\"]\nworkers = 1\nuser = \"root\"\n\
             reference = {{ stratum = 1, id = \"GPS\" }}\nstate-directory = \"{folder}/state-{name}\"\n\
             [nts]\nke-listen = [\"{listen}:{ke}\"]\nke-workers = 1\n\
             certificate-chain = \"{folder}/chain.pem\"\nprivate-key = \"{folder}/key.pem\"\n"
        ),
    )?;
    Ok(config)
}

fn chrony(folder: &Path) -> Result<PathBuf, Error> {
    let config = folder.join("chrony.conf");
    let (folder, (ntp, ke)) = (folder.display(), CHRONY);
    std::fs::write(
        &config,
        format!(
            "local stratum 1\nallow\nport {ntp}\nntsport {ke}\nntsserverkey {folder}/key.pem\n\
             ntsservercert {folder}/chain.pem\nbindcmdaddress /\ncmdport 0\npidfile {folder}/chrony.pid\nuser root\n"
        ),
    )?;
    Ok(config)
}
