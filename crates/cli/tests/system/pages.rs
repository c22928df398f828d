//! What the manual's page "Years of service" says, done as it is written there, on hosts with views of their own.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use authentick_lab::filter;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::Chrony;
use authentick_lab::process::Process;

use crate::lab::{Lab, program, text, wait_for};
use crate::readme::{Machine, NAME, install, named};

/// A section of the page.
fn section(heading: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual/operating.md");
    let text = std::fs::read_to_string(file).unwrap();
    let rest = text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading}")).1;
    rest.split_once("\n## ").map_or(rest, |(section, _)| section).to_owned()
}

/// The text in a language that a section has.
fn block(section: &str, language: &str) -> String {
    let rest = section.split_once(&format!("```{language}\n")).unwrap_or_else(|| panic!("no {language}")).1;
    rest.split_once("```\n").unwrap().0.to_owned()
}

/// The commands of a section.
fn commands(section: &str) -> Vec<String> {
    section.lines().filter_map(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

/// A host whose server has its user, a configuration and certificates.
fn machine(hosts: &Hosts, lab: &Lab, config: &str) -> Machine {
    let machine = Machine::new(hosts, Host::Server, lab.path());
    let etc = machine.etc.join("authentick");
    std::fs::create_dir(&etc).unwrap();
    std::fs::write(machine.etc.join("hosts"), format!("127.0.0.1 localhost {NAME}\n")).unwrap();
    std::fs::write(etc.join("authentick.toml"), config).unwrap();
    assert!(machine.run("useradd --system authentick").status.success());
    install(lab, &etc, machine.user("authentick").1);
    machine
}

fn serve(machine: &Machine) -> Process {
    let mut server = Process::start(&mut machine.command("authentick serve"));
    server.wait_for_line("serving time on ");
    server
}

/// Runs a section with a chrony on one host, and returns what a query there says once it says `part`.
fn with_chrony(heading: &str, query: &str, part: &str) -> Option<String> {
    let chrony = Chrony::find()?;
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => {
            skip.tell();
            return None;
        }
    };
    let lab = Lab::with_certificate(named("page.test"));
    let section = section(heading);
    let machine = machine(&hosts, &lab, &block(&section, "toml"));
    let mut lines = format!("local stratum 5\n{}", block(&section, "conf"));
    if !lines.contains("port ") {
        lines += "port 123\n";
    }
    let _chrony = chrony.on(&hosts, Host::Server).daemon(&lab, &lines);
    let check = machine.run("authentick serve --check");
    assert!(check.status.success(), "{}", text(&check));
    let _server = serve(&machine);
    let ask = || text(&machine.command(query).env("SSL_CERT_FILE", lab.ca()).output().unwrap());
    Some(wait_for(part, || Some(ask()).filter(|answer| answer.contains(part))))
}

#[test]
fn chrony_behind_the_server_gives_it_its_time() {
    with_chrony("chrony behind it", "authentick query 127.0.0.1 --auth plain", "stratum        5");
}

#[test]
fn server_beside_a_chrony_on_port_123_serves_those_who_exchange_keys() {
    let Some(answer) =
        with_chrony("chrony in front of it", "authentick query time.example.net", "stratum        5")
    else {
        return;
    };
    assert!(answer.contains("127.0.0.1:4123") && answer.contains("NTS, "), "{answer}");
}

#[test]
fn firewall_lets_time_and_keys_in_and_keeps_requests_out_of_the_table_of_connections() {
    const QUERY_COUNT: usize = 20;
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let lab = Lab::new();
    let address = hosts.address(Host::Server);
    let config = lab.config(
        "listen = [\"0.0.0.0:123\"]",
        &format!("ke-listen = [\"0.0.0.0:4460\"]\nadvertise = {{ server = \"{address}\" }}"),
    );
    let mut command = hosts.on(Host::Server, program().path());
    let mut server = Process::start(command.arg("serve").arg("--config").arg(&config));
    server.wait_for_line("exchanging keys on ");
    let other: SocketAddr = (address, 9999).into();
    let _listener = hosts.within(Host::Server, || TcpListener::bind(other).unwrap());
    let connects = || {
        hosts.within(Host::Client(0), || {
            TcpStream::connect_timeout(&other, Duration::from_millis(300)).is_ok()
        })
    };
    assert!(connects());
    if let Err(skip) = filter::load(&hosts, Host::Server, &block(&section("Firewall"), "nft")) {
        return skip.tell();
    }
    assert!(!connects(), "only what is named comes in");
    let query = |more: &[&str]| {
        let mut command = hosts.on(Host::Client(0), program().path());
        command.args(["query", &address.to_string(), "--timeout", "2"]).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    };
    query(&["--ca", lab.ca().to_str().unwrap(), "--server-name", "ntp.test"]);
    for _ in 0..QUERY_COUNT {
        query(&["--auth", "plain"]);
    }
    let count = hosts.within(Host::Server, || {
        std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_count").unwrap().trim().parse::<usize>()
    });
    assert!(
        count.unwrap() < QUERY_COUNT / 2,
        "requests are not tracked, the key exchange and the attempt are"
    );
}

#[test]
fn keys_that_were_copied_and_put_back_are_the_same() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let lab = Lab::with_certificate(named("page.test"));
    let reference = "[server]\nreference = { stratum = 1, id = \"TEST\" }\n";
    let nts = "[nts]\ncertificate-chain = \"/etc/authentick/chain.pem\"\nprivate-key = \"/etc/authentick/key.pem\"\n";
    let machine = machine(&hosts, &lab, &format!("{reference}{nts}"));
    let server = serve(&machine);
    let run = |line: &str| {
        // Elsewhere than root's own folder, which this host shares with the one that it is on.
        let output = machine.run(&line.replace("/root/", "/var/lib/"));
        assert!(output.status.success(), "{line}: {}", text(&output));
        text(&output)
    };
    let all = commands(&section("Copies of keys"));
    let [folder, copy, back, list] = &all[..] else { panic!("{all:?}") };
    let ids = |list: &str| -> Vec<String> {
        list.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    };
    let before = ids(&run(list));
    run(folder);
    run(copy);
    drop(server);
    run("find /var/lib/authentick -mindepth 1 -delete");
    run(back);
    assert_eq!(ids(&run(list)), before);
    let _server = serve(&machine);
    assert_eq!(ids(&run(list)), before, "the server takes them up");
}
