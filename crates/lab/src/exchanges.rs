//! Key exchange servers that misbehave in a set way and count what they did.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use authentick_ke::tls::{Identity, server_config};
use authentick_wire::Writer;
use authentick_wire::ke::{self, ErrorCode, RecordType};
use authentick_wire::limits::KE_REQUEST_SIZE_MAX;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::certificates::Lab;
use crate::process::PATIENCE;

/// How often a thread without work looks whether it is to end.
const IDLE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// An attempt to connect that takes so long finds the queue full.
const FULL_AFTER: Duration = Duration::from_millis(200);

/// What a server does with those who connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// It never accepts, and its queue is full: nobody connects.
    Deaf,
    /// It accepts and says nothing.
    Mute,
    /// It accepts and resets.
    Reset,
    /// It answers the first octets of TLS with an alert of this description, such as 40, handshake failure. RFC 8446
    /// section 6.
    Alert(u8),
    /// It knows no application protocol that the client knows, and says so as TLS demands.
    NoProtocol,
    /// It reads the request under TLS and closes without an answer.
    Close,
    /// It reads the request under TLS and answers with an Error record.
    Error(ErrorCode),
    /// It reads the request under TLS and answers with a critical record that no client knows.
    Nonsense,
}

/// What a server did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub accepted: u64,
    /// Requests read to their end under TLS.
    pub requests: u64,
    /// Connections that ended before that; counted after the client was told.
    pub failed: u64,
}

/// A running server. It ends with this value, and with it all connections.
#[derive(Debug)]
pub struct KeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// What fills the queue of a server that never accepts.
    _fillers: Vec<TcpStream>,
}

#[derive(Debug, Default)]
struct Shared {
    accepted: AtomicU64,
    requests: AtomicU64,
    failed: AtomicU64,
    stop: AtomicBool,
    /// Connections that a mute server keeps.
    kept: Mutex<Vec<TcpStream>>,
}

impl KeServer {
    /// Serves on `listener` with the certificate of `lab`. To be called where the listener was bound: within a host,
    /// threads and connections made here are on that host.
    ///
    /// # Panics
    /// If the listener or the certificate cannot be used.
    #[must_use]
    pub fn start(listener: TcpListener, behaviour: Behaviour, lab: &Lab) -> Self {
        let (address, shared) = (listener.local_addr().unwrap(), Arc::<Shared>::default());
        let mut server = KeServer { address, shared, thread: None, _fillers: Vec::new() };
        if behaviour == Behaviour::Deaf {
            server._fillers = fill(&listener, address);
        }
        listener.set_nonblocking(true).unwrap();
        let (tls, shared) = (tls(behaviour, lab), Arc::clone(&server.shared));
        server.thread = Some(std::thread::spawn(move || accept(&listener, behaviour, &tls, &shared)));
        server
    }

    /// Serves on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn on_loopback(behaviour: Behaviour, lab: &Lab) -> Self {
        KeServer::start(TcpListener::bind("127.0.0.1:0").unwrap(), behaviour, lab)
    }

    /// Where it serves.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done until now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let [accepted, requests, failed] =
            [&self.shared.accepted, &self.shared.requests, &self.shared.failed]
                .map(|count| count.load(Ordering::Relaxed));
        Counts { accepted, requests, failed }
    }
}

impl Drop for KeServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.kept.lock().unwrap().clear();
    }
}

/// Makes the listener's queue as short as can be and connects until nobody else can.
fn fill(listener: &TcpListener, mut address: SocketAddr) -> Vec<TcpStream> {
    rustix::net::listen(listener, 0).unwrap();
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            [127, 0, 0, 1].into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    std::iter::from_fn(|| TcpStream::connect_timeout(&address, FULL_AFTER).ok()).collect()
}

fn tls(behaviour: Behaviour, lab: &Lab) -> Arc<ServerConfig> {
    let read = |path| std::fs::read(path).unwrap();
    let mut config = server_config(&Identity::from_pem(&read(lab.chain()), &read(lab.key())).unwrap());
    if behaviour == Behaviour::NoProtocol {
        Arc::make_mut(&mut config).alpn_protocols = vec![b"other/1".to_vec()];
    }
    config
}

fn accept(listener: &TcpListener, behaviour: Behaviour, tls: &Arc<ServerConfig>, shared: &Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        let _ = poll(&mut [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)], Some(&IDLE));
        if behaviour == Behaviour::Deaf {
            // A poll that finds somebody returns at once.
            std::thread::sleep(Duration::from_millis(20));
            continue;
        }
        let Ok((stream, _)) = listener.accept() else { continue };
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        match behaviour {
            Behaviour::Deaf => {}
            Behaviour::Mute => shared.kept.lock().unwrap().push(stream),
            Behaviour::Reset => {
                // socket(7): closing with a linger time of zero resets.
                let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
            }
            Behaviour::Alert(_)
            | Behaviour::NoProtocol
            | Behaviour::Close
            | Behaviour::Error(_)
            | Behaviour::Nonsense => {
                let (tls, shared) = (Arc::clone(tls), Arc::clone(shared));
                std::thread::spawn(move || talk(stream, behaviour, tls, &shared));
            }
        }
    }
}

/// One connection to its end; errors are the client's affair.
fn talk(stream: TcpStream, behaviour: Behaviour, tls: Arc<ServerConfig>, shared: &Shared) {
    let set_up = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
        .and_then(|()| stream.set_nodelay(true));
    let Ok(connection) = ServerConnection::new(tls) else { return };
    if set_up.is_err() {
        return;
    }
    let mut stream = StreamOwned::new(connection, stream);
    if let Behaviour::Alert(description) = behaviour {
        alert(&mut stream.sock, description);
    }
    if matches!(behaviour, Behaviour::Alert(_)) || read_request(&mut stream).is_none() {
        shared.failed.fetch_add(1, Ordering::Relaxed);
        // The client reads an alert only if nothing that it sent is left unread; a reset would overtake it.
        let _ = stream.sock.shutdown(std::net::Shutdown::Write);
        let _ = std::io::copy(&mut stream.sock, &mut std::io::sink());
        return;
    }
    shared.requests.fetch_add(1, Ordering::Relaxed);
    let answer = match behaviour {
        Behaviour::Error(code) => message(RecordType::ERROR, &code.0.to_be_bytes()),
        Behaviour::Nonsense => message(RecordType(0x3FFF), &[0xA5; 16]),
        Behaviour::Deaf | Behaviour::Mute | Behaviour::Reset | Behaviour::Close => Vec::new(),
        Behaviour::Alert(_) | Behaviour::NoProtocol => Vec::new(),
    };
    let _ = stream.write_all(&answer);
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

/// Sends a fatal alert to a client that has begun to talk.
fn alert(stream: &mut TcpStream, description: u8) {
    let _ = stream.read(&mut [0; 1024]);
    // RFC 8446 section 5.1: type alert, a version that is ignored, two octets; level fatal.
    let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, description]);
}

/// Reads until the request is whole; `None` if it never is.
fn read_request(stream: &mut StreamOwned<ServerConnection, TcpStream>) -> Option<()> {
    let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
    while ke::message_size(&request).is_none() {
        let size = stream.read(&mut buffer).ok().filter(|size| *size > 0)?;
        request.extend_from_slice(&buffer[..size]);
        if request.len() > KE_REQUEST_SIZE_MAX {
            return None;
        }
    }
    Some(())
}

/// A message of one critical record and its end.
fn message(kind: RecordType, body: &[u8]) -> Vec<u8> {
    let mut octets = [0; 64];
    let mut out = Writer::new(&mut octets);
    ke::emit(&mut out, true, kind, body).expect("there is room");
    ke::emit(&mut out, true, RecordType::END_OF_MESSAGE, &[]).expect("there is room");
    let size = out.offset();
    octets[..size].to_vec()
}
