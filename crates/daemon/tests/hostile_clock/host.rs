//! A host whose clock does what a test wants, a node on it, a client that has cookies, and what was logged.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_daemon::clock::HostClock;
use authentick_daemon::keystore::Stores;
use authentick_daemon::{Config, node};
use authentick_ke::client::{Ask, dial};
use authentick_ke::tls::{Roots, client_config};
use authentick_lab::process::wait_for;
use authentick_net::clock::{self, KernelClock};
use authentick_net::udp::{ClientSocket, Received};
use authentick_proto::client::{Check, Exchange, NtsSession};
use authentick_wire::header::{Header, Leap, Mode, ReferenceId};
use authentick_wire::ke::AeadId;
use authentick_wire::limits::{DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::time::{NtpSpan, NtpTime};
use rustls::pki_types::ServerName;

pub(crate) const DAY: u64 = 86_400;
/// Long enough for the node to look at its clock twice.
pub(crate) const TWO_LOOKS: Duration = Duration::from_millis(2200);

/// The clocks of a host that is not this one. They run as fast as ours, from wherever a test sets them.
#[derive(Debug)]
pub(crate) struct Clocks {
    /// Seconds that the wall clock is ahead of ours.
    ahead: AtomicI64,
    /// Seconds that the other clock is ahead of ours.
    later: AtomicU64,
    kernel: Mutex<KernelClock>,
}

impl Clocks {
    /// Clocks that show the time, and of which the kernel says so.
    pub(crate) fn right() -> Arc<Self> {
        let kernel = KernelClock::Synchronised { leap: None, error_max_us: 500 };
        Arc::new(Clocks { ahead: AtomicI64::new(0), later: AtomicU64::new(0), kernel: Mutex::new(kernel) })
    }

    /// Sets the wall clock so far ahead of the right time, in seconds; below zero is behind.
    pub(crate) fn set_ahead(&self, seconds: i64) {
        self.ahead.store(seconds, Ordering::Relaxed);
    }

    /// Sets the wall clock to the first minute of 1970.
    pub(crate) fn set_to_1970(&self) {
        self.set_ahead(30 - i64::try_from(clock::unix_seconds()).unwrap());
    }

    /// Lets time go by, on both clocks.
    pub(crate) fn pass(&self, seconds: u64) {
        self.later.fetch_add(seconds, Ordering::Relaxed);
        self.ahead.fetch_add(seconds as i64, Ordering::Relaxed);
    }

    /// Keeps everyone who asks the kernel waiting until this is dropped.
    pub(crate) fn hang(&self) -> std::sync::MutexGuard<'_, KernelClock> {
        self.kernel.lock().unwrap()
    }

    pub(crate) fn set_kernel(&self, kernel: KernelClock) {
        *self.kernel.lock().unwrap() = kernel;
    }
}

impl HostClock for Clocks {
    fn now(&self) -> NtpTime {
        let ahead = self.ahead.load(Ordering::Relaxed);
        clock::now() + NtpSpan::from_bits(ahead << 32)
    }

    fn unix_seconds(&self) -> u64 {
        clock::unix_seconds().saturating_add_signed(self.ahead.load(Ordering::Relaxed))
    }

    fn boot_ns(&self) -> u64 {
        clock::boot_ns() + self.later.load(Ordering::Relaxed) * 1_000_000_000
    }

    fn kernel(&self) -> KernelClock {
        *self.kernel.lock().unwrap()
    }
}

/// A daemon beside the node, which says of its clock whatever a test wants. It stops with its process.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    said: Arc<Mutex<Option<Header>>>,
}

impl Upstream {
    /// One that vouches for its clock as stratum 3.
    pub(crate) fn start() -> Self {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let (address, said) = (socket.local_addr().unwrap(), Arc::new(Mutex::new(Some(Self::good()))));
        let says = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut buffer = [0; HEADER_SIZE];
            while let Ok((_, client)) = socket.recv_from(&mut buffer) {
                let Some(says) = *says.lock().unwrap() else { continue };
                let (request, now) = (Header::parse(&buffer), clock::now());
                let answer = Header { origin: request.transmit, receive: now, transmit: now, ..says };
                answer.emit(&mut buffer);
                socket.send_to(&buffer, client).unwrap();
            }
        });
        Upstream { address, said }
    }

    pub(crate) fn good() -> Header {
        Header {
            leap: Leap::None,
            mode: Mode::Server,
            stratum: 3,
            reference_id: ReferenceId([192, 0, 2, 1]),
            ..Header::minimal_request(NtpTime::ZERO)
        }
    }

    /// From now on it says this, or nothing.
    pub(crate) fn says(&self, header: Option<Header>) {
        *self.said.lock().unwrap() = header;
    }

    /// How a configuration names it.
    pub(crate) fn reference(&self) -> String {
        format!("{{ upstream = \"{}\" }}", self.address)
    }
}

/// What vouches for the time of a node.
pub(crate) const ASSERTED: &str = "{ stratum = 1, id = \"TEST\" }";
pub(crate) const KERNEL: &str = "\"kernel\"";

/// A host's disk and certificate; nodes come and go on it.
pub(crate) struct Host {
    folder: tempfile::TempDir,
    pub(crate) clocks: Arc<Clocks>,
}

impl Host {
    pub(crate) fn new() -> Self {
        logged();
        let folder = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate =
            rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        std::fs::write(folder.path().join("chain.pem"), certificate.pem()).unwrap();
        let file = folder.path().join("key.pem");
        std::fs::write(&file, key.serialize_pem()).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        Host { folder, clocks: Clocks::right() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a node with keys that rotate daily, of which it keeps seven.
    pub(crate) fn start(&self, reference: &str) -> Node {
        self.start_with(reference, self.stores())
    }

    /// Starts a node with its keys elsewhere.
    pub(crate) fn start_with(&self, reference: &str, stores: Stores) -> Node {
        self.start_as(reference, stores, "random")
    }

    /// Starts a node whose keys follow from each other.
    pub(crate) fn start_derived(&self, reference: &str) -> Node {
        self.start_as(reference, self.stores(), "derived")
    }

    fn start_as(&self, reference: &str, stores: Stores, next: &str) -> Node {
        let folder = self.path();
        let text = format!(
            "[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\nuser = \"root\"\nreference = {reference}\n\
             state-directory = {:?}\nrate-limit = {{ requests-per-second = 0 }}\n\
             [nts]\nke-listen = [\"127.0.0.1:0\"]\nke-workers = 1\ncertificate-chain = {:?}\n\
             private-key = {:?}\ncookie-keys = {{ rotate = \"1d\", keep = 7, next = {next:?} }}\n\
             [metrics]\nlisten = \"127.0.0.1:0\"\n",
            folder.join("state"),
            folder.join("chain.pem"),
            folder.join("key.pem"),
        );
        let config = Config::parse(&folder.join("test.toml"), &text).unwrap();
        let host = node::Host { clock: self.clocks.clone(), stores };
        Node(node::start_on(&host, &config).unwrap())
    }

    fn stores(&self) -> Stores {
        Stores::in_directory(&self.path().join("state"))
    }

    /// The identifier of the key that seals, by the file.
    pub(crate) fn current_key(&self) -> u32 {
        self.stores().cookie_keys.load().unwrap().unwrap().keys.current().id()
    }

    /// Exchanges keys with a node.
    pub(crate) fn session(&self, node: &Node) -> NtsSession {
        let roots = Roots::from_pem(&std::fs::read(self.path().join("chain.pem")).unwrap()).unwrap();
        let ask = Ask {
            tls: client_config(roots),
            server_name: ServerName::try_from("localhost").unwrap(),
            aeads: vec![AeadId::SIV_CMAC_256],
        };
        dial(&ask, node.0.ke_addresses(), Duration::from_secs(20)).unwrap().established.session
    }
}

/// A node at work.
pub(crate) struct Node(node::Running);

impl Node {
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.ntp_addresses()[0]
    }

    /// A metric by its name and labels as they are written.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(self.0.metrics_address().unwrap()).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
    }

    pub(crate) fn rotations(&self) -> f64 {
        self.metric("nts_cookie_key_rotations_total")
    }

    /// Waits until so many rotations were made.
    pub(crate) fn wait_for_rotations(&self, count: f64) {
        wait_for(&format!("{count} rotations"), || (self.rotations() >= count).then_some(()));
    }

    pub(crate) fn stop(self) {
        assert!(self.0.stop(), "no thread had failed");
    }
}

/// Asks for time under NTS with a cookie that the client has: what the server says to it.
pub(crate) fn ask(session: &mut NtsSession, node: &Node) -> Result<(), Check> {
    let socket = ClientSocket::connect(node.address()).unwrap();
    let mut buffer = [0; DATAGRAM_SIZE_MAX];
    let (mut exchange, size) =
        Exchange::nts(session, &mut Entropy::from_system().unwrap(), &mut buffer).unwrap();
    socket.send(&buffer[..size]).unwrap();
    match socket.receive(&mut buffer, Instant::now() + Duration::from_secs(20)).unwrap() {
        Received::Datagram { size, .. } => exchange.receive(&mut buffer[..size], Some(session)).map(drop),
        silence => panic!("{silence:?}"),
    }
}

/// Waits for a line that has all of these parts.
pub(crate) fn wait_for_line(parts: &[&str]) {
    wait_for(&format!("a line with {parts:?}"), || {
        logged().lock().unwrap().iter().any(|line| parts.iter().all(|part| line.contains(part))).then_some(())
    });
}

fn logged() -> &'static Mutex<Vec<String>> {
    static LINES: OnceLock<&'static Mutex<Vec<String>>> = OnceLock::new();
    struct Logger(&'static Mutex<Vec<String>>);
    impl log::Log for Logger {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }

        fn log(&self, record: &log::Record<'_>) {
            if record.target().starts_with("authentick_daemon") {
                self.0.lock().unwrap().push(format!("{}: {}", record.level(), record.args()));
            }
        }

        fn flush(&self) {}
    }
    LINES.get_or_init(|| {
        let lines: &'static Mutex<Vec<String>> = Box::leak(Box::default());
        log::set_logger(Box::leak(Box::new(Logger(lines)))).unwrap();
        log::set_max_level(log::LevelFilter::Info);
        lines
    })
}
