//! Real peers as processes: chrony, ntpd-rs, facebook/time. None of them can touch this machine's clock.
//!
//! `find` says that the running test is skipped where a peer is missing. Everything else panics where a test would.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::certificates::Lab;
use crate::hosts::{Host, Hosts};
use crate::process::{Process, free_port, text};
use crate::skip::{is_root, skip};

/// The folder that `cargo xtask peers` fills.
#[must_use]
pub fn folder() -> PathBuf {
    match std::env::var_os("AUTHENTICK_PEERS") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
    }
}

/// Where a peer that was unpacked from packages has its libraries.
#[must_use]
pub fn libraries(peer: &Path) -> PathBuf {
    peer.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH))
}

/// A peer's program; says that the test is skipped if it is not there.
fn program(path: &str) -> Option<PathBuf> {
    let program = folder().join(path);
    if !program.exists() {
        skip(&format!("{path} is missing; run cargo xtask peers"));
        return None;
    }
    Some(program)
}

/// Where a peer runs: the name of a network namespace, or this one.
#[derive(Clone, Debug, Default)]
struct Place(Option<String>);

impl Place {
    fn on(hosts: &Hosts, host: Host) -> Self {
        Place(Some(hosts.name(host).to_owned()))
    }

    fn command(&self, program: &Path) -> Command {
        match &self.0 {
            None => Command::new(program),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(program);
                command
            }
        }
    }
}

/// Debian's chrony; it wants to be root even where it touches nothing.
#[derive(Debug)]
pub struct Chrony {
    folder: PathBuf,
    place: Place,
}

impl Chrony {
    /// Debian's chrony, if it is here and may run.
    #[must_use]
    pub fn find() -> Option<Self> {
        program("chrony/usr/sbin/chronyd")?;
        is_root("chronyd starts as root only")
            .then(|| Chrony { folder: folder().join("chrony"), place: Place::default() })
    }

    /// The same on a host.
    #[must_use]
    pub fn on(self, hosts: &Hosts, host: Host) -> Self {
        Chrony { place: Place::on(hosts, host), ..self }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.place.command(&self.folder.join(program));
        command.env("LD_LIBRARY_PATH", libraries(&self.folder));
        command
    }

    /// A client with these configuration lines that asks once and prints what it found, without setting any clock
    /// (`-x -Q`).
    #[must_use]
    pub fn ask_once(&self, lab: &Lab, lines: &str) -> std::process::Output {
        self.command("usr/sbin/chronyd")
            .args(["-x", "-Q", "-t", "10", "-u", "root"])
            .args(lines.lines())
            .arg(format!("ntstrustedcerts {}", lab.ca().display()))
            .args(["cmdport 0", "bindcmdaddress /"])
            .arg(format!("pidfile {}", lab.path().join("chrony-once.pid").display()))
            .output()
            .unwrap()
    }

    /// A daemon with these configuration lines, without setting any clock (`-x`).
    #[must_use]
    pub fn daemon(&self, lab: &Lab, lines: &str) -> ChronyDaemon {
        let folder = lab.path().join("chrony");
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let (config, socket) = (folder.join("chrony.conf"), folder.join("chronyd.sock"));
        let folder_text = folder.display();
        std::fs::write(
            &config,
            format!(
                "{lines}\nntstrustedcerts {}\nntsdumpdir {folder_text}\ncmdport 0\nbindcmdaddress {}\n\
                 pidfile {folder_text}/pid\ndriftfile {folder_text}/drift\nuser root\n",
                lab.ca().display(),
                socket.display()
            ),
        )
        .unwrap();
        let process = Process::start(self.command("usr/sbin/chronyd").args(["-x", "-d", "-f"]).arg(config));
        ChronyDaemon { process, socket, folder: self.folder.clone() }
    }

    /// A server under NTS on these ports, asserting stratum 1.
    #[must_use]
    pub fn server(&self, lab: &Lab, ntp: u16, ke: u16) -> ChronyDaemon {
        let (key, chain) = (lab.key(), lab.chain());
        let mut daemon = self.daemon(
            lab,
            &format!(
                "local stratum 1\nallow\nport {ntp}\nntsport {ke}\nntsserverkey {}\nntsservercert {}",
                key.display(),
                chain.display()
            ),
        );
        daemon.process.wait_for_line("chronyd version");
        // It opens its sockets after it has said so, and answers its own client after that.
        let deadline = Instant::now() + Duration::from_secs(20);
        while daemon.ask("tracking").is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        daemon
    }
}

/// A running `chronyd`.
#[derive(Debug)]
pub struct ChronyDaemon {
    /// The process.
    pub process: Process,
    socket: PathBuf,
    folder: PathBuf,
}

impl ChronyDaemon {
    /// What `chronyc` prints, with values separated by commas.
    pub fn ask(&mut self, what: &str) -> String {
        // Through a socket file, so from anywhere.
        let output = Command::new(self.folder.join("usr/bin/chronyc"))
            .env("LD_LIBRARY_PATH", libraries(&self.folder))
            .arg("-h")
            .arg(&self.socket)
            .args(["-n", "-c", what])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// ntpd-rs. As a client it would steer the clock: it runs behind a filter that answers every attempt with success and
/// does nothing, and without the right to do it anyway.
#[derive(Debug)]
pub struct NtpdRs {
    daemon: PathBuf,
    control: PathBuf,
    place: Place,
    address: IpAddr,
}

impl NtpdRs {
    /// ntpd-rs, if it is here.
    #[must_use]
    pub fn find() -> Option<Self> {
        Some(NtpdRs {
            daemon: program("ntpd-rs/bin/ntp-daemon")?,
            control: program("ntpd-rs/bin/ntp-ctl")?,
            place: Place::default(),
            address: Ipv4Addr::LOCALHOST.into(),
        })
    }

    /// The same on a host, where a server listens on the host's IPv4 address.
    #[must_use]
    pub fn on(self, hosts: &Hosts, host: Host) -> Self {
        NtpdRs { place: Place::on(hosts, host), address: hosts.address(host), ..self }
    }

    /// A client of one NTS source.
    #[must_use]
    pub fn client(&self, lab: &Lab, ke: SocketAddr) -> NtpdRsClient {
        let config = lab.path().join("ntpd-rs.toml");
        let socket = lab.path().join("ntpd-rs.sock");
        std::fs::write(
            &config,
            format!(
                "[observability]\nlog-level = \"info\"\nobservation-path = {socket:?}\n\
                 [[source]]\nmode = \"nts\"\naddress = \"localhost:{}\"\ncertificate-authority = {:?}\n\
                 [source-defaults]\npoll-interval-limits = {{ min = 4, max = 4 }}\ninitial-poll-interval = 4\n\
                 [synchronization]\nminimum-agreeing-sources = 1\nsingle-step-panic-threshold = \"inf\"\n\
                 startup-step-panic-threshold = \"inf\"\n",
                ke.port(),
                lab.ca()
            ),
        )
        .unwrap();
        let mut command = self.place.command(&self.daemon);
        command.arg("-c").arg(&config);
        // The filter and the missing right belong to a thread and are inherited by what it starts.
        let process = std::thread::spawn(move || {
            forbid_setting_clocks();
            Process::start(&mut command)
        });
        NtpdRsClient { process: process.join().unwrap(), control: self.control.clone(), config }
    }

    /// A server under NTS; without sources it only reads the clock.
    #[must_use]
    pub fn server(&self, lab: &Lab, ntp: u16, ke: u16) -> Process {
        let (config, address) = (lab.path().join("ntpd-rs-server.toml"), self.address);
        std::fs::write(
            &config,
            format!(
                "[observability]\nlog-level = \"info\"\n[synchronization]\nlocal-stratum = 1\n\
                 [[server]]\nlisten = \"{address}:{ntp}\"\n\
                 [[nts-ke-server]]\nlisten = \"{address}:{ke}\"\nntp-port = {ntp}\n\
                 certificate-chain-path = {:?}\nprivate-key-path = {:?}\n[keyset]\nstale-key-count = 1\n",
                lab.chain(),
                lab.key()
            ),
        )
        .unwrap();
        let mut command = self.place.command(&self.daemon);
        command.arg("-c").arg(&config);
        std::thread::spawn(move || {
            forbid_setting_clocks();
            Process::start(&mut command)
        })
        .join()
        .unwrap()
    }
}

/// ntpd-rs as a client.
#[derive(Debug)]
pub struct NtpdRsClient {
    /// The process.
    pub process: Process,
    control: PathBuf,
    config: PathBuf,
}

impl NtpdRsClient {
    /// What `ntp-ctl status` prints.
    #[must_use]
    pub fn status(&self) -> String {
        let output = Command::new(&self.control).arg("-c").arg(&self.config).arg("status").output().unwrap();
        text(&output)
    }
}

/// From here on the calling thread, and what it starts, cannot set a clock, and is told that it could.
fn forbid_setting_clocks() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let calls =
        [libc::SYS_clock_adjtime, libc::SYS_adjtimex, libc::SYS_clock_settime, libc::SYS_settimeofday];
    let rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(0), arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    if authentick_net::privilege::is_root() {
        for set in [caps::CapSet::Bounding, caps::CapSet::Effective, caps::CapSet::Permitted] {
            caps::drop(None, set, caps::Capability::CAP_SYS_TIME).unwrap();
        }
    }
    seccompiler::apply_filter(&program).unwrap();
}

/// facebook/time: the key exchange, the responder and the test client are programs of their own.
#[derive(Debug)]
pub struct FacebookTime {
    folder: PathBuf,
}

impl FacebookTime {
    /// facebook/time, if it is here.
    #[must_use]
    pub fn find() -> Option<Self> {
        program("facebook-time/ntsketest")?;
        Some(FacebookTime { folder: folder().join("facebook-time") })
    }

    /// The client: one key exchange and one authenticated exchange.
    #[must_use]
    pub fn ask_once(&self, lab: &Lab, ke: SocketAddr, ntp: SocketAddr) -> std::process::Output {
        Command::new(self.folder.join("ntsketest"))
            .args(["-addr", &ke.to_string(), "-ntp-addr", &ntp.to_string(), "-ca"])
            .arg(lab.ca())
            .output()
            .unwrap()
    }

    /// The server: two processes that share a key.
    #[must_use]
    pub fn server(&self, lab: &Lab, ntp: u16, ke: u16) -> [Process; 2] {
        let exchange = Process::start(
            Command::new(self.folder.join("ntske"))
                .args(["-addr", &format!("127.0.0.1:{ke}"), "-cert"])
                .arg(lab.chain())
                .arg("-key")
                .arg(lab.key()),
        );
        let responder = Process::start(Command::new(self.folder.join("ntpresponder")).args([
            "-enable-nts",
            "-manage-loopback=false",
            "-ip",
            "127.0.0.1",
            "-port",
            &ntp.to_string(),
            "-workers",
            "2",
            "-monitoringport",
            &free_port().to_string(),
        ]));
        [exchange, responder]
    }
}
