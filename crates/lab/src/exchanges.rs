//! Key exchange servers that misbehave in a set way and count what they did.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use authentick_ke::tls::{Identity, server_config};
use authentick_rig::threads::{Threads, await_readable};
use authentick_wire::ke::{self, AeadId, ErrorCode, RecordType};
use authentick_wire::limits::KE_REQUEST_SIZE_MAX;
use authentick_wire::{NoRoom, Writer};
use rustix::net::sockopt;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::certificates::Lab;
use crate::process::PATIENCE;

/// An attempt to connect that takes so long finds the queue full.
const FULL_AFTER: Duration = Duration::from_millis(200);

/// What a server does with those who connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// It never accepts, and its queue is full: nobody connects.
    Deaf,
    /// It has closed its port: the host refuses.
    Gone,
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
    /// It reads one TLS record after the handshake, answers with cookies and closes. What else has come by then stays
    /// unread, so that the connection is reset and the answer, which has not left yet, is lost: as NTPsec does.
    OneRecord,
    /// It answers with cookies, but closes without an answer if close_notify came with the request: as cfnts does.
    NoEarlyClose,
    /// It answers with cookies, but closes without an answer if any AEAD other than 15 is offered: as cfnts does with
    /// some.
    OnlyAead15,
}

/// What a server did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections passed to a real server, before anything else.
    pub passed: u64,
    /// Connections accepted otherwise.
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
    _thread: Threads,
}

#[derive(Debug, Default)]
struct Shared {
    counts: Mutex<Counts>,
    /// Connections that a mute server keeps, or that fill the queue of a deaf one.
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
        KeServer::run(listener, None, behaviour, lab)
    }

    /// The same, after the first `count` connections, which pass to the real server at `real`. It behaves as set
    /// before the last of them has its answer.
    ///
    /// # Panics
    /// If the listener or the certificate cannot be used.
    #[must_use]
    pub fn start_after(count: u64, real: SocketAddr, behaviour: Behaviour, lab: &Lab) -> Self {
        KeServer::run(TcpListener::bind("127.0.0.1:0").unwrap(), Some((count, real)), behaviour, lab)
    }

    fn run(listener: TcpListener, first: Option<(u64, SocketAddr)>, behaviour: Behaviour, lab: &Lab) -> Self {
        let (address, shared) = (listener.local_addr().unwrap(), Arc::<Shared>::default());
        let mut acceptor =
            Acceptor { listener, behaviour, tls: tls(behaviour, lab), shared: Arc::clone(&shared) };
        if first.is_none() {
            acceptor.close_up();
        }
        acceptor.listener.set_nonblocking(true).unwrap();
        let mut thread = Threads::default();
        thread.spawn("exchanges", move |stop| acceptor.run(first, stop)).unwrap();
        KeServer { address, shared, _thread: thread }
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
        *self.shared.counts.lock().unwrap()
    }
}

impl Shared {
    fn count(&self, more: impl FnOnce(&mut Counts)) {
        more(&mut self.counts.lock().unwrap());
    }
}

fn tls(behaviour: Behaviour, lab: &Lab) -> Arc<ServerConfig> {
    let read = |path| std::fs::read(path).unwrap();
    let mut config = server_config(&Identity::from_pem(&read(lab.chain()), &read(lab.key())).unwrap());
    if behaviour == Behaviour::NoProtocol {
        Arc::make_mut(&mut config).alpn_protocols = vec![b"other/1".to_vec()];
    }
    config
}

/// The thread that accepts.
struct Acceptor {
    listener: TcpListener,
    behaviour: Behaviour,
    tls: Arc<ServerConfig>,
    shared: Arc<Shared>,
}

impl Acceptor {
    fn run(mut self, first: Option<(u64, SocketAddr)>, stop: &AtomicBool) {
        if let Some((count, real)) = first {
            self.pass_first(count, real, stop);
        }
        while self.behaviour != Behaviour::Gone && !stop.load(Ordering::Relaxed) {
            if self.behaviour == Behaviour::Deaf {
                // A poll that finds somebody returns at once.
                std::thread::sleep(Duration::from_millis(20));
            } else if let Some(stream) = self.accept() {
                self.shared.count(|counts| counts.accepted += 1);
                self.treat(stream);
            }
        }
    }

    /// Somebody, if anybody has come.
    fn accept(&self) -> Option<TcpStream> {
        await_readable(&self.listener, None);
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).ok()?;
        Some(stream)
    }

    /// Passes connections to a real server; whatever is to change for those who come later has changed when the last
    /// of them gets through.
    fn pass_first(&mut self, count: u64, real: SocketAddr, stop: &AtomicBool) {
        for left in (0..count).rev() {
            let stream = loop {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                if let Some(stream) = self.accept() {
                    break stream;
                }
            };
            if left == 0 {
                self.close_up();
            }
            self.shared.count(|counts| counts.passed += 1);
            std::thread::spawn(move || pass(&stream, real));
        }
    }

    /// Sees to it that nobody gets in any more, if that is how it is to behave.
    fn close_up(&mut self) {
        if self.behaviour == Behaviour::Deaf {
            self.fill();
        } else if self.behaviour == Behaviour::Gone {
            // Another port takes the place of the one that is given up.
            self.listener = TcpListener::bind("127.0.0.1:0").unwrap();
        }
    }

    /// Makes the queue as short as can be and connects until nobody else can.
    fn fill(&self) {
        rustix::net::listen(&self.listener, 0).unwrap();
        let mut address = self.listener.local_addr().unwrap();
        if address.ip().is_unspecified() {
            let loopback: [std::net::IpAddr; 2] =
                [[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()];
            address.set_ip(loopback[usize::from(address.is_ipv6())]);
        }
        let fillers = std::iter::from_fn(|| TcpStream::connect_timeout(&address, FULL_AFTER).ok());
        self.shared.kept.lock().unwrap().extend(fillers);
    }

    fn treat(&self, stream: TcpStream) {
        if self.behaviour == Behaviour::Mute {
            self.shared.kept.lock().unwrap().push(stream);
        } else if self.behaviour == Behaviour::Reset {
            // socket(7): closing with a linger time of zero resets.
            let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        } else {
            let (behaviour, tls) = (self.behaviour, Arc::clone(&self.tls));
            let shared = Arc::clone(&self.shared);
            std::thread::spawn(move || talk(stream, behaviour, tls, &shared));
        }
    }
}

/// Passes a connection to a real server, both ways, until both sides have closed.
fn pass(client: &TcpStream, real: SocketAddr) {
    let Ok(server) = TcpStream::connect(real) else { return };
    let copy = |mut from: &TcpStream, mut to: &TcpStream| {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| copy(client, &server));
        copy(&server, client);
    });
}

/// A connection that gives one TLS record at a time: what follows stays in the kernel until it is asked for.
struct OneByOne {
    stream: TcpStream,
    record: VecDeque<u8>,
}

impl Read for OneByOne {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.record.is_empty() {
            // RFC 8446 section 5.1: type, version, length.
            let mut head = [0; 5];
            if self.stream.read(&mut head[..1])? == 0 {
                return Ok(0);
            }
            self.stream.read_exact(&mut head[1..])?;
            let mut body = vec![0; u16::from_be_bytes([head[3], head[4]]).into()];
            self.stream.read_exact(&mut body)?;
            self.record.extend(head.into_iter().chain(body));
        }
        self.record.read(out)
    }
}

impl Write for OneByOne {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.stream.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// One connection to its end; errors are the client's affair.
fn talk(stream: TcpStream, behaviour: Behaviour, tls: Arc<ServerConfig>, shared: &Shared) {
    let set_up = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_nodelay(true));
    let Ok(connection) = ServerConnection::new(tls) else { return };
    if set_up.is_err() {
        return;
    }
    if behaviour == Behaviour::OneRecord {
        let records = OneByOne { stream, record: VecDeque::new() };
        return talk_by_record(StreamOwned::new(connection, records), shared);
    }
    let mut stream = StreamOwned::new(connection, stream);
    if let Behaviour::Alert(description) = behaviour {
        alert(&mut stream.sock, description);
    }
    let request = match behaviour {
        Behaviour::Alert(_) => None,
        _ => read_request(&mut stream),
    };
    let Some(request) = request else {
        shared.count(|counts| counts.failed += 1);
        // The client reads an alert only if nothing that it sent is left unread; a reset would overtake it.
        let _ = stream.sock.shutdown(std::net::Shutdown::Write);
        let _ = io::copy(&mut stream.sock, &mut io::sink());
        return;
    };
    shared.count(|counts| counts.requests += 1);
    let answer = match behaviour {
        Behaviour::Error(code) => critical(RecordType::ERROR, &code.0.to_be_bytes()),
        Behaviour::Nonsense => critical(RecordType(0x3FFF), &[0xA5; 16]),
        Behaviour::NoEarlyClose if closed_early(&mut stream.conn) => return,
        Behaviour::OnlyAead15 if offers_other_than_15(&request) => return,
        Behaviour::NoEarlyClose | Behaviour::OnlyAead15 | Behaviour::OneRecord => cookies(),
        Behaviour::Deaf | Behaviour::Gone | Behaviour::Mute | Behaviour::Reset => Vec::new(),
        Behaviour::Alert(_) | Behaviour::NoProtocol | Behaviour::Close => Vec::new(),
    };
    let _ = stream.write_all(&answer);
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

/// The same for a server that reads one record and closes without a look at what else has come.
fn talk_by_record(mut stream: StreamOwned<ServerConnection, OneByOne>, shared: &Shared) {
    if read_request(&mut stream).is_none() {
        shared.count(|counts| counts.failed += 1);
        return;
    }
    shared.count(|counts| counts.requests += 1);
    // tcp(7): what is corked leaves when the connection is closed, unless that resets it. In NTPsec the answer waits
    // for the acknowledgement of what TLS sent after the handshake, with the same end.
    let _ = sockopt::set_tcp_cork(&stream.sock.stream, true);
    let _ = stream.write_all(&cookies());
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

/// Whether the client has said that it sends no more.
fn closed_early(connection: &mut ServerConnection) -> bool {
    connection.process_new_packets().is_ok_and(|state| state.peer_has_closed())
}

fn offers_other_than_15(request: &[u8]) -> bool {
    ke::Request::parse(request)
        .is_ok_and(|request| request.aeads.iter().any(|aead| aead != AeadId::SIV_CMAC_256.0))
}

/// Sends a fatal alert to a client that has begun to talk.
fn alert(stream: &mut TcpStream, description: u8) {
    let _ = stream.read(&mut [0; 1024]);
    // RFC 8446 section 5.1: type alert, a version that is ignored, two octets; level fatal.
    let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, description]);
}

/// Reads until the request is whole; `None` if it never is.
fn read_request(stream: &mut impl Read) -> Option<Vec<u8>> {
    let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
    while ke::message_size(&request).is_none() {
        let size = stream.read(&mut buffer).ok().filter(|size| *size > 0)?;
        request.extend_from_slice(&buffer[..size]);
        if request.len() > KE_REQUEST_SIZE_MAX {
            return None;
        }
    }
    Some(request)
}

/// A message of one critical record.
fn critical(kind: RecordType, body: &[u8]) -> Vec<u8> {
    message(|out| ke::emit(out, true, kind, body))
}

/// An answer that a client takes: AEAD 15 and eight cookies, which no server opens.
fn cookies() -> Vec<u8> {
    message(|out| {
        ke::emit_numbers(out, RecordType::NEXT_PROTOCOL, &[ke::PROTOCOL_NTPV4])?;
        ke::emit_numbers(out, RecordType::AEAD, &[AeadId::SIV_CMAC_256.0])?;
        (0..8).try_for_each(|number| ke::emit(out, false, RecordType::NEW_COOKIE, &[number; 100]))
    })
}

/// A message of these records, with its end.
fn message(records: impl FnOnce(&mut Writer<'_>) -> Result<(), NoRoom>) -> Vec<u8> {
    let mut octets = [0; 1024];
    let mut out = Writer::new(&mut octets);
    let written = records(&mut out).and_then(|()| ke::emit(&mut out, true, RecordType::END_OF_MESSAGE, &[]));
    written.expect("there is room");
    let size = out.offset();
    octets[..size].to_vec()
}
