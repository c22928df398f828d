//! What README says of a server and of a fleet, done as it is written there, where nothing of this machine is touched:
//! on hosts with views of the files of their own.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::{self, Chrony, Memcached};
use authentick_lab::process::Process;
use rcgen::{DnType, SanType};

use crate::lab::{Lab, program, text, wait_for};

/// The name of the server in README.
pub(crate) const NAME: &str = "time.example.net";

/// The configuration in a section of README, and the commands below it.
struct Readme {
    config: String,
    commands: Vec<String>,
    text: String,
}

impl Readme {
    fn read(section: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
        let text = std::fs::read_to_string(file).unwrap();
        let section = text.split_once(&format!("## {section}\n")).unwrap().1.split_once("\n## ").unwrap().0;
        let (config, rest) = section.split_once("```toml\n").unwrap().1.split_once("```\n").unwrap();
        let commands = rest.lines().filter_map(|line| line.strip_prefix("    ")).map(str::to_owned);
        Readme { config: config.to_owned(), commands: commands.collect(), text: section.to_owned() }
    }

    /// The code within a sentence that begins with these words.
    fn inline(&self, start: &str) -> String {
        let text = self.text.replace('\n', " ");
        let rest = text.split_once(&format!("`{start}")).unwrap().1;
        start.to_owned() + rest.split_once('`').unwrap().0
    }
}

impl Readme {
    /// The lines for chrony.
    fn chrony_lines() -> String {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
        let text = std::fs::read_to_string(file).unwrap();
        let block = text.split_once("```conf\n").unwrap().1.split_once("```\n").unwrap().0;
        assert!(block.lines().count() == 3 && block.contains("bindaddress 127.0.0.1\n"), "{block}");
        block.to_owned()
    }
}

/// A host whose `/etc` is a copy and whose `/var/lib` is empty.
pub(crate) struct Machine {
    /// It holds the view until it ends.
    holder: Process,
    pub(crate) etc: PathBuf,
}

impl Machine {
    pub(crate) fn new(hosts: &Hosts, host: Host, folder: &Path) -> Self {
        let etc = folder.join("etc");
        let copied = Command::new("cp").args(["--archive", "/etc"]).arg(&etc).status().unwrap();
        assert!(copied.success());
        let script = format!(
            "mount --bind {} /etc && mount -t tmpfs tmpfs /var/lib && mount -t tmpfs tmpfs /run && echo it is ready && \
             exec sleep 600",
            etc.display()
        );
        let mut command = hosts.on(host, "unshare");
        let mut holder =
            Process::start(command.args(["--mount", "--propagation", "private", "sh", "-c", &script]));
        holder.wait_for_line("it is ready");
        Machine { holder, etc }
    }

    /// A line for the shell of this machine, where our program is on the path.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--net", "--target", &self.holder.id().to_string(), "sh", "-c"]);
        command.arg(format!("exec {line}"));
        let folder = program().path().parent().unwrap().to_owned();
        command.env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", folder.display()));
        command
    }

    pub(crate) fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// What the package installs, as far as a server needs it, and the name that it has in README.
    fn install_package(&self) {
        let etc = self.etc.join("authentick");
        std::fs::create_dir_all(etc.join("conf.d")).unwrap();
        let packaged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/authentick.toml");
        std::fs::copy(packaged, etc.join("authentick.toml")).unwrap();
        std::fs::write(self.etc.join("hosts"), format!("127.0.0.1 localhost {NAME}\n")).unwrap();
        assert!(self.run("useradd --system authentick").status.success());
    }

    /// Writes the file that a block of README names in its first line.
    fn write(&self, config: &str) {
        let path = config.lines().next().unwrap().strip_prefix("# /etc/").unwrap();
        std::fs::write(self.etc.join(path), config).unwrap();
    }

    /// Puts a certificate where certbot has it, for root alone.
    fn certify(&self, lab: &Lab) {
        let folder = self.etc.join("letsencrypt/live").join(NAME);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(self.etc.join("letsencrypt/live"), PermissionsExt::from_mode(0o700))
            .unwrap();
        for (from, name) in [(lab.chain(), "fullchain.pem"), (lab.key(), "privkey.pem")] {
            std::fs::copy(from, folder.join(name)).unwrap();
            std::fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o600)).unwrap();
        }
    }

    /// What the units do: hand certificates over, check, serve.
    fn restart(&self) -> Process {
        for line in ["authentick certificates hand-over", "authentick serve --check"] {
            let output = self.run(line);
            assert!(output.status.success(), "{line}: {}", text(&output));
        }
        Process::start(&mut self.command("authentick serve"))
    }

    /// The numbers of a user and of its group.
    pub(crate) fn user(&self, name: &str) -> (u32, u32) {
        let users = std::fs::read_to_string(self.etc.join("passwd")).unwrap();
        let line = users.lines().find_map(|line| line.strip_prefix(&format!("{name}:"))).unwrap();
        let numbers: Vec<u32> = line.split(':').filter_map(|field| field.parse().ok()).collect();
        (numbers[0], numbers[1])
    }
}

/// What a certificate says: README's name, and one to tell it by.
pub(crate) fn named(common_name: &'static str) -> impl FnOnce(&mut rcgen::CertificateParams) {
    move |params| {
        params.subject_alt_names.push(SanType::DnsName(NAME.try_into().unwrap()));
        params.distinguished_name.push(DnType::CommonName, common_name);
    }
}

/// Puts the lab's certificate and key where README has them. The service may read the key, by its group.
pub(crate) fn install(lab: &Lab, folder: &Path, group: u32) {
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
    let lab = Lab::with_certificate(named("first.test"));
    let machine = Machine::new(&hosts, Host::Server, lab.path());
    let readme = Readme::read("A server in a minute");
    let [install, restart, query] = &readme.commands[..] else { panic!("{:?}", readme.commands) };
    assert!(install.starts_with("apt install ./authentick_") && restart == "systemctl restart authentick");
    machine.install_package();
    machine.write(&readme.config);
    machine.certify(&lab);
    let lines = format!("{}\nlocal stratum 5\n{}", debian_s_chrony_conf(), Readme::chrony_lines());
    let _chrony = chrony.on(&hosts, Host::Server).daemon(&lab, &lines);
    let mut server = machine.restart();
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
    let ask = || machine.command(query).env("SSL_CERT_FILE", lab.ca()).output().unwrap();
    let answer =
        wait_for("chrony's time", || Some(text(&ask())).filter(|answer| answer.contains("stratum        5")));
    assert!(answer.contains("NTS, ") && answer.contains("CN=first.test"), "{answer}");

    lab.renew(named("renewed.test"));
    machine.certify(&lab);
    assert!(machine.run("authentick certificates hand-over").status.success());
    // It would see it by itself, within half a minute.
    server.signal("-HUP");
    server.wait_for_line("certificate read again");
    let answer = text(&ask());
    assert!(answer.contains("CN=renewed.test") && answer.contains("stratum        5"), "{answer}");
    server.signal("-TERM");
    assert_eq!(server.wait(), 0, "{}", server.log());
}

#[test]
fn server_of_the_readme_has_a_lab_certificate() {
    let Some(chrony) = Chrony::find() else { return };
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let lab = Lab::new();
    let machine = Machine::new(&hosts, Host::Server, lab.path());
    let readme = Readme::read("A server in a minute");
    machine.install_package();
    let command = readme.inline("authentick certificates lab ");
    let made = machine.run(&command);
    assert!(made.status.success(), "{}", text(&made));
    let place = format!("/etc/letsencrypt/live/{NAME}");
    let own = |name: &str| format!("/etc/authentick/lab/{NAME}{name}.pem");
    let config = readme.config.replace(&format!("{place}/fullchain.pem"), &own(""));
    machine.write(&config.replace(&format!("{place}/privkey.pem"), &own("-key")));
    let _chrony = chrony.on(&hosts, Host::Server).daemon(&lab, "local stratum 5\nallow\nport 11123");
    let mut server = machine.restart();
    server.wait_for_line("exchanging keys on ");
    let query = format!("{} {}", readme.commands[2], readme.inline("--ca "));
    let ask = || text(&machine.run(&query));
    let answer =
        wait_for("chrony's time", || Some(ask()).filter(|answer| answer.contains("stratum        5")));
    assert!(answer.contains("NTS, "), "{answer}");
}

/// chrony's configuration as its package installs it, but for its servers, which are not to be reached from here.
fn debian_s_chrony_conf() -> String {
    let file = peers::folder().join("chrony/usr/share/chrony/chrony.conf");
    let text = std::fs::read_to_string(file).unwrap();
    let is_of_servers =
        |line: &str| ["pool ", "sourcedir ", "confdir "].iter().any(|word| line.starts_with(word));
    assert!(text.lines().any(is_of_servers) && text.contains("confdir /etc/chrony/conf.d"), "{text}");
    text.lines().filter(|line| !is_of_servers(line)).map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn kernel_reference_of_the_readme_passes_check() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let lab = Lab::with_certificate(named("first.test"));
    let machine = Machine::new(&hosts, Host::Server, lab.path());
    let readme = Readme::read("A server in a minute");
    machine.install_package();
    let (upstream, comment) = ("reference = { upstream = \"127.0.0.1:11123\" }", "with systemd-timesyncd: ");
    let kernel = readme.config.split_once(comment).unwrap().1.lines().next().unwrap();
    assert_eq!(kernel, "reference = \"kernel\"");
    machine.write(&readme.config.replace(upstream, kernel));
    machine.certify(&lab);
    let mut server = machine.restart();
    server.wait_for_line("serving time on ");
    let log = server.log();
    // A kernel that nothing synchronises is named with the remedy.
    assert!(
        !log.contains("leap=3") || log.contains("systemd-timesyncd") || log.contains("adjtimex"),
        "{log}"
    );
}

/// Where README has memcached.
const MEMCACHED: &str = "192.0.2.9";

#[test]
fn fleet_of_the_readme_shares_its_keys() {
    let (Some(_), Some(_)) = (Chrony::find(), Memcached::find()) else { return };
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let (first, fleet) = (Readme::read("A server in a minute"), Readme::read("A fleet in five commands"));
    let there = |text: &str| text.replace(MEMCACHED, &hosts.address(Host::Server).to_string());
    let [cache, copy, seal, generate, _] = [
        "memcached ",
        "ssh ntp-2 '",
        "authentick keys seal generate",
        "authentick keys generate",
        "systemctl restart authentick",
    ]
    .map(|start| there(fleet.commands.iter().find(|line| line.starts_with(start)).unwrap()));
    assert_eq!(fleet.commands.len(), 5);

    // The host of memcached, as its package leaves it.
    let labs = [(); 3].map(|()| Lab::with_certificate(named("fleet.test")));
    let store = Machine::new(&hosts, Host::Server, labs[2].path());
    assert!(store.run("useradd --system memcache").status.success());
    let peer = peers::folder().join("memcached");
    let mut command = store.command(&cache);
    command.env("LD_LIBRARY_PATH", peers::libraries(&peer));
    command.env("PATH", format!("{}:/usr/bin:/bin", peer.join("usr/bin").display()));
    let _memcached = Process::start(&mut command);

    let shared = there(&fleet.config);
    let second = shared.replace("node = \"ntp-1\"", "node = \"ntp-2\"");
    let mut chronies = Vec::new();
    let machines: Vec<Machine> = [&shared, &second]
        .into_iter()
        .enumerate()
        .map(|(index, shared)| {
            let (lab, host) = (&labs[index], Host::Client(index));
            let machine = Machine::new(&hosts, host, lab.path());
            machine.install_package();
            machine.write(&first.config);
            machine.write(shared);
            machine.certify(lab);
            chronies.push(
                Chrony::find().unwrap().on(&hosts, host).daemon(lab, "local stratum 5\nallow\nport 11123"),
            );
            machine
        })
        .collect();

    let run = |machine: &Machine, line: &str| {
        let output = machine.run(line);
        assert!(output.status.success(), "{line}: {}", text(&output));
    };
    run(&machines[0], &seal);
    // The shell's part of the copy: what runs there, and the file that it reads.
    let (command, file) = copy.strip_prefix("ssh ntp-2 '").unwrap().split_once("' < /etc/").unwrap();
    let from = std::fs::File::open(machines[0].etc.join(file)).unwrap();
    assert!(machines[1].command(command).stdin(from).status().unwrap().success());
    run(&machines[0], &generate);
    let mut servers: Vec<Process> = machines.iter().map(Machine::restart).collect();
    for server in &mut servers {
        server.wait_for_line("exchanging keys on ");
    }
    for machine in &machines {
        wait_for("a good status", || machine.run("authentick keys status").status.success().then_some(()));
    }
    for (machine, lab) in machines.iter().zip(&labs) {
        let mut query = machine.command(&format!("authentick query {NAME}"));
        let output = query.env("SSL_CERT_FILE", lab.ca()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    }
}
