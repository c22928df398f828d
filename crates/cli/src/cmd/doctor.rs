//! `authentick doctor --host`: what this host offers to a time server and to a load generator.
//!
//! Facts that decide how fast or how exact the program is here, each found by trying, none by guessing from names.

use std::fmt::Write as _;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use authentick_daemon::{containment, send_buffer};
use authentick_net::clock::{self, KernelClock};
use authentick_net::udp::{ClientSocket, Received, SendBuffer};
use authentick_net::{affinity, descriptors, privilege};
use serde::Serialize;

use crate::args::Doctor;
use crate::exit::{Exit, Failure};
use crate::output;

/// The highest port that takes a right to bind, unless the system has another limit.
const LOW_PORT: u16 = 1023;

/// What was found, as JSON shows it.
#[derive(Debug, Serialize)]
struct Findings {
    cpu: String,
    /// Processors that this process may use.
    cpu_count: u32,
    /// Processors that the host has online; absent: unknown.
    online_cpu_count: Option<u32>,
    /// The control group's quota in thousandths of a processor; absent: none.
    cpu_quota_millicpus: Option<u32>,
    kernel: String,
    /// Their numbers.
    usable_cpus: Vec<usize>,
    /// What the authentication of NTS runs on.
    aead_path: String,
    /// What hashes run on that are computed in batches: those of ANTP, and HMAC-SHA-224.
    hash_path: String,
    /// Base-2 logarithm of the clock's precision in seconds.
    clock_precision: i8,
    /// What the kernel says of its clock.
    kernel_clock: String,
    /// Whether datagrams carry the kernel's receive stamp.
    receive_stamps: bool,
    /// Size of the send buffer that a socket of `serve` gets, in octets as the kernel counts them.
    send_buffer_octets: usize,
    /// Requests a second from neighbours that do not resolve, up to which `serve` answers others.
    unresolved_neighbours_per_second: usize,
    /// What is to be set for more, in words.
    #[serde(skip)]
    send_buffer_shortage: Option<String>,
    /// The most files that this process may have open.
    open_files_max: u64,
    /// Whether ports below 1024 can be had, such as that of NTP.
    low_ports: bool,
    /// The version of Landlock, which narrows down the files of `serve`; absent: none.
    landlock: Option<u32>,
    /// Whether the threads of `serve` can have system call filters.
    system_call_filters: bool,
    /// What `serve` is contained with here, in words.
    #[serde(skip)]
    containment: String,
}

pub(crate) fn run(arguments: &Doctor) -> Result<Exit, Failure> {
    let findings = Findings::find();
    output::json_or_text(arguments.json, &findings, || findings.text())?;
    Ok(Exit::Done)
}

impl Findings {
    fn find() -> Self {
        let host = authentick_load::machine();
        let offer = containment::offer();
        let send_buffer = SendBuffer::probe().unwrap_or(SendBuffer { size: 0 });
        Findings {
            cpu: host.cpu,
            cpu_count: host.cpu_count,
            online_cpu_count: host.online_cpu_count,
            cpu_quota_millicpus: host.cpu_quota_millicpus,
            kernel: host.kernel,
            usable_cpus: affinity::allowed().unwrap_or_default(),
            aead_path: authentick_crypto::path().to_string(),
            hash_path: authentick_crypto::hash_path().to_string(),
            clock_precision: clock::precision(),
            kernel_clock: match clock::kernel_clock() {
                KernelClock::Synchronised { error_max_us, .. } => {
                    format!("synchronised, at most {error_max_us} us off")
                }
                KernelClock::Unsynchronised => "not synchronised".to_owned(),
                KernelClock::Unknown => "unknown: it may not be asked here".to_owned(),
            },
            receive_stamps: has_receive_stamps().unwrap_or(false),
            send_buffer_octets: send_buffer.size,
            unresolved_neighbours_per_second: send_buffer.unresolved_rate(),
            send_buffer_shortage: send_buffer::shortage(send_buffer),
            open_files_max: descriptors::raise_limit()
                .unwrap_or_else(|_| descriptors::limit())
                .unwrap_or(u64::MAX),
            low_ports: privilege::may_bind(LOW_PORT),
            containment: offer.to_string(),
            landlock: offer.landlock.ok(),
            system_call_filters: offer.filters,
        }
    }

    fn text(&self) -> String {
        let yes =
            |found: bool, otherwise: &str| if found { "yes".to_owned() } else { format!("no: {otherwise}") };
        let cpus: Vec<String> = self.usable_cpus.iter().map(usize::to_string).collect();
        let lines = [
            ("processor", format!("{}, {} to use: {}", self.cpu, self.counts(), cpus.join(", "))),
            ("processor quota", self.quota()),
            ("kernel", self.kernel.clone()),
            ("NTS authentication", self.aead_path.clone()),
            ("hashes in batches", self.hash_path.clone()),
            ("clock", format!("steps of 2^{} s or less; {}", self.clock_precision, self.kernel_clock)),
            (
                "receive stamps",
                yes(self.receive_stamps, "offsets and latencies include waiting for this process"),
            ),
            (
                "send buffer",
                self.send_buffer_shortage.clone().unwrap_or_else(|| {
                    let (size, rate) = (self.send_buffer_octets >> 10, self.unresolved_neighbours_per_second);
                    format!("{size} KiB, enough for {rate} requests/s from unresolved neighbours")
                }),
            ),
            ("open files", format!("up to {}, one for each simulated client", self.open_files_max)),
            ("containment", self.containment.clone()),
            ("ports below 1024", yes(self.low_ports, "start as root, or with CAP_NET_BIND_SERVICE")),
        ];
        let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        lines.iter().fold(String::new(), |mut text, (name, value)| {
            writeln!(text, "{name:width$}  {value}").expect("writing to a string cannot fail");
            text
        })
    }
}

impl Findings {
    /// How many processors are to be used, and how many there are, for people.
    fn counts(&self) -> String {
        let online = self.online_cpu_count.map_or_else(String::new, |online| format!(" of {online}"));
        format!("{}{online}", self.cpu_count)
    }

    /// The quota of the control group, for people.
    fn quota(&self) -> String {
        self.cpu_quota_millicpus.map_or_else(
            || "none".to_owned(),
            |millicpus| {
                let cpus = f64::from(millicpus) / 1000.0;
                format!("{cpus} processors, by the control group: the kernel stops threads that exceed it")
            },
        )
    }
}

/// Sends a datagram to ourselves, reads it late, and looks whether its stamp is from when it came.
fn has_receive_stamps() -> std::io::Result<bool> {
    const LATE: Duration = Duration::from_millis(5);
    let server = UdpSocket::bind("127.0.0.1:0")?;
    let client = ClientSocket::connect(server.local_addr()?)?;
    server.send_to(b"stamp", client.local()?)?;
    std::thread::sleep(LATE);
    match client.receive(&mut [0; 16], Instant::now() + LATE)? {
        Received::Datagram { at, .. } => Ok(clock::now().since(at).as_nanos() >= LATE.as_nanos() as i64 / 2),
        Received::Hint(_) | Received::Silence => Ok(false),
    }
}
