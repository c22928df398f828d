//! A long path for a few clients: a port that passes datagrams on to a server, and answers back, each after a delay.
//!
//! It needs no rights and no support of the kernel, and is for hundreds of datagrams a second, not for a load. A
//! direction keeps its order. Whatever the system wakes a thread too late adds to the delay: some 0.1 ms, more where
//! no processor is free.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Clients, each with a port of its own, that it carries at most.
pub(super) const CLIENT_COUNT_MAX: usize = 64;
/// How often a thread without work looks whether it is to end.
const IDLE: Duration = Duration::from_millis(50);
/// Larger than any datagram of NTP that is not fragmented.
const DATAGRAM_SIZE_MAX: usize = 2048;

/// A datagram on its way: when it arrives, through which socket, and where.
struct Travelling {
    due: Instant,
    socket: Arc<UdpSocket>,
    /// None: whom the socket is connected to.
    to: Option<SocketAddr>,
    octets: Vec<u8>,
}

/// The path, which ends with this value.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// A path to `server` that takes `one_way` in each direction.
    pub(super) fn start(server: SocketAddr, one_way: Duration) -> io::Result<Self> {
        let entrance = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
        entrance.set_read_timeout(Some(IDLE))?;
        let address = entrance.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut relay = Relay { address, stop: Arc::clone(&stop), threads: Vec::new() };
        // A queue and a thread for each direction: a delay that is always the same keeps the order.
        let (there, out) = channel();
        let (back, home) = channel();
        relay.spawn(move || deliver(&out))?;
        relay.spawn(move || deliver(&home))?;
        relay.spawn(move || enter(&entrance, server, one_way, &there, &back, &stop))?;
        Ok(relay)
    }

    fn spawn(&mut self, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(std::thread::Builder::new().name("long-path".to_owned()).spawn(run)?);
        Ok(())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Hands each datagram over when it is due. Ends with those who send.
fn deliver(travelling: &Receiver<Travelling>) {
    while let Ok(Travelling { due, socket, to, octets }) = travelling.recv() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        // What a socket does not take is lost, as on any path.
        let _ = match to {
            Some(to) => socket.send_to(&octets, to),
            None => socket.send(&octets),
        };
    }
}

/// Takes what clients send. Each client gets a socket towards the server, and a thread that takes its answers.
fn enter(
    entrance: &Arc<UdpSocket>,
    server: SocketAddr,
    one_way: Duration,
    there: &Sender<Travelling>,
    back: &Sender<Travelling>,
    stop: &Arc<AtomicBool>,
) {
    let mut clients: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
    std::thread::scope(|scope| {
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        while !stop.load(Ordering::Relaxed) {
            let Some((size, from)) = received(entrance.recv_from(&mut buffer)) else { continue };
            let socket = match clients.get(&from) {
                Some(socket) => Arc::clone(socket),
                None if clients.len() == CLIENT_COUNT_MAX => continue,
                None => {
                    let Ok(socket) = towards(server) else { continue };
                    clients.insert(from, Arc::clone(&socket));
                    let (own, entrance, back) = (Arc::clone(&socket), Arc::clone(entrance), back.clone());
                    scope.spawn(move || leave(&own, &entrance, from, one_way, &back, stop));
                    socket
                }
            };
            let travelling = Travelling {
                due: Instant::now() + one_way,
                socket,
                to: None,
                octets: buffer[..size].to_vec(),
            };
            if there.send(travelling).is_err() {
                return;
            }
        }
    });
}

/// Takes what the server answers to one client.
fn leave(
    own: &UdpSocket,
    entrance: &Arc<UdpSocket>,
    to: SocketAddr,
    one_way: Duration,
    back: &Sender<Travelling>,
    stop: &AtomicBool,
) {
    let mut buffer = [0; DATAGRAM_SIZE_MAX];
    while !stop.load(Ordering::Relaxed) {
        let Some((size, ())) = received(own.recv(&mut buffer).map(|size| (size, ()))) else { continue };
        let (due, socket) = (Instant::now() + one_way, Arc::clone(entrance));
        if back.send(Travelling { due, socket, to: Some(to), octets: buffer[..size].to_vec() }).is_err() {
            return;
        }
    }
}

fn towards(server: SocketAddr) -> io::Result<Arc<UdpSocket>> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(IDLE))?;
    Ok(Arc::new(socket))
}

/// What came, if anything did. A server that is gone answers with an error, and may come back.
fn received<T>(result: io::Result<T>) -> Option<T> {
    match result {
        Ok(received) => Some(received),
        Err(error) => {
            if !matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused
            ) {
                std::thread::sleep(IDLE);
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_to_their_own_clients_after_both_delays() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let echo = std::thread::spawn(move || {
            let mut buffer = [0; 64];
            for _ in 0..6 {
                let (size, from) = server.recv_from(&mut buffer).unwrap();
                server.send_to(&buffer[..size], from).unwrap();
            }
        });
        let one_way = Duration::from_millis(30);
        let relay = Relay::start(address, one_way).unwrap();
        let clients: Vec<UdpSocket> = (0..2)
            .map(|_| {
                let client = UdpSocket::bind("127.0.0.1:0").unwrap();
                client.connect(relay.address).unwrap();
                client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                client
            })
            .collect();
        let start = Instant::now();
        for octet in 0..3 {
            clients.iter().zip([10, 20]).for_each(|(client, base)| {
                client.send(&[base + octet]).unwrap();
            });
        }
        for (client, base) in clients.iter().zip([10, 20]) {
            for octet in 0..3 {
                let mut buffer = [0; 64];
                assert_eq!(client.recv(&mut buffer).unwrap(), 1);
                assert_eq!(buffer[0], base + octet, "in order, and nobody else's");
            }
        }
        assert!(start.elapsed() >= 2 * one_way, "{:?}", start.elapsed());
        echo.join().unwrap();
    }

    #[test]
    fn relay_ends_while_clients_are_silent() {
        let relay = Relay::start("127.0.0.1:9".parse().unwrap(), Duration::from_millis(1)).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.send_to(&[0; 48], relay.address).unwrap();
        drop(relay);
    }
}
