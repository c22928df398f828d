//! The server's own times, fetched from an authentick server's metrics endpoint and joined to the client's.
//!
//! A request is found by the client's address and port and by its transmit timestamp, which the server saw as origin;
//! a key exchange by the client's address and port. "Experimental Analysis of the Performance and Scalability of
//! Network Time Security for the Network Time Protocol", section III.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use authentick_generator::selection::{Ranked, Selection, rank};
use authentick_report::load::{Histogram, Spans};
use serde::{Deserialize, Deserializer};

use crate::plan::Joinable;

/// How often the server is asked, as it keeps only some thousands of records.
const INTERVAL: Duration = Duration::from_millis(200);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Records of each kind that are kept of a step. Beyond that a sample is, of the same exchanges as the generator's own.
const RECORD_COUNT_MAX: usize = 1 << 17;

/// What the endpoint shows.
#[derive(Debug, Default, Deserialize)]
struct Records {
    /// What to ask for next.
    next: Next,
    ntp: Vec<NtpRecord>,
    ke: Vec<KeRecord>,
}

/// Where the next reading goes on: the number of the first record that was not shown, of each kind.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Next {
    ntp: u64,
    ke: u64,
}

#[derive(Clone, Debug, Deserialize)]
struct NtpRecord {
    source: SocketAddr,
    #[serde(deserialize_with = "hexadecimal")]
    origin: u64,
    d_sntp_ns: u64,
    d_snts_ns: u64,
}

impl Ranked for NtpRecord {
    fn rank(&self) -> u64 {
        rank(self.source, Some(self.origin))
    }
}

#[derive(Clone, Debug, Deserialize)]
struct KeRecord {
    source: SocketAddr,
    d_ske_from_accept_ns: u64,
}

impl Ranked for KeRecord {
    fn rank(&self) -> u64 {
        rank(self.source, None)
    }
}

/// A timestamp as the endpoint writes it, in hexadecimal digits.
fn hexadecimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let digits = String::deserialize(deserializer)?;
    u64::from_str_radix(&digits, 16).map_err(serde::de::Error::custom)
}

/// What was read in a step.
#[derive(Debug)]
struct Read {
    /// What to ask for next.
    next: Next,
    ntp: Selection<NtpRecord>,
    ke: Selection<KeRecord>,
    /// Why the last reading brought nothing; `None` if it did.
    problem: Option<String>,
}

impl Read {
    /// Nothing yet, with room for so many records of each kind; the first reading asks for `next`.
    const fn new(next: Next, count_max: usize) -> Self {
        Read { next, ntp: Selection::new(count_max), ke: Selection::new(count_max), problem: None }
    }

    /// Takes in what a reading brought; records that came before a failure are kept, and asked for again.
    fn add(&mut self, reading: Result<Records, String>) {
        match reading {
            Err(problem) => self.problem = Some(problem),
            Ok(Records { next, ntp, ke }) => {
                (self.next, self.problem) = (next, None);
                self.ntp.extend(ntp);
                self.ke.extend(ke);
            }
        }
    }
}

/// Reads records while a step goes on.
#[derive(Debug)]
pub struct SpanSource {
    url: String,
    next: Next,
    reader: Option<Reader>,
}

#[derive(Debug)]
struct Reader {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Read>,
}

impl SpanSource {
    /// The endpoint at `address`, `HOST:PORT`.
    ///
    /// # Errors
    /// A sentence, if it cannot be read, or times nobody's requests.
    pub fn new(address: &str) -> Result<Self, String> {
        let mut source =
            SpanSource { url: format!("http://{address}/spans"), next: Next::default(), reader: None };
        // Earlier records of the server are not of this run.
        source.next = fetch(&source.url, source.next)?.next;
        Ok(source)
    }

    /// Starts reading for a step. A reading that fails is repeated.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn begin(&mut self) -> Result<(), String> {
        let stop = Arc::new(AtomicBool::new(false));
        let (url, next, stopped) = (self.url.clone(), self.next, Arc::clone(&stop));
        let body = move || {
            let mut read = Read::new(next, RECORD_COUNT_MAX);
            loop {
                // Asked before reading, so that one reading follows the end of the step.
                let last = stopped.load(Ordering::Relaxed);
                read.add(fetch(&url, read.next));
                if last {
                    return read;
                }
                std::thread::sleep(INTERVAL);
            }
        };
        let thread = std::thread::Builder::new()
            .name("spans".to_owned())
            .spawn(body)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        self.reader = Some(Reader { stop, thread });
        Ok(())
    }

    /// Ends the reading, and joins what was read to the client's records, besides which there were `left_out` more.
    /// With the reason if the endpoint's last records could not be read.
    pub fn join(&mut self, joinables: &[Joinable], left_out: u64) -> (Spans, Option<String>) {
        let Some(reader) = self.reader.take() else { return (Spans::default(), None) };
        reader.stop.store(true, Ordering::Relaxed);
        match reader.thread.join() {
            Ok(read) => {
                self.next = read.next;
                (join(&read, joinables, left_out), read.problem)
            }
            Err(_) => (Spans::default(), Some("the thread that reads them failed".to_owned())),
        }
    }
}

fn fetch(url: &str, next: Next) -> Result<Records, String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .build()
        .into();
    let url = format!("{url}?ntp={}&ke={}", next.ntp, next.ke);
    let mut response = agent.get(&url).call().map_err(|error| format!("{url}: {error}"))?;
    let text = response
        .body_mut()
        .with_config()
        .limit(256 << 20)
        .read_to_string()
        .map_err(|error| format!("{url}: {error}"))?;
    if response.status() != 200 {
        return Err(format!("{url}: {}: {}", response.status(), text.trim()));
    }
    serde_json::from_str(&text).map_err(|error| format!("{url}: these are no spans: {error}"))
}

fn join(read: &Read, joinables: &[Joinable], mut left_out: u64) -> Spans {
    let ntp: HashMap<(SocketAddr, u64), &NtpRecord> =
        read.ntp.kept().iter().map(|record| ((record.source, record.origin), record)).collect();
    let ke: HashMap<SocketAddr, &KeRecord> =
        read.ke.kept().iter().map(|record| (record.source, record)).collect();
    let (mut joined, mut unmatched) = (0, 0);
    let mut times: [Vec<(i64, u64)>; 6] = Default::default();
    let [d_cke, d_cnts, d_ske, d_sntp, d_snts, d_cntp] = &mut times;
    let add = |to: &mut Vec<(i64, u64)>, ns: u64| to.push((i64::try_from(ns).unwrap_or(i64::MAX), 1));
    for joinable in joinables {
        let is_covered = match joinable.transmit {
            None => read.ke.covers(joinable.rank()),
            Some(_) => read.ntp.covers(joinable.rank()),
        };
        if !is_covered {
            left_out = left_out.saturating_add(1);
            continue;
        }
        let server = match joinable.transmit {
            None => {
                add(d_cke, joinable.whole_ns);
                ke.get(&joinable.source).map(|record| add(d_ske, record.d_ske_from_accept_ns))
            }
            Some(origin) => {
                add(d_cnts, joinable.whole_ns);
                ntp.get(&(joinable.source, origin)).map(|record| {
                    add(d_sntp, record.d_sntp_ns);
                    add(d_snts, record.d_snts_ns);
                    add(d_cntp, joinable.whole_ns.saturating_sub(record.d_snts_ns));
                })
            }
        };
        match server {
            Some(()) => joined += 1,
            None => unmatched += 1,
        }
    }
    let [d_cke_ns, d_cnts_ns, d_ske_ns, d_sntp_ns, d_snts_ns, d_cntp_ns] = times.map(Histogram::from);
    Spans { joined, unmatched, left_out, d_cke_ns, d_cnts_ns, d_ske_ns, d_sntp_ns, d_snts_ns, d_cntp_ns }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn exchanges_are_joined_by_address_and_timestamp() {
        let source: SocketAddr = "192.0.2.1:1000".parse().unwrap();
        let other: SocketAddr = "192.0.2.1:1001".parse().unwrap();
        let mut read = Read::new(Next::default(), 10);
        let text = format!(
            r#"{{ "next": {{ "ntp": 1, "ke": 1 }},
                 "ntp": [{{ "source": "{source}", "origin": "{:016x}", "d_sntp_ns": 50, "d_snts_ns": 300 }}],
                 "ke": [{{ "source": "{other}", "d_ske_from_accept_ns": 900 }}] }}"#,
            77
        );
        read.add(Ok(serde_json::from_str(&text).unwrap()));
        let joinable = |source, transmit, whole_ns| Joinable { source, transmit, whole_ns };
        let joinables = [
            joinable(source, Some(77), 1000),
            joinable(other, Some(77), 2000),
            joinable(source, Some(78), 3000),
            joinable(other, None, 5000),
            joinable(source, None, 6000),
        ];
        let spans = join(&read, &joinables, 7);
        assert_eq!((spans.joined, spans.unmatched, spans.left_out), (2, 3, 7));
        // Equation (6): d_CNTP = d_CNTS - d_SNTS.
        assert_eq!(spans.d_cntp_ns.pairs(), [(700, 1)]);
        assert_eq!(spans.d_ske_ns.pairs(), [(900, 1)]);
        assert_eq!((spans.d_cnts_ns.count(), spans.d_cke_ns.count()), (3, 2));
    }

    /// Requests of one client in readings of 1,000: the client keeps at most 2,000 of 20,000, the server's side 8,000.
    #[test]
    fn both_sides_take_the_same_bounded_sample_and_count_the_rest() {
        let source: SocketAddr = "192.0.2.1:1000".parse().unwrap();
        let joinable = |n| Joinable { source, transmit: Some(n), whole_ns: 1000 };
        for (client_max, server_max) in [(2_000, 8_000), (8_000, 2_000), (20_000, 512), (512, 20_000)] {
            let mut read = Read::new(Next::default(), server_max);
            for reading in 0..20u64 {
                let record = |n: u64| NtpRecord { source, origin: n, d_sntp_ns: 5, d_snts_ns: 30 };
                let ntp = (0..1000).map(|n| record(reading * 1000 + n)).collect();
                read.add(Ok(Records { ntp, ..Records::default() }));
                assert!(read.ntp.kept().len() <= server_max, "{}", read.ntp.kept().len());
            }
            let mut client = Selection::new(client_max);
            client.extend((0..20_000).map(joinable));
            let (joinables, left_out) = client.take();
            let spans = join(&read, &joinables, left_out);
            // The smaller sample is joined as a whole.
            let smaller = joinables.len().min(read.ntp.kept().len()) as u64;
            assert_eq!((spans.joined, spans.unmatched), (smaller, 0));
            assert_eq!(spans.joined + spans.left_out, 20_000);
            assert!(spans.joined * 3 > client_max.min(server_max) as u64, "{}", spans.joined);
            assert_eq!(spans.d_cntp_ns.count(), spans.joined);
        }
    }

    #[test]
    fn reading_that_fails_loses_nothing_and_is_named_unless_a_later_one_succeeds() {
        let source: SocketAddr = "192.0.2.1:1000".parse().unwrap();
        let ke = || vec![KeRecord { source, d_ske_from_accept_ns: 900 }];
        let mut read = Read::new(Next::default(), 10);
        read.add(Ok(Records { next: Next { ntp: 0, ke: 1 }, ke: ke(), ..Records::default() }));
        read.add(Err("refused".to_owned()));
        assert_eq!((read.next.ke, read.ke.kept().len()), (1, 1));
        assert_eq!(read.problem.as_deref(), Some("refused"));
        read.add(Ok(Records { next: Next { ntp: 0, ke: 2 }, ..Records::default() }));
        assert_eq!((read.next.ke, read.problem), (2, None));
    }

    #[test]
    fn endpoint_that_is_not_there_is_named() {
        let problem = SpanSource::new("127.0.0.1:1").unwrap_err();
        assert!(problem.contains("http://127.0.0.1:1/spans"), "{problem}");
    }

    #[test]
    fn redirection_is_not_followed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/spans", listener.local_addr().unwrap());
        let place = url.clone();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            assert!(stream.read(&mut head).unwrap() > 0);
            write!(stream, "HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n").unwrap();
            listener
        });
        let problem = fetch(&url, Next::default()).unwrap_err();
        assert!(problem.contains("302"), "{problem}");
        let listener = server.join().unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "it was asked again");
    }
}
