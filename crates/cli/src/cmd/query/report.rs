//! What `query` prints: everything that was learnt, as lines for people or as JSON.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use authentick_client::antp::ocsp::Vouch;
use authentick_client::trust::rfc3339;
use authentick_client::{Answer, Bound, Learnt, Measurement, Voucher};
use authentick_ke::ocsp::Signer;
use authentick_ke::tls::CertificateInfo;
use authentick_report::units;
use authentick_wire::header::Leap;
use authentick_wire::time::{NtpSpan, NtpTime};
use serde::Serialize;

use crate::args::{Authentication, Query, name_of};

/// Everything that was learnt, as JSON shows it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) server: String,
    pub(super) address: Option<SocketAddr>,
    scheme: String,
    authentication: Option<Vouched>,
    pub(super) timing: TimeSpent,
    /// How many exchanges were asked for.
    count_wanted: u32,
    /// Whether a signal ended the series before that.
    interrupted: bool,
    exchanges: Vec<Shown>,
    pub(super) failures: Vec<String>,
    pub(super) exit: u8,
    pub(super) error: Option<String>,
}

/// Who vouched for the keys, and what they are for.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Vouched {
    /// By a certificate, under NTS.
    Nts(NtsSession),
    /// By a key that both sides know.
    Mac { algorithm: &'static str, key_id: u32 },
    /// By a certificate, or by a pinned key, under ANTP.
    Antp(AntpSession),
}

/// What a key exchange of NTS brought.
#[derive(Debug, Serialize)]
struct NtsSession {
    aead: u16,
    aead_name: String,
    cookie_count: usize,
    #[serde(flatten)]
    certificate: Certificate,
    key_exchange_address: SocketAddr,
    /// What the server's spans of the key exchange are joined by.
    key_exchange_source: SocketAddr,
}

/// What a key exchange of ANTP brought.
#[derive(Debug, Serialize)]
struct AntpSession {
    suite: u16,
    suite_name: String,
    /// `inline` or `separate`.
    tag: &'static str,
    chain_size: usize,
    /// Whether the chain was held from an earlier run, and not sent again.
    chain_held: bool,
    negotiation_round_count: u32,
    trusted_by: String,
    #[serde(flatten)]
    certificate: Certificate,
    /// What responders vouched for, one for each certificate of the path; absent without `--ocsp`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ocsp: Vec<OcspAnswer>,
}

/// What the server's certificate says.
#[derive(Debug, Serialize)]
struct Certificate {
    subject: Option<String>,
    issuer: Option<String>,
    valid_until: Option<String>,
}

/// What a responder vouched for.
#[derive(Debug, Serialize)]
struct OcspAnswer {
    /// Whom the certificate names.
    subject: String,
    responder: String,
    /// `issuer` or `delegate`.
    signed_by: &'static str,
    produced_at: String,
    this_update: String,
    next_update: Option<String>,
    /// The same for people.
    #[serde(skip)]
    line: String,
}

/// Time spent in each phase before the exchanges.
#[derive(Debug, Default, Serialize)]
pub(super) struct TimeSpent {
    pub(super) resolve_ns: u64,
    connect_ns: Option<u64>,
    tls_handshake_ns: Option<u64>,
    /// ANTP: all rounds of m1 and m2.
    #[serde(skip_serializing_if = "Option::is_none")]
    negotiation_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_check_ns: Option<u64>,
    /// ANTP: the client's own public-key work.
    #[serde(skip_serializing_if = "Option::is_none")]
    encapsulation_ns: Option<u64>,
    /// Under ANTP the rest of it.
    key_exchange_ns: Option<u64>,
}

/// One exchange.
#[derive(Debug, Serialize)]
struct Shown {
    /// With `origin`, what a server's spans are joined by.
    source: SocketAddr,
    /// The transmit timestamp of the request, 16 hexadecimal digits.
    origin: String,
    /// T1 to T4, 16 hexadecimal digits each.
    timestamps: [String; 4],
    offset_ns: i64,
    delay_ns: i64,
    round_trip_ns: i64,
    root_distance_ns: i64,
    stratum: u8,
    reference_id: String,
    leap: &'static str,
    poll: i8,
    precision: i8,
    whole_ns: u64,
    cookie_count: usize,
    /// ANTP: R / 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_max_ns: Option<i64>,
    /// ANTP: E.
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip_max_ns: Option<i64>,
    /// ANTP with a separate tag: whether T4 is the arrival of the early packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    early: Option<bool>,
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Vouched {
    fn new(voucher: &Voucher, has_separate_tag: bool) -> Self {
        match voucher {
            Voucher::Nts { aead, cookie_count, certificate, key_exchange_address, key_exchange_source } => {
                Vouched::Nts(NtsSession {
                    aead: aead.0,
                    aead_name: aead.to_string(),
                    cookie_count: *cookie_count,
                    certificate: certificate.as_ref().into(),
                    key_exchange_address: *key_exchange_address,
                    key_exchange_source: *key_exchange_source,
                })
            }
            Voucher::Mac { algorithm, key_id } => {
                Vouched::Mac { algorithm: algorithm.name(), key_id: *key_id }
            }
            Voucher::Antp { suite, chain_size, is_chain_held, round_count, by, certificate, ocsp } => {
                Vouched::Antp(AntpSession {
                    suite: suite.0,
                    suite_name: suite.to_string(),
                    tag: if has_separate_tag { "separate" } else { "inline" },
                    chain_size: *chain_size,
                    chain_held: *is_chain_held,
                    negotiation_round_count: *round_count,
                    trusted_by: by.to_string(),
                    certificate: certificate.as_ref().into(),
                    ocsp: ocsp.iter().map(OcspAnswer::from).collect(),
                })
            }
        }
    }

    /// Lines for people: a name and a value.
    fn lines(&self) -> Vec<(&'static str, String)> {
        match self {
            Vouched::Mac { algorithm, key_id } => {
                vec![("authenticated", format!("MAC, {algorithm}, key {key_id}"))]
            }
            Vouched::Nts(session) => {
                let mut lines = vec![("authenticated", format!("NTS, {}", session.aead_name))];
                lines.extend(session.certificate.lines());
                lines
            }
            Vouched::Antp(session) => {
                let AntpSession { suite_name, tag, .. } = session;
                let mut lines = vec![("authenticated", format!("ANTP, {suite_name}, {tag} tag"))];
                lines.extend(session.certificate.lines());
                lines.push(("trusted by", session.trusted_by.clone()));
                lines.extend(session.ocsp.iter().map(|answer| ("OCSP", answer.line.clone())));
                let held = if session.chain_held { ", held from before" } else { "" };
                let rounds = match session.negotiation_round_count {
                    1 => "1 round".to_owned(),
                    count => format!("{count} rounds"),
                };
                lines.push(("chain", format!("{} octets{held}, {rounds}", session.chain_size)));
                lines
            }
        }
    }
}

impl From<Option<&CertificateInfo>> for Certificate {
    fn from(certificate: Option<&CertificateInfo>) -> Self {
        Certificate {
            subject: certificate.map(|certificate| certificate.subject.clone()),
            issuer: certificate.map(|certificate| certificate.issuer.clone()),
            valid_until: certificate.and_then(|found| u64::try_from(found.not_after).ok()).map(rfc3339),
        }
    }
}

impl Certificate {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        if let (Some(subject), Some(issuer)) = (&self.subject, &self.issuer) {
            lines.push(("vouched for by", format!("{subject} (issuer: {issuer})")));
        }
        lines.extend(self.valid_until.iter().map(|date| ("valid until", date.clone())));
        lines
    }
}

impl From<&Vouch> for OcspAnswer {
    fn from(vouch: &Vouch) -> Self {
        OcspAnswer {
            subject: vouch.subject.clone(),
            responder: vouch.responder.clone(),
            signed_by: match vouch.good.signer {
                Signer::Issuer => "issuer",
                Signer::Delegate => "delegate",
            },
            produced_at: rfc3339(vouch.good.produced_at),
            this_update: rfc3339(vouch.good.this_update),
            next_update: vouch.good.next_update.map(rfc3339),
            line: vouch.to_string(),
        }
    }
}

impl From<&Answer> for Shown {
    fn from(Answer { measurement, bound }: &Answer) -> Self {
        let (sample, header) = (&measurement.sample, &measurement.response.header);
        let digits = |time: NtpTime| format!("{:016x}", time.to_bits());
        Shown {
            source: measurement.source,
            origin: digits(measurement.transmit),
            timestamps: [measurement.sent, header.receive, header.transmit, measurement.arrived].map(digits),
            offset_ns: sample.offset.as_nanos(),
            delay_ns: sample.delay.as_nanos(),
            round_trip_ns: sample.round_trip.as_nanos(),
            root_distance_ns: sample.root_distance.as_nanos(),
            stratum: header.stratum,
            reference_id: measurement.reference(),
            leap: header.leap.name(),
            poll: header.poll,
            precision: header.precision,
            whole_ns: nanos(measurement.whole),
            cookie_count: measurement.response.cookie_count,
            error_max_ns: bound.map(|bound| bound.error_max.as_nanos()),
            round_trip_max_ns: bound.map(|bound| bound.round_trip_max.as_nanos()),
            early: bound.map(|bound| bound.is_early),
        }
    }
}

/// A span that has no sign, for people.
fn unsigned(span: NtpSpan) -> String {
    units::time(span.as_nanos().unsigned_abs())
}

/// One of several exchanges, for people.
pub(super) fn one_line(answer: &Answer) -> String {
    let sample = &answer.measurement.sample;
    let cookies = match answer.measurement.response.cookie_count {
        0 => String::new(),
        count => format!("  cookies {count}"),
    };
    let bound = answer
        .bound
        .map_or(String::new(), |Bound { error_max, .. }| format!("  error at most {}", unsigned(error_max)));
    let (offset, delay) = (sample.offset.to_string(), sample.delay.to_string());
    format!("offset {offset:>12}  delay {delay:>12}{cookies}{bound}\n")
}

impl Report {
    pub(super) fn new(server: &str, authentication: Authentication, count_wanted: u32) -> Self {
        Report {
            server: server.to_owned(),
            address: None,
            scheme: name_of(&authentication),
            authentication: None,
            timing: TimeSpent::default(),
            count_wanted,
            interrupted: false,
            exchanges: Vec::new(),
            failures: Vec::new(),
            exit: 0,
            error: None,
        }
    }

    /// Takes over what a client has learnt so far.
    pub(super) fn learn(&mut self, arguments: &Query, learnt: &Learnt) {
        let times = &learnt.times;
        self.address = learnt.address;
        self.authentication =
            learnt.voucher.as_ref().map(|voucher| Vouched::new(voucher, arguments.antp.separate_tag));
        self.timing = TimeSpent {
            resolve_ns: self.timing.resolve_ns,
            connect_ns: times.connect.map(nanos),
            tls_handshake_ns: times.tls_handshake.map(nanos),
            negotiation_ns: times.negotiation.map(nanos),
            certificate_check_ns: times.certificate_check.map(nanos),
            encapsulation_ns: times.encapsulation.map(nanos),
            key_exchange_ns: times.key_exchange.map(nanos),
        };
    }

    /// Notes that a signal ends the series here, unless all its exchanges were made.
    pub(super) fn interrupt(&mut self) {
        self.interrupted = self.made_count() < self.count_wanted as usize;
    }

    fn made_count(&self) -> usize {
        self.exchanges.len() + self.failures.len()
    }

    pub(super) fn has_exchanges(&self) -> bool {
        !self.exchanges.is_empty()
    }

    pub(super) fn add(&mut self, answer: &Answer) {
        self.exchanges.push(Shown::from(answer));
    }

    /// The result of a single exchange, for people.
    pub(super) fn single(&self, answer: &Answer) -> String {
        let measurement = &answer.measurement;
        let (sample, header) = (&measurement.sample, &measurement.response.header);
        let address = self.address.map_or(String::new(), |address| format!(" ({address})"));
        let mut lines = vec![("server", format!("{}{address}", self.server))];
        match &self.authentication {
            None => lines.push(("authenticated", "no".to_owned())),
            Some(vouched) => lines.extend(vouched.lines()),
        }
        lines.push(("offset", sample.offset.to_string()));
        let impossible = match sample.has_negative_delay() {
            true => {
                " (negative: the server claims more time for itself than the exchange took; do not use offset)"
            }
            false => "",
        };
        lines.push(("delay", format!("{}{impossible}", sample.delay)));
        if let Some(Bound { error_max, round_trip_max, .. }) = answer.bound {
            let (error, longest) = (unsigned(error_max), unsigned(round_trip_max));
            lines.push(("error at most", format!("{error} (half the delay; E is {longest})")));
        }
        lines.push(("stratum", format!("{} ({})", header.stratum, measurement.reference())));
        lines.push(("root distance", sample.root_distance.to_string()));
        if header.leap != Leap::None {
            lines.push(("leap second", header.leap.name().to_owned()));
        }
        lines.push(("time spent", self.time_spent(measurement)));
        let mut text = String::new();
        for (name, value) in lines {
            writeln!(text, "{name:<14} {value}").expect("writing to a string cannot fail");
        }
        text
    }

    fn time_spent(&self, measurement: &Measurement) -> String {
        let last = if self.scheme == "antp" { "time sync" } else { "NTP exchange" };
        let phases = [
            ("resolving", Some(self.timing.resolve_ns)),
            ("connecting", self.timing.connect_ns),
            ("TLS handshake", self.timing.tls_handshake_ns),
            ("negotiation", self.timing.negotiation_ns),
            ("certificate check", self.timing.certificate_check_ns),
            ("encapsulation", self.timing.encapsulation_ns),
            ("key exchange", self.timing.key_exchange_ns),
            (last, Some(nanos(measurement.whole))),
        ];
        let shown: Vec<String> = phases
            .into_iter()
            .filter_map(|(name, ns)| Some(format!("{name} {}", units::time(ns?))))
            .collect();
        shown.join(", ")
    }

    /// The result of several exchanges, for people.
    pub(super) fn summary(&self) -> String {
        let done = self.exchanges.len();
        let (all, interrupted) = match self.interrupted {
            true => (self.count_wanted as usize, format!(", interrupted after {}", self.made_count())),
            false => (self.made_count(), String::new()),
        };
        let possible: Vec<&Shown> = self.exchanges.iter().filter(|shown| shown.delay_ns >= 0).collect();
        let median = |value: &dyn Fn(&Shown) -> i64| {
            let mut values: Vec<i64> = possible.iter().map(|shown| value(shown)).collect();
            values.sort_unstable();
            values.get(values.len().saturating_sub(1) / 2).map(|&ns| NtpSpan::from_nanos(ns).to_string())
        };
        let (offset, delay) = (median(&|shown| shown.offset_ns), median(&|shown| shown.delay_ns));
        let medians = match (offset, delay) {
            (Some(offset), Some(delay)) => format!(", median offset {offset}, median delay {delay}"),
            _ => String::new(),
        };
        let negative = match done - possible.len() {
            0 => String::new(),
            count => format!(", {count} with a negative delay (in no median)"),
        };
        format!("{done} of {all} exchanges with {}{medians}{negative}{interrupted}\n", self.server)
    }
}
