//! What README says of a server, done as it is written there, where nothing of this machine is touched: on a host with
//! a view of the files of its own.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::Chrony;
use authentick_lab::process::Process;
use rcgen::{DnType, SanType};

use crate::lab::{Lab, program, text, wait_for};

/// The name of the server in README.
const NAME: &str = "time.example.net";

/// README's configuration and the commands below it.
struct Readme {
    config: String,
    commands: Vec<String>,
}

impl Readme {
    fn read() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
        let text = std::fs::read_to_string(file).unwrap();
        let section = text.split_once("## A server in a minute\n").unwrap().1.split_once("\n## ").unwrap().0;
        let (config, rest) = section.split_once("```toml\n").unwrap().1.split_once("```\n").unwrap();
        let commands = rest.lines().filter_map(|line| line.strip_prefix("    ")).map(str::to_owned);
        Readme { config: config.to_owned(), commands: commands.collect() }
    }
}

/// A host whose `/etc` is a copy and whose `/var/lib` is empty.
struct Machine {
    /// It holds the view until it ends.
    holder: Process,
    etc: PathBuf,
}

impl Machine {
    fn new(hosts: &Hosts, folder: &Path) -> Self {
        let etc = folder.join("etc");
        let copied = Command::new("cp").args(["--archive", "/etc"]).arg(&etc).status().unwrap();
        assert!(copied.success());
        let script = format!(
            "mount --bind {} /etc && mount -t tmpfs tmpfs /var/lib && echo it is ready && exec sleep 600",
            etc.display()
        );
        let mut command = hosts.on(Host::Server, "unshare");
        let mut holder =
            Process::start(command.args(["--mount", "--propagation", "private", "sh", "-c", &script]));
        holder.wait_for_line("it is ready");
        Machine { holder, etc }
    }

    /// A line for the shell of this machine, where our program is on the path.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--net", "--target", &self.holder.id().to_string(), "sh", "-c"]);
        command.arg(format!("exec {line}"));
        let folder = program().path().parent().unwrap().to_owned();
        command.env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", folder.display()));
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// The numbers of a user and of its group.
    fn user(&self, name: &str) -> (u32, u32) {
        let users = std::fs::read_to_string(self.etc.join("passwd")).unwrap();
        let line = users.lines().find_map(|line| line.strip_prefix(&format!("{name}:"))).unwrap();
        let numbers: Vec<u32> = line.split(':').filter_map(|field| field.parse().ok()).collect();
        (numbers[0], numbers[1])
    }
}

/// Puts the lab's certificate and key where README has them. The service may read the key, by its group.
fn install(lab: &Lab, folder: &Path, group: u32) {
    for (from, name, mode) in [(lab.chain(), "chain.pem", 0o644), (lab.key(), "key.pem", 0o640)] {
        let to = folder.join(name);
        std::fs::copy(from, &to).unwrap();
        chown(&to, Some(0), Some(group)).unwrap();
        std::fs::set_permissions(&to, PermissionsExt::from_mode(mode)).unwrap();
    }
}

#[test]
fn server_of_the_readme_serves_drops_its_rights_and_takes_over_a_renewed_certificate() {
    let Some(chrony) = Chrony::find() else { return };
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let named = |common_name: &'static str| {
        move |params: &mut rcgen::CertificateParams| {
            params.subject_alt_names.push(SanType::DnsName(NAME.try_into().unwrap()));
            params.distinguished_name.push(DnType::CommonName, common_name);
        }
    };
    let lab = Lab::with_certificate(named("first.test"));
    let machine = Machine::new(&hosts, lab.path());
    let etc = machine.etc.join("authentick");
    std::fs::create_dir(&etc).unwrap();
    std::fs::write(machine.etc.join("hosts"), format!("127.0.0.1 localhost {NAME}\n")).unwrap();
    let readme = Readme::read();
    std::fs::write(etc.join("authentick.toml"), &readme.config).unwrap();
    install(&lab, &etc, 0);
    let _chrony = chrony.on(&hosts, Host::Server).daemon(&lab, "local stratum 5\nallow\nport 11123");

    let mut server: Option<Process> = None;
    let mut queries = Vec::new();
    for line in &readme.commands {
        if line.starts_with("authentick query") {
            queries.push(line);
            continue;
        }
        if line.starts_with("authentick serve") {
            // The user is there by now.
            install(&lab, &etc, machine.user("authentick").1);
        }
        if line == "authentick serve" {
            server = Some(Process::start(&mut machine.command(line)));
        } else {
            let output = machine.run(line);
            assert!(output.status.success(), "{line}: {}", text(&output));
        }
    }
    let mut server = server.expect("README starts the server");
    let is_listening =
        [server.wait_for_line("serving time on "), server.wait_for_line("exchanging keys on ")];
    assert!(is_listening[0].ends_with(":123") && is_listening[1].ends_with(":4460"), "{is_listening:?}");

    // The number is the server's own: every program before it was replaced by the next.
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    let (user, group) = machine.user("authentick");
    assert_eq!(line("Name:"), "authentick");
    assert!(user != 0 && line("Uid:").split_whitespace().all(|id| id == user.to_string()), "{status}");
    assert!(line("Gid:").split_whitespace().all(|id| id == group.to_string()), "{status}");
    assert_eq!((line("CapEff:"), line("CapPrm:")), ("0".repeat(16), "0".repeat(16)));

    // The lab's authority stands for those that the system trusts.
    let query = queries.first().expect("README asks the server");
    let ask = || machine.command(query).env("SSL_CERT_FILE", lab.ca()).output().unwrap();
    let answer =
        wait_for("chrony's time", || Some(text(&ask())).filter(|answer| answer.contains("stratum        5")));
    assert!(answer.contains("NTS, ") && answer.contains("CN=first.test"), "{answer}");

    lab.renew(named("renewed.test"));
    install(&lab, &etc, group);
    server.signal("-HUP");
    server.wait_for_line("certificate read again");
    let answer = text(&ask());
    assert!(answer.contains("CN=renewed.test") && answer.contains("stratum        5"), "{answer}");
    server.signal("-TERM");
    assert_eq!(server.wait(), 0, "{}", server.log());
}
