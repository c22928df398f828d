//! Rows of spans: what client and server know of each exchange of a measured client, one line of CSV each.
//!
//! A record has distributions alone. Rows keep what belongs together, so that a study can draw one time over another,
//! or take means and percentiles of any selection. The server's times stand in them twice: as they were measured, and
//! without what the readings of its clock cost.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::str::FromStr;

use super::Operation;

/// The stages of a key exchange at the server, in their order: from the accepted connection to the parsed request,
/// choosing an algorithm, exporting keys, sealing cookies, writing the response.
pub const KE_STAGES: [&str; 5] = ["handshake", "choose", "export", "cookies", "response"];

/// The most rows that a file has: some hundred mebioctets.
pub const ROW_COUNT_MAX: u64 = 1 << 20;

/// The stages of a request for time at the server, in their order.
pub const NTP_STAGES: [&str; 7] = ["parse", "admit", "open", "verify", "fresh", "build", "seal"];

/// A time that a server measured, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// As it was measured.
    pub raw_ns: u64,
    /// Without what the clock's readings cost; never below zero.
    pub ns: u64,
}

impl std::iter::Sum for Timed {
    fn sum<I: Iterator<Item = Timed>>(times: I) -> Timed {
        times.fold(Timed::default(), |sum, time| Timed {
            raw_ns: sum.raw_ns.saturating_add(time.raw_ns),
            ns: sum.ns.saturating_add(time.ns),
        })
    }
}

/// The server's side of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSide {
    /// Of a key exchange: each of [`KE_STAGES`].
    KeyExchange([Timed; KE_STAGES.len()]),
    /// Of a request for time.
    Transfer {
        /// Requests that went through the stages with it, itself included. With more than one, a stage's time is the
        /// mean of those that were worked on in it.
        batch_size: u32,
        /// Each of [`NTP_STAGES`].
        stages: [Timed; NTP_STAGES.len()],
    },
}

/// One exchange of a measured client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpanRow {
    /// The number of its step, from one.
    pub step: u64,
    /// The rate of that step, operations a second; `None` for a closed loop.
    pub offered_rps: Option<f64>,
    /// The client's address and port.
    pub source: SocketAddr,
    /// The transmit timestamp of a request for time; `None` for a key exchange.
    pub transmit: Option<u64>,
    /// d_CKE of a key exchange, d_CNTS of a request for time, in nanoseconds.
    pub client_ns: u64,
    /// What one reading of the server's clock costs, in nanoseconds; in each stage's raw time it is once.
    pub clock_ns: u64,
    /// `None` if the server has no record of it.
    pub server: Option<ServerSide>,
}

impl SpanRow {
    /// What the exchange is of: keys, or time.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        match self.transmit {
            None => Operation::KeyExchange,
            Some(_) => Operation::Transfer,
        }
    }

    fn of_ke(&self, stages: std::ops::Range<usize>) -> Option<Timed> {
        match &self.server {
            Some(ServerSide::KeyExchange(times)) => Some(times[stages].iter().copied().sum()),
            Some(ServerSide::Transfer { .. }) | None => None,
        }
    }

    fn of_ntp(&self, stages: &[usize]) -> Option<Timed> {
        match &self.server {
            Some(ServerSide::Transfer { stages: times, .. }) => {
                Some(stages.iter().map(|&stage| times[stage]).sum())
            }
            Some(ServerSide::KeyExchange(_)) | None => None,
        }
    }

    /// d_SKE by the study's equations: from the accepted connection to the sealed cookies.
    #[must_use]
    pub fn d_ske_from_accept(&self) -> Option<Timed> {
        self.of_ke(0..4)
    }

    /// d_SKE as the study's program took it: from the parsed request to the response with all cookies.
    #[must_use]
    pub fn d_ske_to_response(&self) -> Option<Timed> {
        self.of_ke(1..5)
    }

    /// d_SNTP: from the datagram in user space to the header: parsing, building.
    #[must_use]
    pub fn d_sntp(&self) -> Option<Timed> {
        self.of_ntp(&[0, 5])
    }

    /// d_SNTS: opening, verifying and sealing, without the fresh cookie.
    #[must_use]
    pub fn d_snts(&self) -> Option<Timed> {
        self.of_ntp(&[2, 3, 6])
    }

    /// Sealing the fresh cookies.
    #[must_use]
    pub fn d_fresh_cookie(&self) -> Option<Timed> {
        self.of_ntp(&[4])
    }

    /// The row as a line that ends with a line break, for a file that begins with [`heading`].
    #[must_use]
    pub fn line(&self) -> String {
        let mut line =
            format!("{},{},{},{},", self.step, or_empty(self.offered_rps), self.kind(), self.source);
        let of = |operation| (self.operation() == operation).then_some(self.client_ns);
        let calibrated = |time: Option<Timed>| or_empty(time.map(|time| time.ns));
        // Writing to a string does not fail.
        let _ = write!(
            line,
            "{},{},{},{},{},{},{},{},{}",
            self.transmit.map_or(String::new(), |transmit| format!("{transmit:016x}")),
            or_empty(of(Operation::KeyExchange)),
            or_empty(of(Operation::Transfer)),
            self.clock_ns,
            self.batch_size(),
            calibrated(self.d_ske_from_accept()),
            calibrated(self.d_ske_to_response()),
            calibrated(self.d_sntp()),
            calibrated(self.d_snts()),
        );
        let (ke, ntp) = match &self.server {
            Some(ServerSide::KeyExchange(stages)) => (Some(stages), None),
            Some(ServerSide::Transfer { stages, .. }) => (None, Some(stages)),
            None => (None, None),
        };
        add_stages(&mut line, ke);
        add_stages(&mut line, ntp);
        line.push('\n');
        line
    }

    const fn kind(&self) -> &'static str {
        if self.transmit.is_some() { TRANSFER } else { KEY_EXCHANGE }
    }

    fn batch_size(&self) -> String {
        match self.server {
            Some(ServerSide::Transfer { batch_size, .. }) => batch_size.to_string(),
            Some(ServerSide::KeyExchange(_)) | None => String::new(),
        }
    }
}

const KEY_EXCHANGE: &str = "key-exchange";
const TRANSFER: &str = "transfer";

/// Columns before those of the stages. The sums are without the clock's cost.
const COLUMNS: [&str; 13] = [
    "step",
    "offered_rps",
    "operation",
    "source",
    "transmit",
    "d_cke_ns",
    "d_cnts_ns",
    "clock_ns",
    "batch_size",
    "d_ske_from_accept_ns",
    "d_ske_to_response_ns",
    "d_sntp_ns",
    "d_snts_ns",
];

/// Every column in its order.
fn columns() -> Vec<String> {
    let of = |kind: &'static str, stages: &'static [&'static str]| {
        let pair = move |stage: &&str| [format!("{kind}_{stage}_ns"), format!("{kind}_{stage}_raw_ns")];
        stages.iter().flat_map(pair)
    };
    let stages = of("ke", &KE_STAGES).chain(of("ntp", &NTP_STAGES));
    COLUMNS.iter().map(ToString::to_string).chain(stages).collect()
}

/// The first line of a file of rows, with its line break.
#[must_use]
pub fn heading() -> String {
    columns().join(",") + "\n"
}

/// Reads a file of rows.
///
/// # Errors
/// A sentence with the line, and the column if it is about one: the file has another heading, or is cut or damaged.
pub fn parse(text: &str) -> Result<Vec<SpanRow>, String> {
    let columns = columns();
    let rest = text.strip_prefix(heading().as_str()).ok_or(
        "line 1: this is no heading of rows of spans; name a file that load --spans of this version wrote",
    )?;
    let lines = rest.split_inclusive('\n').enumerate();
    lines
        .map(|(index, line)| row(&columns, line).map_err(|problem| format!("line {}: {problem}", index + 2)))
        .collect()
}

fn row(columns: &[String], line: &str) -> Result<SpanRow, String> {
    let line = line.strip_suffix('\n').ok_or("the line has no end; the file is cut")?;
    let fields: Vec<&str> = line.split(',').collect();
    if fields.len() != columns.len() {
        return Err(format!("{} columns in place of {}; the file is damaged", fields.len(), columns.len()));
    }
    let fields = Fields { columns, fields };
    let operation = fields.fields[2];
    let (client, transmit, stages_from) = match operation {
        KEY_EXCHANGE => ("d_cke_ns", None, COLUMNS.len()),
        TRANSFER => {
            let digits = fields.text("transmit");
            let transmit = u64::from_str_radix(digits, 16).map_err(|_| fields.wrong("transmit"))?;
            ("d_cnts_ns", Some(transmit), COLUMNS.len() + 2 * KE_STAGES.len())
        }
        _ => return Err(fields.wrong("operation")),
    };
    let is_known = !fields.fields[stages_from].is_empty();
    let server = match (is_known, transmit) {
        (false, _) => None,
        (true, None) => Some(ServerSide::KeyExchange(fields.stages(stages_from)?)),
        (true, Some(_)) => Some(ServerSide::Transfer {
            batch_size: fields.number("batch_size")?,
            stages: fields.stages(stages_from)?,
        }),
    };
    let row = SpanRow {
        step: fields.number("step")?,
        offered_rps: match fields.text("offered_rps") {
            "" => None,
            _ => Some(fields.number("offered_rps")?),
        },
        source: fields.number("source")?,
        transmit,
        client_ns: fields.number(client)?,
        clock_ns: fields.number("clock_ns")?,
        server,
    };
    // The sums, and that what is of the other operation is empty.
    match row.line().strip_suffix('\n') == Some(line) {
        true => Ok(row),
        false => Err("its columns contradict each other; the file is damaged".to_owned()),
    }
}

/// The fields of a line by the names of their columns.
struct Fields<'a> {
    columns: &'a [String],
    fields: Vec<&'a str>,
}

impl Fields<'_> {
    fn text(&self, column: &str) -> &str {
        self.columns.iter().position(|name| name == column).map_or("", |index| self.fields[index])
    }

    fn wrong(&self, column: &str) -> String {
        format!("{column}: {:?} is none; the file is damaged", self.text(column))
    }

    fn number<T: FromStr>(&self, column: &str) -> Result<T, String> {
        self.text(column).parse().map_err(|_| self.wrong(column))
    }

    fn stages<const N: usize>(&self, from: usize) -> Result<[Timed; N], String> {
        let mut stages = [Timed::default(); N];
        for (index, stage) in stages.iter_mut().enumerate() {
            let columns = &self.columns[from + 2 * index..];
            *stage = Timed { ns: self.number(&columns[0])?, raw_ns: self.number(&columns[1])? };
        }
        Ok(stages)
    }
}

/// Adds both times of each stage, or as many empty columns.
fn add_stages<const N: usize>(line: &mut String, stages: Option<&[Timed; N]>) {
    match stages {
        Some(stages) => stages.iter().for_each(|Timed { raw_ns, ns }| {
            // Writing to a string does not fail.
            let _ = write!(line, ",{ns},{raw_ns}");
        }),
        None => (0..2 * N).for_each(|_| line.push(',')),
    }
}

fn or_empty<T: ToString>(value: Option<T>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn timed(ns: u64) -> Timed {
        Timed { raw_ns: ns + 27, ns }
    }

    fn rows() -> Vec<SpanRow> {
        let exchange = SpanRow {
            step: 3,
            offered_rps: Some(40.5),
            source: "192.0.2.1:1000".parse().unwrap(),
            transmit: None,
            client_ns: 5_000_000,
            clock_ns: 27,
            server: Some(ServerSide::KeyExchange([900_000, 10, 40_000, 6_000, 800].map(timed))),
        };
        let transfer = SpanRow {
            source: "[2001:db8::1]:99".parse().unwrap(),
            transmit: Some(0xabc),
            client_ns: 118_000,
            server: Some(ServerSide::Transfer {
                batch_size: 3,
                stages: [60, 20, 1_000, 2_000, 700, 250, 1_100].map(timed),
            }),
            ..exchange
        };
        let alone = SpanRow { offered_rps: None, server: None, ..transfer };
        vec![exchange, transfer, alone, SpanRow { server: None, ..exchange }]
    }

    fn file(rows: &[SpanRow]) -> String {
        rows.iter().fold(heading(), |text, row| text + &row.line())
    }

    #[test]
    fn sums_are_the_study_s_measures() {
        let rows = rows();
        let (exchange, transfer, alone) = (&rows[0], &rows[1], &rows[2]);
        assert_eq!(exchange.d_ske_from_accept(), Some(Timed { raw_ns: 946_118, ns: 946_010 }));
        assert_eq!(exchange.d_ske_to_response(), Some(Timed { raw_ns: 46_918, ns: 46_810 }));
        assert_eq!(transfer.d_snts(), Some(Timed { raw_ns: 4_181, ns: 4_100 }));
        assert_eq!(
            (transfer.d_sntp(), transfer.d_fresh_cookie()),
            (Some(Timed { raw_ns: 364, ns: 310 }), Some(timed(700)))
        );
        assert_eq!((exchange.d_snts(), transfer.d_ske_from_accept(), alone.d_snts()), (None, None, None));
    }

    #[test]
    fn rows_are_read_as_they_were_written_and_all_lines_have_the_heading_s_columns() {
        let text = file(&rows());
        assert_eq!(parse(&text).unwrap(), rows());
        let column_count = heading().split(',').count();
        assert!(text.lines().all(|line| line.split(',').count() == column_count), "{text}");
        let line = text.lines().nth(2).unwrap();
        let begins = "3,40.5,transfer,[2001:db8::1]:99,0000000000000abc,,118000,27,3,,,310,4100,,";
        assert!(line.starts_with(begins), "{line}");
        assert!(line.ends_with(",60,87,20,47,1000,1027,2000,2027,700,727,250,277,1100,1127"), "{line}");
    }

    #[test]
    fn file_that_is_cut_or_changed_is_refused_with_its_line() {
        let text = file(&rows());
        // A file may end with any whole line, and nowhere else.
        for size in 0..text.len() {
            let is_whole = size >= heading().len() && text[..size].ends_with('\n');
            assert_eq!(parse(&text[..size]).is_ok(), is_whole, "{size}");
        }
        for (from, to, problem) in [
            ("key-exchange", "negotiation", "line 2: operation: \"negotiation\""),
            ("946010", "946011", "line 2: its columns contradict"),
            (",27,3,", ",27,x,", "line 3: batch_size: \"x\""),
            (",1027,", ",,", "line 3: ntp_open_raw_ns: \"\""),
            ("192.0.2.1:1000", "192.0.2.1", "line 2: source"),
            (",60,87,", ",60,", "line 3: 36 columns in place of 37"),
            ("0abc,,118000", "0abc,1,118000", "line 3: its columns contradict"),
            ("step", "steps", "line 1: this is no heading"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            let error = parse(&changed).unwrap_err();
            assert!(error.contains(problem), "{from}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "\\PC*", lines in "[0-9a-f,.:\n-]*") {
            let _ = parse(&text);
            let _ = parse(&(heading() + &lines));
        }
    }
}
