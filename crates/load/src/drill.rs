//! A drill of hosts that share cookie keys: cookies of each key exchange go to each NTP server, while keys rotate.
//!
//! A client keeps its cookies and is sent wherever routes, names and load balancers lead. So whatever one host seals,
//! each has to open, for as long as keys are kept. Here that is tried: one thread for each NTP server sends requests at
//! its share of a rate, with the cookies of all key exchanges in turn, of each key that was seen to seal within some
//! rotations. Fresh cookies in the answers show which key seals; a cookie's first four octets name it, as cookies of
//! authentick do, and those of most other servers.

mod book;
mod lane;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use authentick_client::Error;
use authentick_client::nts::KeyServer;
use authentick_crypto::Entropy;
use serde::Serialize;

use self::book::Book;
use self::lane::Lane;

/// How long a drill goes on when enough was seen, with the time in which each cookie goes to each server once more.
const TAIL: Duration = Duration::from_secs(2);

/// What a drill does.
#[derive(Clone, Debug)]
pub struct Drill {
    /// Who exchanges keys.
    pub key_servers: Vec<KeyServer>,
    /// The NTP servers, each with the name that it is shown by.
    pub servers: Vec<(String, SocketAddr)>,
    /// Requests a second, to all servers together.
    pub rate_rps: f64,
    /// How many keys back cookies are used, the one that seals included: as many as rotations are kept.
    pub keep: usize,
    /// Rotations after which the drill ends.
    pub rotations: usize,
    /// How long it waits for these.
    pub patience: Duration,
    /// How long a key exchange, and each request, waits for its answer.
    pub timeout: Duration,
}

/// Why a drill cannot take place.
#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    /// A key exchange failed.
    #[error(transparent)]
    KeyExchange(#[from] Error),
    /// There is no socket to an NTP server.
    #[error("{0}: {1}")]
    Socket(SocketAddr, io::Error),
}

/// What became of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fates {
    /// Sent.
    pub sent: u64,
    /// Answered with authenticated time.
    pub answered: u64,
    /// Refused with NTSN.
    pub ntsn: u64,
    /// Without an answer.
    pub lost: u64,
    /// Answered by something else: another kiss, or what a client does not believe.
    pub invalid: u64,
}

impl Fates {
    /// Adds what became of others.
    pub const fn add(&mut self, other: &Fates) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.ntsn += other.ntsn;
        self.lost += other.lost;
        self.invalid += other.invalid;
    }
}

/// What became of requests to one server, by the place of the key exchange and the key.
type Counts = BTreeMap<(usize, u32), Fates>;

/// What one NTP server did with cookies of one key exchange under one key.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The NTP server.
    pub server: String,
    /// The key exchange.
    pub key_exchange: String,
    /// The key's identifier, in hexadecimal digits.
    pub key: String,
    /// What became of the requests.
    #[serde(flatten)]
    pub fates: Fates,
}

/// What a drill has seen.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// By NTP server, key exchange and key.
    pub lines: Vec<Line>,
    /// All of them together.
    pub total: Fates,
    /// How often the key that seals has changed, by the key exchange whose clients saw the fewest.
    pub rotations: usize,
    /// How many were to be seen.
    pub rotations_wanted: usize,
    /// How long requests were sent, in seconds.
    pub seconds: f64,
    /// Requests sent a second.
    pub sent_rps: f64,
}

impl Outcome {
    /// Whether nobody was refused, everything was answered soundly but for what was lost on the way, and as many
    /// rotations were seen as should be.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.total.ntsn == 0
            && self.total.invalid == 0
            && self.rotations >= self.rotations_wanted
            && !self.lines.is_empty()
            && self.lines.iter().all(|line| line.fates.answered > 0)
    }
}

impl fmt::Display for Outcome {
    /// A line for each server, with what its refusals have in common, and one for all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut servers: BTreeMap<&str, (Fates, usize)> = BTreeMap::new();
        for line in &self.lines {
            let (fates, count) = servers.entry(&line.server).or_default();
            fates.add(&line.fates);
            *count += 1;
        }
        for (server, (fates, count)) in &servers {
            writeln!(f, "{server}: {fates}; cookies of {count} keys and key exchanges")?;
        }
        for Line { server, key_exchange, key, fates } in &self.lines {
            if fates.ntsn + fates.invalid > 0 || fates.answered == 0 {
                writeln!(f, "{server} with cookies of {key_exchange} under {key}: {fates}")?;
            }
        }
        let (seen, wanted) = (self.rotations, self.rotations_wanted);
        writeln!(f, "{}, {:.0} requests a second for {:.1} s", self.total, self.sent_rps, self.seconds)?;
        writeln!(f, "rotations seen: {seen} of {wanted}")
    }
}

impl fmt::Display for Fates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fates { sent, answered, ntsn, lost, invalid } = self;
        write!(f, "{sent} sent, {answered} answered, {ntsn} NTSN, {lost} lost, {invalid} invalid")
    }
}

impl Drill {
    /// Exchanges keys with each host, and asks all servers until enough rotations were seen, `patience` is over or
    /// `stop` is set.
    ///
    /// # Errors
    /// If a key exchange fails, or there is no socket to a server.
    ///
    /// # Panics
    /// If a thread did.
    pub fn run(&self, stop: &AtomicBool, entropy: &mut Entropy) -> Result<Outcome, DrillError> {
        let mut sessions = Vec::new();
        for server in &self.key_servers {
            sessions.push(server.exchange_keys(self.timeout)?.established.session);
        }
        let book = Book::new(sessions, self.keep);
        let rate_rps = self.rate_rps / self.servers.len() as f64;
        // Each key that was seen is to be used everywhere.
        let cycle = Duration::from_secs_f64((self.key_servers.len() * self.keep) as f64 / rate_rps);
        let tail = TAIL + cycle;
        let mut lanes = Vec::new();
        for (name, address) in &self.servers {
            let entropy = Entropy::from_seed(entropy.u64());
            let lane = Lane::new(*address, rate_rps, self.timeout, &book, entropy);
            lanes.push((name, lane.map_err(|error| DrillError::Socket(*address, error))?));
        }
        let (is_over, start) = (AtomicBool::new(false), Instant::now());
        let (counted, elapsed) = thread::scope(|scope| {
            let is_over = &is_over;
            let lanes: Vec<_> = lanes
                .into_iter()
                .map(|(name, lane): (_, Lane<'_>)| (name, scope.spawn(move || lane.run(is_over))))
                .collect();
            let mut seen_all: Option<Instant> = None;
            loop {
                thread::sleep(Duration::from_millis(50));
                if book.rotations() >= self.rotations {
                    seen_all.get_or_insert_with(Instant::now);
                }
                let is_done = seen_all.is_some_and(|when| when.elapsed() >= tail);
                if is_done || start.elapsed() >= self.patience || stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            is_over.store(true, Ordering::Relaxed);
            // What is under way has its time, in which nothing is sent.
            let elapsed = start.elapsed();
            let join = |(name, lane): (_, thread::ScopedJoinHandle<'_, _>)| {
                (name, lane.join().expect("a lane does not panic"))
            };
            let counted: Vec<(&String, Counts)> = lanes.into_iter().map(join).collect();
            (counted, elapsed)
        });
        Ok(self.outcome(&counted, &book, elapsed))
    }

    fn outcome(&self, counted: &[(&String, Counts)], book: &Book, elapsed: Duration) -> Outcome {
        let (mut lines, mut total) = (Vec::new(), Fates::default());
        for (server, counts) in counted {
            // A key that came as all was over, after as many as were to be seen, was not tried.
            for ((exchange, key), fates) in counts.iter().filter(|(_, fates)| fates.sent > 0) {
                total.add(fates);
                let KeyServer { host, port, .. } = &self.key_servers[*exchange];
                lines.push(Line {
                    server: (*server).clone(),
                    key_exchange: format!("{host}:{port}"),
                    key: format!("{key:08x}"),
                    fates: *fates,
                });
            }
        }
        let seconds = elapsed.as_secs_f64();
        Outcome {
            lines,
            total,
            rotations: book.rotations(),
            rotations_wanted: self.rotations,
            seconds,
            sent_rps: total.sent as f64 / seconds,
        }
    }
}

#[cfg(test)]
mod tests;
