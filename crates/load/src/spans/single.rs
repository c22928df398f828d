//! No load: one client, each of whose exchanges is timed stage by stage at both ends. "Experimental Analysis of the
//! Performance and Scalability of Network Time Security for the Network Time Protocol", section IV.
//!
//! In each round it exchanges keys, asks for time with NTS, and asks without, and each of the three comes first in a
//! third of the rounds. A look-up is one question to one resolver, over a socket of its own; it precedes everything
//! else, as in the study's program, and is a stage of its own.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_ke::client::{Ask, Dialogue, KeError};
use authentick_ke::tls::{Roots, client_config};
use authentick_net::udp::{ClientSocket, Received};
use authentick_proto::client::{Exchange, NtsSession};
use authentick_report::load::span_rows::{KE_STAGES, NTP_STAGES, Timed};
use authentick_report::study::nts::{KeyExchange, Transfer};
use authentick_wire::ke::AeadId;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use rustls::pki_types::ServerName;

use super::answer::{KeTimes, Next, NtpTimes};
use super::fetch;

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How long a key exchange may take, the study's deadline.
const EXCHANGE_MAX: Duration = Duration::from_secs(10);
/// Rounds between two readings of the server's records: far fewer than it keeps.
const READING_ROUNDS: u32 = 256;
/// How often a pause looks whether it is over.
const TICK: Duration = Duration::from_millis(20);
/// What is asked of a resolver has this number.
const QUERY_ID: [u8; 2] = [0xA7, 0x01];

/// A server of authentick's that times this client, and what the client knows of it.
#[derive(Debug)]
pub struct Server {
    /// Where it exchanges keys.
    pub key_exchange: SocketAddr,
    /// Where it is asked for time.
    pub ntp: SocketAddr,
    /// Its endpoint of metrics.
    pub metrics: SocketAddr,
    /// Certificates of those who vouch for it, as PEM.
    pub authorities: String,
    /// The name that its certificate has.
    pub name: String,
    /// Who is asked for that name before everything; `None`: nobody is.
    pub resolver: Option<SocketAddr>,
}

/// How often, and how fast.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Rounds that are not counted.
    pub warm_ups: u32,
    /// Rounds that are.
    pub count: u32,
    /// From the beginning of one to that of the next, warm-ups apart; zero: they follow each other at once.
    pub interval: Duration,
}

/// What was measured: a row for each exchange that was answered.
#[derive(Debug, Default)]
pub struct Timings {
    /// What one reading of the server's clock costs, in nanoseconds. It is subtracted.
    pub clock_ns: u64,
    /// Key exchanges.
    pub exchanges: Vec<KeyExchange>,
    /// Requests with NTS.
    pub transfers: Vec<Transfer>,
    /// Requests without.
    pub plain: Vec<Transfer>,
    /// Exchanges that failed, and why the last one did.
    pub failed: u32,
    /// A sentence; empty if none failed.
    pub failure: String,
}

/// Carries the rounds out; those that are over when `stop` becomes true are kept.
///
/// # Errors
/// A sentence: if there can be no client, the server's records cannot be read, or every exchange of a kind failed.
pub fn measure(server: &Server, rounds: Rounds, stop: &AtomicBool) -> Result<Timings, String> {
    let mut client = Client::new(server)?;
    for round in 0..rounds.warm_ups {
        client.round(round, None);
    }
    let url = format!("http://{}/spans", server.metrics);
    let mut joined = Joined { next: fetch(&url, Next::default())?.next, ..Joined::default() };
    let (mut timings, mut open) = (Timings::default(), Open::default());
    (client.failed, client.failure) = (0, String::new());
    let start = Instant::now();
    for round in 0..rounds.count {
        let due = start + rounds.interval * round;
        while Instant::now() < due && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(due.saturating_duration_since(Instant::now()).min(TICK));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        client.round(round, Some(&mut open));
        if (round + 1).is_multiple_of(READING_ROUNDS) {
            joined.read(&url)?;
            joined.join(&mut open, &mut timings);
        }
    }
    joined.read(&url)?;
    joined.join(&mut open, &mut timings);
    timings.clock_ns = joined.clock_ns.ok_or_else(|| format!("{url} tells not what its clock costs"))?;
    (timings.failed, timings.failure) = (client.failed, client.failure);
    let is_empty = timings.exchanges.is_empty() || timings.transfers.is_empty() || timings.plain.is_empty();
    match is_empty && !stop.load(Ordering::Relaxed) {
        true => Err(format!("{}: no exchange of a kind was answered: {}", server.ntp, timings.failure)),
        false => Ok(timings),
    }
}

/// What has no server's side yet.
#[derive(Debug, Default)]
struct Open {
    exchanges: Vec<(SocketAddr, [u64; 6])>,
    transfers: Vec<Asked>,
    plain: Vec<Asked>,
}

/// A request for time: from where, its transmit timestamp, and the client's stages.
#[derive(Clone, Copy, Debug)]
struct Asked(SocketAddr, u64, [u64; 5]);

/// What the server told that belongs to no exchange yet. A port may come again: then the earlier record is the earlier
/// exchange's.
#[derive(Debug, Default)]
struct Joined {
    next: Next,
    clock_ns: Option<u64>,
    ke: HashMap<SocketAddr, VecDeque<[Timed; KE_STAGES.len()]>>,
    ntp: HashMap<(SocketAddr, u64), [Timed; NTP_STAGES.len()]>,
}

impl Joined {
    fn read(&mut self, url: &str) -> Result<(), String> {
        let answer = fetch(url, self.next)?;
        (self.next, self.clock_ns) = (answer.next, answer.clock_ns);
        for KeTimes { source, stages, .. } in answer.ke {
            self.ke.entry(source).or_default().extend(stages);
        }
        for NtpTimes { source, origin, stages, .. } in answer.ntp {
            self.ntp.extend(stages.map(|stages| ((source, origin), stages)));
        }
        Ok(())
    }

    fn join(&mut self, open: &mut Open, timings: &mut Timings) {
        for (source, client) in open.exchanges.drain(..) {
            let server = self.ke.get_mut(&source).and_then(VecDeque::pop_front);
            timings.exchanges.push(KeyExchange(client, server.map(|stages| stages.map(|time| time.ns))));
        }
        let mut transfer = |Asked(source, transmit, client)| {
            let server = self.ntp.remove(&(source, transmit));
            Transfer(client, server.map(|stages| stages.map(|time| time.ns)))
        };
        timings.transfers.extend(open.transfers.drain(..).map(&mut transfer));
        timings.plain.extend(open.plain.drain(..).map(&mut transfer));
    }
}

/// What is done in a round.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Keys,
    Nts,
    Plain,
}

/// The client.
struct Client<'a> {
    server: &'a Server,
    roots: Roots,
    name: ServerName<'static>,
    entropy: Entropy,
    session: Option<NtsSession>,
    failed: u32,
    failure: String,
}

impl<'a> Client<'a> {
    fn new(server: &'a Server) -> Result<Self, String> {
        let roots = Roots::from_pem(server.authorities.as_bytes())?;
        let name = ServerName::try_from(server.name.clone());
        let name = name.map_err(|error| format!("{:?} is no name: {error}", server.name))?;
        let entropy = Entropy::from_system().map_err(|error| format!("no random numbers: {error}"))?;
        Ok(Client { server, roots, name, entropy, session: None, failed: 0, failure: String::new() })
    }

    /// A round; its exchanges go to `open`, if they count.
    fn round(&mut self, round: u32, mut open: Option<&mut Open>) {
        let mut turns = [Turn::Keys, Turn::Nts, Turn::Plain];
        turns.rotate_left((round % 3) as usize);
        for turn in turns {
            let done = match turn {
                Turn::Keys => self.exchange_keys().map(|row| {
                    open.iter_mut().for_each(|open| open.exchanges.push(row));
                }),
                Turn::Nts => self.ask(true).map(|row| {
                    open.iter_mut().for_each(|open| open.transfers.push(row));
                }),
                Turn::Plain => self.ask(false).map(|row| {
                    open.iter_mut().for_each(|open| open.plain.push(row));
                }),
            };
            if let Err(why) = done {
                self.failed += 1;
                self.failure = why;
            }
        }
    }

    /// The look-up; in no time where there is none.
    fn look_up(&self) -> Result<u64, String> {
        let Some(resolver) = self.server.resolver else { return Ok(0) };
        let start = Instant::now();
        look_up(resolver, &self.server.name).map_err(|error| format!("{resolver}: no address: {error}"))?;
        Ok(since(start))
    }

    fn exchange_keys(&mut self) -> Result<(SocketAddr, [u64; 6]), String> {
        let look_up = self.look_up()?;
        let start = Instant::now();
        let tls = client_config(self.roots.clone());
        let ask = Ask { tls, server_name: self.name.clone(), aeads: vec![AeadId::SIV_CMAC_256] };
        let mut dialogue = Dialogue::new(&ask).map_err(|error| error.to_string())?;
        let set_up = since(start);
        let made = (|| {
            let start = Instant::now();
            let mut stream = TcpStream::connect_timeout(&self.server.key_exchange, EXCHANGE_MAX)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(EXCHANGE_MAX))?;
            let connected = Instant::now();
            let (mut shaken, mut established) = (None, None);
            while established.is_none() {
                while dialogue.wants_write() {
                    dialogue.write(&mut stream)?;
                }
                established = dialogue.read(&mut stream).map_err(in_words)?;
                if !dialogue.is_handshaking() {
                    shaken.get_or_insert_with(Instant::now);
                }
            }
            let (parsed, local) = (Instant::now(), stream.local_addr()?);
            while dialogue.wants_write() {
                dialogue.write(&mut stream)?;
            }
            stream.shutdown(Shutdown::Write)?;
            let half_closed = since(parsed);
            // What came with the answer is thrown away: a connection that is closed with something unread is reset.
            let _ = io::copy(&mut stream.take(1 << 16), &mut io::sink());
            let shaken = shaken.unwrap_or(parsed);
            let client = [
                look_up,
                set_up,
                nanos(connected - start),
                nanos(shaken - connected),
                nanos(parsed - shaken),
                half_closed,
            ];
            io::Result::Ok((established, (local, client)))
        })();
        let (established, row) =
            made.map_err(|error| format!("{}: no keys: {error}", self.server.key_exchange))?;
        self.session = established.map(|established| established.session);
        Ok(row)
    }

    fn ask(&mut self, is_nts: bool) -> Result<Asked, String> {
        let look_up = self.look_up()?;
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        let start = Instant::now();
        let socket = ClientSocket::connect(self.server.ntp).map_err(|error| error.to_string())?;
        let opened = Instant::now();
        let mut session = self.session.as_mut().filter(|_| is_nts);
        let (mut exchange, size) = match &mut session {
            Some(session) => Exchange::nts(session, &mut self.entropy, &mut buffer)
                .map_err(|error| format!("{}: {error}", self.server.ntp))?,
            None if is_nts => return Err(format!("{}: there are no keys", self.server.ntp)),
            None => Exchange::plain(&mut self.entropy, &mut buffer),
        };
        let built = Instant::now();
        let waited =
            socket.send(&buffer[..size]).and_then(|_| wait(&socket, &mut buffer, built + ANSWER_MAX));
        let size = waited.map_err(|error| format!("{}: no answer: {error}", self.server.ntp))?;
        let answered = Instant::now();
        let checked = exchange.receive(&mut buffer[..size], session);
        checked.map_err(|check| format!("{}: no good answer: {check}", self.server.ntp))?;
        let client =
            [look_up, nanos(opened - start), nanos(built - opened), nanos(answered - built), since(answered)];
        let local = socket.local().map_err(|error| error.to_string())?;
        Ok(Asked(local, exchange.transmit().to_bits(), client))
    }
}

fn in_words(error: KeError) -> io::Error {
    match error {
        KeError::Io(error) => error,
        error => io::Error::other(error.to_string()),
    }
}

/// Waits for a datagram; returns its size.
fn wait(socket: &ClientSocket, buffer: &mut [u8], until: Instant) -> io::Result<usize> {
    loop {
        match socket.receive(buffer, until)? {
            Received::Datagram { size, .. } => return Ok(size),
            Received::Hint(_) => {}
            Received::Silence => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Asks a resolver for the IPv4 address of a name. RFC 1035 section 4.1.
fn look_up(resolver: SocketAddr, name: &str) -> io::Result<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.set_read_timeout(Some(ANSWER_MAX))?;
    socket.connect(resolver)?;
    // Recursion desired, one question: type A, class IN.
    let mut query = [&QUERY_ID[..], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]].concat();
    for label in name.split('.') {
        query.push(u8::try_from(label.len()).map_err(io::Error::other)?);
        query.extend(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    socket.send(&query)?;
    let mut buffer = [0; 512];
    let size = socket.recv(&mut buffer)?;
    let answer = &buffer[..size];
    // The number, a response without an error, and an address behind the question.
    let is_answer = answer.starts_with(&QUERY_ID)
        && answer.get(2..4).is_some_and(|flags| flags[0] & 0x80 != 0 && flags[1] & 0x0F == 0)
        && answer.len() >= query.len() + 16;
    match answer.last_chunk::<4>() {
        Some(address) if is_answer => Ok(Ipv4Addr::from(*address)),
        Some(_) | None => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the resolver's answer has no address"))
        }
    }
}

fn since(start: Instant) -> u64 {
    nanos(start.elapsed())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolver(answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            let (size, from) = socket.recv_from(&mut buffer).unwrap();
            socket.send_to(&answer(&buffer[..size]), from).unwrap();
        });
        address
    }

    #[test]
    fn name_is_asked_for_as_resolvers_want_it_and_an_answer_without_an_address_is_none() {
        const ADDRESS: [u8; 16] = [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 198, 18, 0, 1];
        let good = resolver(|query| {
            assert_eq!(&query[2..], b"\x01\0\0\x01\0\0\0\0\0\0\x03ntp\x04test\0\0\x01\0\x01");
            let mut answer = [query, &ADDRESS[..]].concat();
            answer[2] |= 0x80;
            answer
        });
        assert_eq!(look_up(good, "ntp.test").unwrap(), Ipv4Addr::new(198, 18, 0, 1));
        let changes: [fn(&mut Vec<u8>); 4] = [
            |answer| answer[0] ^= 1,
            |answer| answer[2] &= 0x7F,
            |answer| answer[3] |= 3,
            |answer| answer.truncate(answer.len() - 16),
        ];
        for change in changes {
            let bad = resolver(move |query| {
                let mut answer = [query, &ADDRESS[..]].concat();
                answer[2] |= 0x80;
                change(&mut answer);
                answer
            });
            assert!(look_up(bad, "ntp.test").is_err());
        }
    }

    #[test]
    fn server_s_side_goes_to_the_exchange_that_it_is_of() {
        let source = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let times = |ns| [Timed { raw_ns: ns + 9, ns }; KE_STAGES.len()];
        let mut joined = Joined::default();
        // A port that came twice, and one that the server does not know.
        joined.ke.insert(source(1), [times(10), times(20)].into());
        joined.ntp.insert((source(3), 7), [Timed { raw_ns: 40, ns: 30 }; NTP_STAGES.len()]);
        let mut open = Open {
            exchanges: vec![(source(1), [1; 6]), (source(2), [2; 6]), (source(1), [3; 6])],
            transfers: vec![Asked(source(3), 7, [4; 5])],
            plain: vec![Asked(source(3), 8, [5; 5])],
        };
        let mut timings = Timings::default();
        joined.join(&mut open, &mut timings);
        let server: Vec<Option<u64>> = timings.exchanges.iter().map(|row| row.1.map(|row| row[0])).collect();
        assert_eq!(server, [Some(10), None, Some(20)]);
        assert_eq!(timings.transfers, [Transfer([4; 5], Some([30; 7]))]);
        assert_eq!(timings.plain, [Transfer([5; 5], None)]);
        assert!(open.exchanges.is_empty() && open.transfers.is_empty() && open.plain.is_empty());
    }
}
