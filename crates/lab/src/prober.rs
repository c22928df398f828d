//! A client that asks a server ten times a second, and remembers what it was told and what it was not.
//!
//! What happens to a server is judged by its clients: a test starts one of these, does something to the server, and
//! asserts how many requests were lost meanwhile and what time, of which quality, the others were given. Requests are
//! plain NTP over one socket; an answer counts if its origin is a request's transmit timestamp.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use authentick_wire::header::{Header, Mode};
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::NtpTime;

/// From one request to the next.
pub const INTERVAL: Duration = Duration::from_millis(100);
/// A request that has no answer by then is lost. Far above what a busy machine adds.
pub const TIMEOUT: Duration = Duration::from_secs(2);

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// When it was sent.
    pub asked: Instant,
    /// What the server said, if it said something.
    pub told: Option<Header>,
}

/// A client at work. Dropping it stops it.
#[derive(Debug)]
pub struct Prober {
    probes: Arc<Mutex<Vec<Probe>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Prober {
    /// Starts to ask `server`.
    ///
    /// # Panics
    /// If there is no socket to be had.
    #[must_use]
    pub fn start(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind(if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).unwrap();
        socket.connect(server).unwrap();
        let (probes, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (list, stopped) = (Arc::clone(&probes), Arc::clone(&stop));
        let thread = std::thread::spawn(move || ask(&socket, &list, &stopped));
        Prober { probes, stop, thread: Some(thread) }
    }

    /// The requests so far whose fate is known, in their order.
    ///
    /// # Panics
    /// If the client has failed.
    #[must_use]
    pub fn so_far(&self) -> Vec<Probe> {
        let probes = self.probes.lock().unwrap();
        probes
            .iter()
            .filter(|probe| probe.told.is_some() || probe.asked.elapsed() > TIMEOUT)
            .copied()
            .collect()
    }

    /// Asks for so long, from now on; returns the requests of that time, with their fates.
    ///
    /// # Panics
    /// If the client has failed.
    #[must_use]
    pub fn during(&self, time: Duration) -> Vec<Probe> {
        let from = Instant::now();
        std::thread::sleep(time);
        let to = Instant::now();
        loop {
            let probes = self.probes.lock().unwrap().clone();
            let asked = probes.into_iter().filter(|probe| (from..to).contains(&probe.asked));
            let probes: Vec<Probe> = asked.collect();
            if probes.iter().all(|probe| probe.told.is_some()) || to.elapsed() > TIMEOUT {
                return probes;
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// Stops asking, waits for the last answers, and returns all requests.
    ///
    /// # Panics
    /// If the client has failed.
    #[must_use]
    pub fn stop(mut self) -> Vec<Probe> {
        self.end();
        self.probes.lock().unwrap().clone()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the client has failed");
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.end();
    }
}

/// How many of these requests were lost.
#[must_use]
pub fn lost_count(probes: &[Probe]) -> usize {
    probes.iter().filter(|probe| probe.told.is_none()).count()
}

fn ask(socket: &UdpSocket, probes: &Mutex<Vec<Probe>>, stop: &AtomicBool) {
    let (start, mut sent): (Instant, u32) = (Instant::now(), 0);
    // After the last request, answers are waited for.
    let mut last: Option<Instant> = None;
    loop {
        if last.is_none() && stop.load(Ordering::Relaxed) {
            last = Some(Instant::now());
        }
        let is_done = probes.lock().unwrap().iter().all(|probe| probe.told.is_some());
        if last.is_some_and(|last| is_done || last.elapsed() > TIMEOUT) {
            return;
        }
        if last.is_none() && start.elapsed() >= INTERVAL * sent {
            probes.lock().unwrap().push(Probe { asked: Instant::now(), told: None });
            // A server that is not there answers by ICMP, which the socket reports at the next call.
            let _ = socket.send(&request(sent));
            sent += 1;
        }
        let wait =
            (INTERVAL * sent).saturating_sub(start.elapsed()).clamp(Duration::from_millis(1), INTERVAL);
        socket.set_read_timeout(Some(wait)).unwrap();
        let mut buffer = [0; 2048];
        if let Ok(size) = socket.recv(&mut buffer)
            && let Some((index, header)) = answer(&buffer[..size])
            && let Some(probe) = probes.lock().unwrap().get_mut(index)
        {
            probe.told = Some(header);
        }
    }
}

/// The request of this number, which its transmit timestamp repeats.
fn request(number: u32) -> [u8; HEADER_SIZE] {
    let mut octets = [0; HEADER_SIZE];
    let transmit = NtpTime::from_bits(u64::from(MARK) << 32 | u64::from(number));
    Header::minimal_request(transmit).emit(&mut octets);
    octets
}

/// Tells our answers from others'.
const MARK: u32 = 0xA57E_0001;

/// The number of the request that this answers, and its header.
fn answer(octets: &[u8]) -> Option<(usize, Header)> {
    let header = Header::parse(octets.first_chunk()?);
    let (mark, number) = ((header.origin.to_bits() >> 32) as u32, header.origin.to_bits() as u32);
    (header.mode == Mode::Server && mark == MARK).then_some((number as usize, header))
}
