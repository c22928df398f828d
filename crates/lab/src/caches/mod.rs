//! A memcached server that lies in a set way and counts what it did, so that a test can demand of its clients that they
//! take no lie for the truth and do not ask too often. It is no memcached: it knows `get`, `gets`, `set`, `add` and
//! `cas` of the text protocol, and nothing ever expires. Form: protocol.txt of memcached.

mod client;
mod commands;
mod contents;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use authentick_rig::threads::{Threads, await_readable};

use self::commands::{Broken, Command};
use self::contents::Contents;

pub use self::client::{CacheClient, Found};

/// Connections that a server has at once; further ones wait until it accepts them.
pub const CONNECTION_COUNT_MAX: usize = 64;

/// The longest value, in octets: memcached's own default.
pub const VALUE_SIZE_MAX: usize = 1 << 20;

/// The longest line, in octets: a fetch of 250 of the longest names.
pub const LINE_SIZE_MAX: usize = 64 << 10;

/// How often a thread without work looks whether it is to end, or to do something else.
const IDLE: Duration = Duration::from_millis(20);

/// What a server does. Where nothing else is said it tells the truth, and stores what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// What memcached does.
    Honest,
    /// It answers with the first value that was ever stored under a name, forgotten or not. To later writes it says
    /// `STORED`, and throws them away.
    Replay,
    /// It answers with the value of another name: of the next that has one, in the order of octets, the first
    /// following the last. The name asked for need not have any.
    Swap,
    /// One bit of each value is another. Which one differs from fetch to fetch: as many fetches of a name as its value
    /// has bits flip each once, first the lowest of each octet. An empty value stays as it is.
    Flip,
    /// It says of each value, even where there is none, that it has so many octets, and then sends it as it is.
    Length(u64),
    /// It answers everything with a line that does not end, as fast as it is read. What is written is thrown away.
    /// Connections end with this behaviour.
    Endless,
    /// It answers octet by octet, with this time after each, for as long as it behaves so; then comes the rest.
    Drip(Duration),
    /// It reads, throws away what is written, and says nothing. What was asked meanwhile is never answered.
    Silent,
    /// It reads, stores what is written, and says nothing.
    Unanswered,
    /// It closes connections at once, those too that were open.
    Refuse,
    /// It holds nothing, and has forgotten what it held. It says `STORED` all the same, but finds nothing to compare.
    Forget,
    /// It is full and refuses every write.
    Full,
}

/// What a server did. Each is counted before it is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted, those included that were closed at once.
    pub connections: u64,
    /// Commands `get` and `gets`.
    pub fetches: u64,
    /// Names in them.
    pub names: u64,
    /// Commands `set`, `add` and `cas`, carried out or not.
    pub writes: u64,
    /// Lines that were none of these, or without form.
    pub malformed: u64,
}

/// A running server. It ends with this value, and with it all connections; what it held is gone.
#[derive(Debug)]
pub struct CacheServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _thread: Threads,
}

#[derive(Debug)]
struct State {
    behaviour: Behaviour,
    counts: Counts,
    contents: Contents,
}

impl CacheServer {
    /// Serves on `listener`, which a test may have bound within a host, or where another server was before.
    ///
    /// # Panics
    /// If the listener cannot be used.
    #[must_use]
    pub fn start(listener: TcpListener, behaviour: Behaviour) -> Self {
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { behaviour, counts: Counts::default(), contents: Contents::default() };
        let state = Arc::new(Mutex::new(state));
        let (shared, mut thread) = (Arc::clone(&state), Threads::default());
        thread.spawn("caches", move |stop| accept(&listener, &shared, stop)).unwrap();
        CacheServer { address, state, _thread: thread }
    }

    /// Serves on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn on_loopback(behaviour: Behaviour) -> Self {
        CacheServer::start(TcpListener::bind("127.0.0.1:0").unwrap(), behaviour)
    }

    /// Where it serves.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Behaves like this from the next command on. Connections that have to end do so within milliseconds.
    pub fn behave(&self, behaviour: Behaviour) {
        self.with(|state| {
            state.behaviour = behaviour;
            if behaviour == Behaviour::Forget {
                state.contents.forget();
            }
        });
    }

    /// What it does now.
    #[must_use]
    pub fn behaviour(&self) -> Behaviour {
        self.with(|state| state.behaviour)
    }

    /// What it has done until now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.with(|state| state.counts)
    }

    /// The names under which it holds a value, in the order of octets.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.with(|state| state.contents.names())
    }

    /// The value that it holds under a name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Vec<u8>> {
        self.with(|state| state.contents.value(name))
    }

    /// All values that clients ever sent for a name, the oldest first, stored or not, forgotten or not.
    #[must_use]
    pub fn history(&self, name: &str) -> Vec<Vec<u8>> {
        self.with(|state| state.contents.history(name))
    }

    /// Holds this value under a name from now on, as if somebody had just stored it, with flags of 0.
    pub fn put(&self, name: &str, value: &[u8]) {
        self.with(|state| state.contents.put(name, 0, value.to_vec()));
    }

    /// Forgets what it holds, as memcached does when it starts anew; what comes then it holds.
    pub fn forget(&self) {
        self.with(|state| state.contents.forget());
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap())
    }
}

/// What a client is sent.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Octets(Vec<u8>),
    Endless,
    Nothing,
}

impl State {
    fn treat(&mut self, command: Command) -> Answer {
        let behaviour = self.behaviour;
        let octets = match command {
            Command::Fetch { names, with_unique } => {
                self.counts.fetches += 1;
                self.counts.names += names.len() as u64;
                self.contents.fetch(&names, with_unique, behaviour)
            }
            Command::Write(write) => {
                self.counts.writes += 1;
                let is_quiet = write.is_quiet;
                let line = self.contents.write(write, behaviour).filter(|_| !is_quiet);
                line.map_or_else(Vec::new, |line| format!("{line}\r\n").into_bytes())
            }
            Command::Other => {
                self.counts.malformed += 1;
                b"ERROR\r\n".to_vec()
            }
        };
        match behaviour {
            Behaviour::Endless => Answer::Endless,
            Behaviour::Silent | Behaviour::Unanswered | Behaviour::Refuse => Answer::Nothing,
            Behaviour::Honest
            | Behaviour::Replay
            | Behaviour::Swap
            | Behaviour::Flip
            | Behaviour::Length(_)
            | Behaviour::Drip(_)
            | Behaviour::Forget
            | Behaviour::Full => Answer::Octets(octets),
        }
    }
}

/// Accepts, with a thread for each connection, until all is to stop and these have ended.
fn accept(listener: &TcpListener, state: &Mutex<State>, stop: &AtomicBool) {
    let open = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        while !stop.load(Ordering::Relaxed) {
            if open.load(Ordering::Relaxed) >= CONNECTION_COUNT_MAX {
                std::thread::sleep(IDLE);
                continue;
            }
            await_readable(listener, None);
            let Ok((stream, _)) = listener.accept() else { continue };
            state.lock().unwrap().counts.connections += 1;
            open.fetch_add(1, Ordering::Relaxed);
            let open = &open;
            scope.spawn(move || {
                // How it ends is the client's affair.
                let _ = Connection { stream, state, stop }.run();
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
}

/// One connection.
struct Connection<'a> {
    stream: TcpStream,
    state: &'a Mutex<State>,
    stop: &'a AtomicBool,
}

impl Connection<'_> {
    fn behaviour(&self) -> Behaviour {
        self.state.lock().unwrap().behaviour
    }

    /// Whether it may go on.
    fn is_open(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && self.behaviour() != Behaviour::Refuse
    }

    fn run(mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.set_read_timeout(Some(IDLE))?;
        self.stream.set_write_timeout(Some(IDLE))?;
        let (mut input, mut buffer) = (Vec::new(), vec![0; LINE_SIZE_MAX]);
        while self.is_open() {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(size) => input.extend_from_slice(&buffer[..size]),
                Err(error) if is_waiting(&error) => continue,
                Err(error) => return Err(error),
            }
            loop {
                match commands::take(&mut input) {
                    Ok(None) => break,
                    Ok(Some(command)) => {
                        let answer = self.state.lock().unwrap().treat(command);
                        self.give(&answer)?;
                    }
                    Err(Broken(line)) => {
                        self.state.lock().unwrap().counts.malformed += 1;
                        return self.send(format!("{line}\r\n").as_bytes());
                    }
                }
            }
        }
        Ok(())
    }

    fn give(&mut self, answer: &Answer) -> io::Result<()> {
        match answer {
            Answer::Nothing => Ok(()),
            Answer::Octets(octets) => self.drip(octets),
            Answer::Endless => {
                while self.is_open() && self.behaviour() == Behaviour::Endless {
                    self.send(&[b'V'; 1024])?;
                }
                Err(ErrorKind::ConnectionAborted.into())
            }
        }
    }

    /// Sends octets one by one while they are to come so, and the others at once.
    fn drip(&mut self, octets: &[u8]) -> io::Result<()> {
        for (index, octet) in octets.iter().enumerate() {
            let Behaviour::Drip(interval) = self.behaviour() else { return self.send(&octets[index..]) };
            self.send(&[*octet])?;
            let due = Instant::now() + interval;
            while self.is_open() && self.behaviour() == Behaviour::Drip(interval) {
                let left = due.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                std::thread::sleep(left.min(IDLE));
            }
        }
        Ok(())
    }

    /// Sends octets to a client that may read slowly.
    fn send(&mut self, mut octets: &[u8]) -> io::Result<()> {
        while !octets.is_empty() {
            if !self.is_open() {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            match self.stream.write(octets) {
                Ok(size) => octets = &octets[size..],
                Err(error) if is_waiting(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_waiting(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
