//! The server's own times, fetched from an authentick server's metrics endpoint and joined to the client's.
//!
//! A request is found by the client's address and port and by its transmit timestamp, which the server saw as origin;
//! a key exchange by the client's address and port. "Experimental Analysis of the Performance and Scalability of
//! Network Time Security for the Network Time Protocol", section III.
//!
//! - `answer`: what the endpoint answers; the clock's own cost is subtracted here.
//! - `rows`: a file with a row for each exchange.
//! - [`single`]: one client without load, each of whose stages is timed.

mod answer;
mod rows;
pub mod single;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use authentick_generator::selection::{Ranked, Selection};
use authentick_net::report_file::ReportFile;
use authentick_report::load::span_rows::{ServerSide, SpanRow};
use authentick_report::load::{Histogram, Spans};

use self::answer::{Answer, KeTimes, Next, NtpTimes};
use self::rows::RowFile;
use crate::plan::{Joinable, Order};

/// How often the server is asked, as it keeps only some thousands of records.
const INTERVAL: Duration = Duration::from_millis(200);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Records of each kind that are kept of a step. Beyond that a sample is, of the same exchanges as the generator's own.
const RECORD_COUNT_MAX: usize = 1 << 17;

/// What was read in a step.
#[derive(Debug)]
struct Read {
    /// What to ask for next.
    next: Next,
    /// What a reading of the server's clock costs, if it tells.
    clock_ns: Option<u64>,
    /// The server times one request in so many, if it tells.
    every: Option<u32>,
    ntp: Selection<NtpTimes>,
    ke: Selection<KeTimes>,
    /// Why the last reading brought nothing; `None` if it did.
    problem: Option<String>,
}

impl Read {
    /// Nothing yet, with room for so many records of each kind; the first reading asks for `next`.
    const fn new(next: Next, count_max: usize) -> Self {
        Read {
            next,
            clock_ns: None,
            every: None,
            ntp: Selection::new(count_max),
            ke: Selection::new(count_max),
            problem: None,
        }
    }

    /// Takes in what a reading brought; records that came before a failure are kept, and asked for again.
    fn add(&mut self, reading: Result<Answer, String>) {
        match reading {
            Err(problem) => self.problem = Some(problem),
            Ok(Answer { clock_ns, every, next, ntp, ke }) => {
                (self.next, self.problem) = (next, None);
                (self.clock_ns, self.every) = (clock_ns, every);
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
    /// Whether the server tells what its clock costs, and so all stages.
    has_stages: bool,
    reader: Option<Reader>,
    rows: Option<RowFile>,
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
        let url = format!("http://{address}/spans");
        // Earlier records of the server are not of this run.
        let answer = fetch(&url, Next::default())?;
        let has_stages = answer.clock_ns.is_some();
        Ok(SpanSource { url, next: answer.next, has_stages, reader: None, rows: None })
    }

    /// Has a row for each exchange written to `file` as steps end, at most [`ROW_COUNT_MAX`] in all. The file is made
    /// anew at once.
    ///
    /// # Errors
    /// A sentence, if the server does not tell all stages, or the file cannot be written.
    ///
    /// [`ROW_COUNT_MAX`]: authentick_report::load::span_rows::ROW_COUNT_MAX
    pub fn keep_rows(&mut self, file: ReportFile) -> Result<(), String> {
        if !self.has_stages {
            return Err(format!(
                "{} tells neither all stages nor what its clock costs, as servers of this version do; update the \
                 server, or leave --spans out",
                self.url
            ));
        }
        let name = file.name().to_owned();
        let made = RowFile::begin(file);
        self.rows = Some(
            made.map_err(|error| format!("{}: cannot write: {error}; name another file", name.display()))?,
        );
        Ok(())
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

    /// Ends the reading of the step of `order`, and joins what was read to the client's records, besides which there
    /// were `left_out` more. With a sentence on each thing that is missing: the endpoint's last records, rows.
    pub fn join(&mut self, order: &Order, joinables: &[Joinable], left_out: u64) -> (Spans, Vec<String>) {
        let Some(reader) = self.reader.take() else { return (Spans::default(), Vec::new()) };
        reader.stop.store(true, Ordering::Relaxed);
        let Ok(read) = reader.thread.join() else {
            let problem = "Spans of the server are missing: the thread that reads them failed.";
            return (Spans::default(), vec![problem.to_owned()]);
        };
        self.next = read.next;
        let mut remarks = Vec::new();
        remarks.extend(read.problem.as_ref().map(|why| format!("Spans of the server are missing: {why}.")));
        let rows = &mut self.rows;
        let spans = join(&read, joinables, left_out, |joinable, server| {
            if let Some(rows) = rows {
                rows.add(&row(&read, order, joinable, server));
            }
        });
        remarks.extend(rows.as_mut().and_then(|rows| rows.end_step(spans.left_out)));
        (spans, remarks)
    }
}

fn row(read: &Read, order: &Order, joinable: &Joinable, server: Option<ServerSide>) -> SpanRow {
    SpanRow {
        step: order.number.saturating_add(1),
        offered_rps: order.rate_rps,
        source: joinable.source,
        transmit: joinable.transmit,
        client_ns: joinable.whole_ns,
        clock_ns: read.clock_ns.unwrap_or(0),
        server,
    }
}

fn fetch(url: &str, next: Next) -> Result<Answer, String> {
    let url = format!("{url}?ntp={}&ke={}", next.ntp, next.ke);
    Answer::parse(&fetch_text(&url)?).map_err(|error| format!("{url}: these are no spans: {error}"))
}

/// What a server's endpoint answers under `url`, at most 256 MiB within its timeout of some seconds.
///
/// # Errors
/// In words that begin with the URL: if there is no answer, a longer one, or one that is a refusal.
pub fn fetch_text(url: &str) -> Result<String, String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .build()
        .into();
    let mut response = agent.get(url).call().map_err(|error| format!("{url}: {error}"))?;
    let text = response
        .body_mut()
        .with_config()
        .limit(256 << 20)
        .read_to_string()
        .map_err(|error| format!("{url}: {error}"))?;
    if response.status() != 200 {
        return Err(format!("{url}: {}: {}", response.status(), text.trim()));
    }
    Ok(text)
}

/// Joins what was read to the client's records; `each` sees those that are in the sample, with the server's stages.
fn join(
    read: &Read,
    joinables: &[Joinable],
    mut left_out: u64,
    mut each: impl FnMut(&Joinable, Option<ServerSide>),
) -> Spans {
    let ntp: HashMap<(SocketAddr, u64), &NtpTimes> =
        read.ntp.kept().iter().map(|record| ((record.source, record.origin), record)).collect();
    let ke: HashMap<SocketAddr, &KeTimes> =
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
                ke.get(&joinable.source).map(|record| {
                    add(d_ske, record.d_ske_from_accept_ns);
                    record.stages.map(ServerSide::KeyExchange)
                })
            }
            Some(origin) => {
                add(d_cnts, joinable.whole_ns);
                ntp.get(&(joinable.source, origin)).map(|record| {
                    add(d_sntp, record.d_sntp_ns);
                    add(d_snts, record.d_snts_ns);
                    add(d_cntp, joinable.whole_ns.saturating_sub(record.d_snts_ns));
                    let batch_size = record.batch_size;
                    record.stages.map(|stages| ServerSide::Transfer { batch_size, stages })
                })
            }
        };
        match server {
            Some(_) => joined += 1,
            None => unmatched += 1,
        }
        each(joinable, server.flatten());
    }
    let [d_cke_ns, d_cnts_ns, d_ske_ns, d_sntp_ns, d_snts_ns, d_cntp_ns] = times.map(Histogram::from);
    let (clock_ns, every) = (read.clock_ns, read.every.filter(|&every| every > 1));
    let counts = Spans { joined, unmatched, left_out, clock_ns, every, ..Spans::default() };
    Spans { d_cke_ns, d_cnts_ns, d_ske_ns, d_sntp_ns, d_snts_ns, d_cntp_ns, ..counts }
}

#[cfg(test)]
mod tests;
