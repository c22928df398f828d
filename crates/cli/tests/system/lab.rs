//! What the tests are made of: certificates, servers on free ports, processes that end with their test, a relay that
//! damages datagrams.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

/// How long a thing may take that takes milliseconds on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Says that a test does not run, and why, where `cargo xtask test` and a person will see it.
pub(crate) fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Past the capture of test output.
    let _ = writeln!(std::io::stderr(), "skipped {name}: {reason}");
    if let Some(list) = std::env::var_os("AUTHENTICK_SKIPS") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(list);
        let _ = file.and_then(|mut file| writeln!(file, "{name}: {reason}"));
    }
}

/// Whether the test runs as root; says that it is skipped if not.
pub(crate) fn is_root(what_for: &str) -> bool {
    let root = authentick_net::privilege::is_root();
    if !root {
        skip(&format!("needs root: {what_for}"));
    }
    root
}

/// Asks again and again until there is an answer.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A port that is free for UDP and TCP on loopback right now.
pub(crate) fn free_port() -> u16 {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A folder with an authority's certificate, and one that it made for a server.
pub(crate) struct Lab {
    folder: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Lab::with_certificate(|_| {})
    }

    /// A lab whose server certificate is changed before it is signed.
    pub(crate) fn with_certificate(change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "authentick test authority");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let lab = Lab { folder: tempfile::tempdir().unwrap(), authority };
        std::fs::write(lab.ca(), lab.authority.pem()).unwrap();
        lab.renew(change);
        lab
    }

    /// Replaces the server's certificate and key.
    pub(crate) fn renew(&self, change: impl FnOnce(&mut CertificateParams)) {
        let names = ["ntp.test", "localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "ntp.test");
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        std::fs::write(self.chain(), certificate.pem() + &self.authority.pem()).unwrap();
        std::fs::write(self.key(), key.serialize_pem()).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.path().join("ca.pem")
    }

    pub(crate) fn chain(&self) -> PathBuf {
        self.path().join("chain.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.path().join("key.pem")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// Writes a configuration on loopback; `server` and `nts` add lines to those tables.
    pub(crate) fn config(&self, server: &str, nts: &str) -> PathBuf {
        let mut text = String::from("[server]\nreference = { stratum = 1, id = \"TEST\" }\n");
        for (key, value) in [("listen", "[\"127.0.0.1:0\"]"), ("user", "\"root\""), ("workers", "1")] {
            if !server.contains(&format!("{key} =")) {
                writeln!(text, "{key} = {value}").unwrap();
            }
        }
        if server.contains("reference =") {
            text = text.replace("reference = { stratum = 1, id = \"TEST\" }\n", "");
        }
        writeln!(text, "state-directory = {:?}\n{server}", self.state()).unwrap();
        writeln!(text, "[nts]\ncertificate-chain = {:?}\nprivate-key = {:?}", self.chain(), self.key())
            .unwrap();
        if !nts.contains("ke-listen =") {
            writeln!(text, "ke-listen = [\"127.0.0.1:0\"]").unwrap();
        }
        writeln!(text, "{nts}\n[metrics]\nlisten = \"127.0.0.1:0\"\nspan-clients = [\"127.0.0.0/8\"]")
            .unwrap();
        let file = self.path().join("authentick.toml");
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Starts a server with the usual configuration.
    pub(crate) fn serve(&self) -> Server {
        Server::start(&self.config("", ""))
    }
}

/// Runs the binary to its end.
pub(crate) fn authentick<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_authentick")).args(arguments).output().unwrap()
}

/// Standard output and standard error of a run, for messages.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A process that ends with its test, and what it has written so far.
pub(crate) struct Process {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let log = Arc::new(Mutex::new(Vec::new()));
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for output in outputs {
            let log = Arc::clone(&log);
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    log.lock().unwrap().push(line);
                }
            });
        }
        Process { child, log }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Waits until a line contains `part`; returns what follows it.
    pub(crate) fn wait_for_line(&mut self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found =
                self.log.lock().unwrap().iter().find_map(|line| Some(line.split_once(part)?.1.to_owned()));
            if let Some(rest) = found {
                return rest;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended ({}) before {part:?}:\n{}", ended.unwrap(), self.log());
            assert!(Instant::now() < deadline, "no {part:?} in:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end; returns the exit code, -1 for an end by signal.
    pub(crate) fn wait(&mut self) -> i32 {
        wait_for("a process to end", || self.child.try_wait().unwrap()).code().unwrap_or(-1)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running `authentick serve`.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) ntp: SocketAddr,
    pub(crate) ke: SocketAddr,
    metrics: SocketAddr,
}

impl Server {
    pub(crate) fn start(config: &Path) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_authentick"));
        let mut process = Process::start(Command::new(program).arg("serve").arg("--config").arg(config));
        let mut address = |part: &str| process.wait_for_line(part).parse().unwrap();
        let (ntp, ke) = (address("serving time on "), address("exchanging keys on "));
        let metrics = process.wait_for_line("showing metrics on http://");
        Server { ntp, ke, metrics: metrics.trim_end_matches("/metrics").parse().unwrap(), process }
    }

    /// Asks the endpoint.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = std::net::TcpStream::connect(self.metrics).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// A metric by its name and labels as they are written.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
    }

    /// How many datagrams came to this end.
    pub(crate) fn outcome(&self, label: &str) -> f64 {
        self.metric(&format!("ntp_server_packets_total{{outcome=\"{label}\"}}"))
    }

    /// `query` under NTS with further arguments.
    pub(crate) fn query(&self, lab: &Lab, arguments: &[&str]) -> Output {
        let (ca, port) = (lab.ca(), self.ke.port().to_string());
        let mut all = vec!["query", "127.0.0.1", "--ca", ca.to_str().unwrap(), "--ke-port", &port];
        all.extend(arguments);
        authentick(all)
    }
}

/// Stands between a client and a server, on a port of its own, and may change what the server sends.
pub(crate) struct Relay {
    stop: Arc<AtomicBool>,
}

impl Relay {
    /// Passes requests to `server` unchanged and its responses through `change`, which may also make several of one.
    pub(crate) fn start(
        server: SocketAddr,
        port: u16,
        mut change: impl FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let onward = UdpSocket::bind("127.0.0.1:0").unwrap();
        onward.connect(server).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        onward.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((size, client)) = socket.recv_from(&mut buffer) else { continue };
                let _ = onward.send(&buffer[..size]);
                let Ok(size) = onward.recv(&mut buffer) else { continue };
                for response in change(buffer[..size].to_vec()) {
                    let _ = socket.send_to(&response, client);
                }
            }
        });
        Relay { stop }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
