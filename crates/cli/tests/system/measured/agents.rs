//! `authentick load agent` on hosts of their own: three namespaces with unequal processors, as in Table 2 of
//! Spectracom's "NTP Server Capacity Testing", and what ends such a run.

use std::net::SocketAddr;
use std::path::Path;

use authentick_lab::Skip;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::process::Process;
use authentick_lab::quota::Quota;
use authentick_report::load::{LoadRecord, Step};
use authentick_report::study::request_threshold::{Records, Remarks, compared};

use crate::lab::{Lab, Server, alone, program, wait_for};

/// A test network that no agent has on its list (RFC 5737).
const FOREIGN: &str = "192.0.2.1";
const PORT: u16 = 4470;

/// A server in the middle, and an agent on each host around it.
struct Star {
    lab: Lab,
    server: Server,
    agents: Vec<Process>,
    // Goes away last.
    hosts: Hosts,
}

impl Star {
    fn new(agent_count: usize) -> Result<Self, Skip> {
        let hosts = Hosts::new(agent_count)?;
        let lab = Lab::with_certificate(|params| {
            let addresses = (0..agent_count).map(|index| hosts.address(Host::Client(index)));
            params.subject_alt_names.extend(addresses.map(rcgen::SanType::IpAddress));
        });
        let config = lab.config("listen = [\"0.0.0.0:0\"]", "");
        let server = program().serve_on(&hosts, Host::Server, &config);
        let mut star = Star { lab, server, agents: Vec::new(), hosts };
        for index in 0..agent_count {
            let mut command = star.hosts.on(Host::Client(index), program().path());
            command.args(["load", "agent", "--unpinned", "--listen", &star.name(index)]);
            command.arg("--certificate-chain").arg(star.lab.chain());
            command.arg("--private-key").arg(star.lab.key());
            command.arg("--coordinators-ca").arg(star.lab.ca());
            let mut agent = Process::start(&mut command);
            agent.wait_for_line("taking orders on ");
            star.agents.push(agent);
        }
        Ok(star)
    }

    /// An agent as `--agents` calls it.
    fn name(&self, index: usize) -> String {
        SocketAddr::new(self.hosts.address(Host::Client(index)), PORT).to_string()
    }

    fn record_file(&self) -> std::path::PathBuf {
        self.lab.path().join("record.json")
    }

    /// A coordinator beside the server, with these arguments after the target.
    fn order(&self, target: &str, arguments: &[&str]) -> Process {
        let names: Vec<String> = (0..self.agents.len()).map(|index| self.name(index)).collect();
        let target = format!("{target}:{}", self.server.ntp.port());
        let mut command = self.hosts.on(Host::Server, program().path());
        command.args(["load", "plain", &target, "--agents", &names.join(",")]).args(arguments);
        command.arg("--agent-ca").arg(self.lab.ca());
        command.arg("--certificate-chain").arg(self.lab.chain());
        command.arg("--private-key").arg(self.lab.key());
        Process::start(&mut command)
    }

    /// How many requests the server has answered.
    fn answered(&self) -> u64 {
        self.hosts.within(Host::Server, || self.server.outcome("plain")) as u64
    }
}

fn read(file: &Path) -> LoadRecord {
    LoadRecord::from_json(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn three_hosts_of_unequal_processors_make_table_2() {
    let _turn = alone();
    let star = match Star::new(3) {
        Ok(star) => star,
        Err(skip) => return skip.tell(),
    };
    // The first is to starve: a twentieth of a processor does not offer 50,000 a second.
    let quotas: Result<Vec<Quota>, Skip> = [0.05, 0.5, 0.7].into_iter().map(Quota::new).collect();
    let quotas = match quotas {
        Ok(quotas) => quotas,
        Err(skip) => return skip.tell(),
    };
    quotas.iter().zip(&star.agents).for_each(|(quota, agent)| quota.add(agent.id()));
    let file = star.record_file();
    let arguments =
        ["--ramp", "150000:30000:210000", "--step-seconds", "1", "--record", file.to_str().unwrap()];
    let mut coordinator = star.order("198.18.0.1", &arguments);
    let code = coordinator.wait();
    let record = read(&file);
    assert_eq!((record.steps.len(), record.interrupted.as_deref()), (3, None));
    // Where no host kept its times, the run says that.
    let is_valid = record.steps.iter().any(Step::counts_losses);
    assert_eq!(code, if is_valid { 0 } else { 3 }, "{}", coordinator.log());
    for step in &record.steps {
        let names: Vec<&str> = step.hosts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, [star.name(0), star.name(1), star.name(2)]);
        let rates: Vec<f64> = step.hosts.iter().map(|part| part.offered_rps.unwrap()).collect();
        assert_eq!(Some(rates.iter().sum::<f64>()), step.offered_rps);
        let answered: Vec<u64> = step.hosts.iter().map(|part| part.tally.answered).collect();
        assert_eq!(answered.iter().sum::<u64>(), step.tally.answered);
        assert!(answered.iter().all(|&part| part > 0 && part < step.tally.answered), "{answered:?}");
        // The starved one is its own limit, and the sum says so by its name.
        let starved = &step.hosts[0];
        assert!(!starved.valid && !step.valid);
        assert!(starved.why_invalid.as_ref().is_some_and(|why| why.starts_with("generator fell behind")));
        let why = step.why_invalid.as_ref().unwrap();
        assert!(why.contains(&format!("{}: generator fell behind", star.name(0))), "{why}");
        // By how much depends on what else this machine has to do.
        assert!(answered[0] < answered[1].min(answered[2]), "{answered:?}");
        for part in &step.hosts {
            let (skew, error) = (part.start_skew_us, part.start_skew_error_us);
            assert!(skew.is_finite() && skew.abs() < 250e3 && error > 0.0 && error < 250e3, "{skew} {error}");
        }
    }
    assert!(quotas[0].throttled_count() > 0);
    // What was answered is what came back, and one request more that showed that the server answers.
    let answered: u64 = record.steps.iter().map(|step| step.tally.answered).sum();
    let served = star.answered();
    let late: u64 = record.steps.iter().map(|step| step.tally.lost).sum();
    assert!((answered + 1..=answered + late + 1).contains(&served), "{served} {answered} {late}");
    let records = Records { several_hosts: vec![Some(record)], ..Records::default() };
    let table = compared(&records, &Remarks::default()).text();
    let rows: Vec<&str> = table.lines().filter(|line| line.contains("generator fell behind")).collect();
    assert_eq!(rows.len(), 3, "{table}");
    assert!(rows.iter().all(|row| row.contains(&star.name(0)) && row.contains('\u{2264}')), "{table}");
}

#[test]
fn lost_agent_is_named_and_no_sum_of_the_others_is_given() {
    let _turn = alone();
    let mut star = match Star::new(3) {
        Ok(star) => star,
        Err(skip) => return skip.tell(),
    };
    let file = star.record_file();
    let arguments = ["--ramp", "300:300:3000", "--step-seconds", "1", "--record", file.to_str().unwrap()];
    let mut coordinator = star.order("198.18.0.1", &arguments);
    // The second step is on its way.
    coordinator.wait_for_line("        300 ");
    star.agents[1].signal("-KILL");
    assert_eq!(coordinator.wait(), 69, "{}", coordinator.log());
    let sentence = format!("agent {}: lost in or after step", star.name(1));
    let log = coordinator.log();
    assert!(log.contains(&sentence) && log.contains("a sum of the others would be wrong"), "{log}");
    let record = read(&file);
    assert!(record.interrupted.as_ref().is_some_and(|why| why.contains(&sentence)), "{record:?}");
    assert!((1..10).contains(&record.steps.len()), "{}", record.steps.len());
    for (index, step) in record.steps.iter().enumerate() {
        assert_eq!((step.offered_rps, step.hosts.len()), (Some(300.0 * (index + 1) as f64), 3));
        assert_eq!(step.hosts.iter().map(|part| part.tally.sent).sum::<u64>(), step.tally.sent);
    }
    // The others stop: nothing comes any more, and they take orders again.
    let before = wait_for("the others to stop", || {
        let before = star.answered();
        std::thread::sleep(std::time::Duration::from_millis(300));
        (star.answered() == before).then_some(before)
    });
    assert!(before > 0);
    star.agents.remove(1);
    star.agents.truncate(1);
    let mut next = star.order("198.18.0.1", &["--rate", "100", "--step-seconds", "0.2"]);
    assert!([0, 3].contains(&next.wait()), "{}", next.log());
}

#[test]
fn agent_refuses_targets_off_its_list_and_serves_one_coordinator_at_a_time() {
    let _turn = alone();
    let star = match Star::new(1) {
        Ok(star) => star,
        Err(skip) => return skip.tell(),
    };
    let added =
        star.hosts.on(Host::Server, "ip").args(["addr", "add", FOREIGN, "dev", "lo"]).status().unwrap();
    assert!(added.success());
    let mut refused = star.order(FOREIGN, &["--rate", "100", "--permit", FOREIGN]);
    assert_eq!(refused.wait(), 69, "{}", refused.log());
    let log = refused.log();
    assert!(log.contains(&format!("agent {}: refused", star.name(0))), "{log}");
    assert!(
        log.contains(&format!("{FOREIGN} is not on this agent's list")) && log.contains("--allow"),
        "{log}"
    );
    assert_eq!(star.answered(), 1, "the coordinator asked, and nobody else");

    let mut first = star.order("198.18.0.1", &["--ramp", "200:200:1000", "--step-seconds", "1"]);
    first.wait_for_line("        200 ");
    let mut second = star.order("198.18.0.1", &["--rate", "100", "--step-seconds", "0.2"]);
    assert_eq!(second.wait(), 69, "{}", second.log());
    let log = second.log();
    assert!(log.contains(&format!("agent {}: ", star.name(0))) && log.contains("busy"), "{log}");
    // The run that it serves is not disturbed.
    assert!([0, 3].contains(&first.wait()), "{}", first.log());
    assert!(first.log().contains("      1,000 "), "{}", first.log());
}

#[test]
fn study_of_a_server_takes_its_hosts_from_the_agents() {
    let _turn = alone();
    let star = match Star::new(2) {
        Ok(star) => star,
        Err(skip) => return skip.tell(),
    };
    let out = star.lab.path().join("study");
    let mut command = star.hosts.on(Host::Server, program().path());
    command.args(["study", "run", "threshold", "--quick", "--step-seconds", "0.1", "--scale", "0.1"]);
    command.args(["--target", &format!("198.18.0.1:{}", star.server.ntp.port())]);
    command.args(["--agents", &format!("{},{}", star.name(0), star.name(1))]);
    command.arg("--agent-ca").arg(star.lab.ca()).arg("--certificate-chain").arg(star.lab.chain());
    command.arg("--private-key").arg(star.lab.key()).arg("--out").arg(&out);
    let mut study = Process::start(&mut command);
    assert_eq!(study.wait(), 0, "{}", study.log());
    let report = std::fs::read_to_string(out.join("report.txt")).unwrap();
    let ours = report.split_once("Table 2, several hosts, ours:\n").unwrap().1;
    let head = ours.lines().next().unwrap();
    assert!(head.contains(&star.name(0)) && head.contains(&star.name(1)), "{head}");
    let rates: Vec<&str> =
        ours.lines().skip(1).take(5).map(|row| row.split_whitespace().next().unwrap()).collect();
    assert_eq!(rates, ["1,000", "5,000", "5,000", "5,000", "9,000"], "{ours}");
    assert!(ours.contains("the agents that were named, 2 instead of three"), "{ours}");
    assert!(
        ours.contains("two configurations were not measured") && ours.contains("--old and --new"),
        "{ours}"
    );
    for row in 1..=5 {
        let record = read(&out.join(format!("run-table-2-{row}.json")));
        let parts: u64 = record.steps[0].hosts.iter().map(|part| part.tally.answered).sum();
        assert!(parts > 0 && parts == record.steps[0].tally.answered);
    }
}
