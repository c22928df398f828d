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

use authentick_report::load::{Histogram, Spans};
use serde::Deserialize;

use crate::plan::Joinable;

/// How often the server is asked, as it keeps only some thousands of records.
const INTERVAL: Duration = Duration::from_millis(200);
const TIMEOUT: Duration = Duration::from_secs(5);

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
    origin: String,
    d_sntp_ns: u64,
    d_snts_ns: u64,
}

#[derive(Clone, Debug, Deserialize)]
struct KeRecord {
    source: SocketAddr,
    d_ske_from_accept_ns: u64,
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
    thread: JoinHandle<Result<Records, String>>,
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

    /// Starts reading for a step.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn begin(&mut self) -> Result<(), String> {
        let stop = Arc::new(AtomicBool::new(false));
        let (url, next, stopped) = (self.url.clone(), self.next, Arc::clone(&stop));
        let body = move || {
            let mut records = Records { next, ..Records::default() };
            loop {
                // Asked before reading, so that one reading follows the end of the step.
                let last = stopped.load(Ordering::Relaxed);
                let more = fetch(&url, records.next)?;
                records.next = more.next;
                records.ntp.extend(more.ntp);
                records.ke.extend(more.ke);
                if last {
                    return Ok(records);
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

    /// Ends the reading, and joins what was read to the client's records.
    ///
    /// # Errors
    /// A sentence, if the endpoint failed meanwhile.
    pub fn join(&mut self, joinables: &[Joinable]) -> Result<Spans, String> {
        let Some(reader) = self.reader.take() else { return Ok(Spans::default()) };
        reader.stop.store(true, Ordering::Relaxed);
        let records = reader.thread.join().map_err(|_| "the thread that reads spans failed".to_owned())??;
        self.next = records.next;
        Ok(join(&records, joinables))
    }
}

fn fetch(url: &str, next: Next) -> Result<Records, String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
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

fn join(records: &Records, joinables: &[Joinable]) -> Spans {
    let ntp: HashMap<(SocketAddr, &str), &NtpRecord> =
        records.ntp.iter().map(|record| ((record.source, record.origin.as_str()), record)).collect();
    let ke: HashMap<SocketAddr, &KeRecord> =
        records.ke.iter().map(|record| (record.source, record)).collect();
    let (mut joined, mut unmatched) = (0, 0);
    let mut times: [Vec<(i64, u64)>; 6] = Default::default();
    let [d_cke, d_cnts, d_ske, d_sntp, d_snts, d_cntp] = &mut times;
    let add = |to: &mut Vec<(i64, u64)>, ns: u64| to.push((i64::try_from(ns).unwrap_or(i64::MAX), 1));
    for joinable in joinables {
        let server = match joinable.transmit {
            None => {
                add(d_cke, joinable.whole_ns);
                ke.get(&joinable.source).map(|record| add(d_ske, record.d_ske_from_accept_ns))
            }
            Some(transmit) => {
                add(d_cnts, joinable.whole_ns);
                let origin = format!("{transmit:016x}");
                ntp.get(&(joinable.source, origin.as_str())).map(|record| {
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
    Spans { joined, unmatched, d_cke_ns, d_cnts_ns, d_ske_ns, d_sntp_ns, d_snts_ns, d_cntp_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_are_joined_by_address_and_timestamp() {
        let source: SocketAddr = "192.0.2.1:1000".parse().unwrap();
        let other: SocketAddr = "192.0.2.1:1001".parse().unwrap();
        let records = Records {
            next: Next::default(),
            ntp: vec![NtpRecord { source, origin: format!("{:016x}", 77), d_sntp_ns: 50, d_snts_ns: 300 }],
            ke: vec![KeRecord { source: other, d_ske_from_accept_ns: 900 }],
        };
        let joinable = |source, transmit, whole_ns| Joinable { source, transmit, whole_ns };
        let joinables = [
            joinable(source, Some(77), 1000),
            joinable(other, Some(77), 2000),
            joinable(source, Some(78), 3000),
            joinable(other, None, 5000),
            joinable(source, None, 6000),
        ];
        let spans = join(&records, &joinables);
        assert_eq!((spans.joined, spans.unmatched), (2, 3));
        // Equation (6): d_CNTP = d_CNTS - d_SNTS.
        assert_eq!(spans.d_cntp_ns.pairs(), [(700, 1)]);
        assert_eq!(spans.d_ske_ns.pairs(), [(900, 1)]);
        assert_eq!((spans.d_cnts_ns.count(), spans.d_cke_ns.count()), (3, 2));
    }

    #[test]
    fn endpoint_that_is_not_there_is_named() {
        let problem = SpanSource::new("127.0.0.1:1").unwrap_err();
        assert!(problem.contains("http://127.0.0.1:1/spans"), "{problem}");
    }
}
