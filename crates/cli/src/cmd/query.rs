//! `authentick query`: what time is it, who says so, and how long did that take.

mod antp;

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant, UNIX_EPOCH};

use authentick_crypto::Entropy;
use authentick_ke::client::{Ask, Dialled, Timing, dial};
use authentick_ke::tls::client_config;
use authentick_proto::client::NtsSession;
use authentick_proto::symmetric::{Allowed, SymmetricKey};
use authentick_report::units;
use authentick_wire::header::{Header, Leap};
use authentick_wire::time::{NtpSpan, NtpTime};
use rustls::pki_types::ServerName;
use serde::Serialize;

use crate::antp::store::Store;
use crate::args::{Authentication, Query};
use crate::exit::{Exit, Failure};
use crate::measure::{Credential, Measurement, measure, measure_with_either_keys};
use crate::output;
use crate::server::{NTP_PORT, ServerArgument, aeads, ke_failure, resolve};
use crate::symmetric::KeyName;
use crate::trust;

pub(crate) fn run(arguments: &Query) -> Result<Exit, Failure> {
    let server = ServerArgument::parse(&arguments.server)?;
    let mut report = Report::new(&server.host, arguments.auth);
    let result = ask(arguments, &server, &mut report);
    match &result {
        Ok(exit) => report.exit = *exit as u8,
        Err(failure) => {
            report.exit = failure.exit as u8;
            report.error = Some(failure.message.clone());
        }
    }
    match arguments.json {
        true => {
            output::json(&report)?;
            // The error is in the result; once is enough.
            Ok(result.unwrap_or_else(|failure| failure.exit))
        }
        false => {
            if arguments.count > 1 {
                output::result(&report.summary());
            }
            result
        }
    }
}

/// Asks, and fills `report` with what is known as it becomes known.
fn ask(arguments: &Query, server: &ServerArgument, report: &mut Report) -> Result<Exit, Failure> {
    let mut entropy = Entropy::from_system()?;
    check_antp_options(arguments)?;
    forget(arguments, server)?;
    let mut source = Source::new(arguments, server, report)?;
    let mut exits = Vec::new();
    for index in 0..arguments.count {
        if index > 0 {
            std::thread::sleep(arguments.interval * source.slowdown());
        }
        let result = source.measure(&mut entropy, report);
        if !arguments.json {
            let shown = match &result {
                Ok(answer) if arguments.count == 1 => report.shown(answer),
                Ok(answer) => one_line(answer),
                Err(_) if arguments.count == 1 => String::new(),
                Err(failure) => format!("{}\n", failure.message),
            };
            output::result(&shown);
        }
        match result {
            Ok(answer) => {
                report.exchanges.push(Shown::from(&answer));
                exits.push(Exit::Done);
            }
            Err(failure) => {
                report.failures.push(failure.message.clone());
                exits.push(failure.exit);
                if arguments.count == 1 {
                    return Err(failure);
                }
            }
        }
    }
    if exits.contains(&Exit::Done) {
        return Ok(Exit::Done);
    }
    let exit = exits.into_iter().find(|&exit| exit != Exit::Silence).unwrap_or(Exit::Silence);
    Err(Failure::new(exit, format!("none of {} exchanges succeeded", arguments.count)))
}

/// Does what `--forget-antp` says, before anything else looks at what is remembered.
fn forget(arguments: &Query, server: &ServerArgument) -> Result<(), Failure> {
    if !arguments.antp.forget_antp {
        return Ok(());
    }
    let name = antp::stored_name(server);
    let store = Store::find(arguments.antp.state_directory.as_deref());
    let was_there = store.map_or(Ok(false), |store| store.forget(&name))?;
    output::error(&match was_there {
        true => format!("{name} is forgotten to have spoken ANTP"),
        false => format!("{name} was not known to have spoken ANTP"),
    });
    Ok(())
}

/// An answer that passed every check.
#[derive(Clone, Copy, Debug)]
struct Answer {
    measurement: Measurement,
    bound: Option<Bound>,
}

/// By how much an answer may be wrong, where the scheme bounds it.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// R / 2.
    error_max: NtpSpan,
    /// E.
    round_trip_max: NtpSpan,
    /// Whether T4 is the arrival of a packet that came before its tag.
    is_early: bool,
}

impl Bound {
    fn error(&self) -> String {
        units::time(self.error_max.as_nanos().unsigned_abs())
    }

    fn longest(&self) -> String {
        units::time(self.round_trip_max.as_nanos().unsigned_abs())
    }
}

/// Where measurements come from: a server, and the session with it.
struct Source<'a> {
    arguments: &'a Query,
    server: &'a ServerArgument,
    ke: Option<Ask>,
    addresses: Vec<SocketAddr>,
    ntp: Option<SocketAddr>,
    session: Option<NtsSession>,
    key: Option<SymmetricKey>,
    antp: Option<antp::Source<'a>>,
}

impl<'a> Source<'a> {
    fn new(arguments: &'a Query, server: &'a ServerArgument, report: &mut Report) -> Result<Self, Failure> {
        let name = key_name(arguments)?;
        if arguments.auth == Authentication::Plain
            && let Some(store) = Store::find(arguments.antp.state_directory.as_deref())
        {
            store.admit_plain(&antp::stored_name(server))?;
        }
        let ke = match arguments.auth {
            Authentication::Plain | Authentication::Mac | Authentication::Antp => None,
            Authentication::Nts => {
                let name = arguments.server_name.as_deref().unwrap_or(&server.host);
                let server_name = ServerName::try_from(name.to_owned()).map_err(|_| {
                    Failure::new(Exit::Usage, format!("--server-name {name:?} is no host name or address"))
                })?;
                let tls = client_config(trust::roots(arguments.ca.as_deref())?);
                Some(Ask { tls, server_name, aeads: aeads(&arguments.aead) })
            }
        };
        let port = match ke {
            Some(_) => arguments.ke_port,
            None => server.port.unwrap_or(NTP_PORT),
        };
        let start = Instant::now();
        let addresses = resolve(&server.host, port)?;
        report.timing.resolve_ns = nanos(start.elapsed());
        let ntp = if ke.is_none() { addresses.first().copied() } else { None };
        report.address = ntp;
        let key = match (name, ntp) {
            (Some(name), Some(ntp)) => Some(name.find(ntp.ip())?),
            _ => None,
        };
        report.authentication = key.as_ref().map(Vouched::from);
        let antp = match (arguments.auth, ntp) {
            (Authentication::Antp, Some(ntp)) => Some(antp::Source::new(arguments, server, ntp)?),
            _ => None,
        };
        Ok(Source { arguments, server, ke, addresses, ntp, session: None, key, antp })
    }

    /// By how much the interval between exchanges grows, at the server's wish.
    fn slowdown(&self) -> u32 {
        self.antp.as_ref().map_or(1, antp::Source::slowdown)
    }

    fn measure(&mut self, entropy: &mut Entropy, report: &mut Report) -> Result<Answer, Failure> {
        if let Some(antp) = &mut self.antp {
            return antp.measure(entropy, report);
        }
        let timeout = self.arguments.timeout;
        let exhausted = self.session.as_ref().is_none_or(|session| session.jar.count() == 0);
        if self.ke.is_some() && exhausted {
            self.exchange_keys(report)?;
        }
        let ntp = self.ntp.expect("known from the start or from the key exchange");
        let result = match &self.key {
            Some(key) => measure(ntp, Credential::Mac(key), entropy, timeout),
            None => measure_with_either_keys(ntp, self.session.as_mut(), entropy, timeout)
                .map(|(measurement, _)| measurement),
        };
        result.map(|measurement| Answer { measurement, bound: None }).map_err(|unanswered| {
            if unanswered.is_nts_nak() {
                // The cookies are worthless: the next exchange starts with new keys.
                self.session = None;
            }
            unanswered.failure(ntp)
        })
    }

    fn exchange_keys(&mut self, report: &mut Report) -> Result<(), Failure> {
        let ke = self.ke.as_ref().expect("only called under NTS");
        let dialled = dial(ke, &self.addresses, self.arguments.timeout)
            .map_err(|error| ke_failure(&self.server.host, self.arguments.ke_port, &error, &ke.aeads))?;
        report.timing.set(&dialled.timing);
        report.authentication = Some(Vouched::from(&dialled));
        let Dialled { established, address, .. } = dialled;
        let port = established.ntp_port.or(self.server.port).unwrap_or(NTP_PORT);
        let ntp = match &established.ntp_server {
            Some(name) => resolve(name, port)?[0],
            None => SocketAddr::new(address.ip(), port),
        };
        report.address = Some(ntp);
        self.ntp = Some(ntp);
        self.session = Some(established.session);
        Ok(())
    }
}

/// The key that the arguments name. An option that would do nothing is refused.
fn key_name(arguments: &Query) -> Result<Option<KeyName<'_>>, Failure> {
    match (arguments.auth, &arguments.keys, arguments.key_id) {
        (Authentication::Mac, Some(file), Some(id)) => {
            let allowed = arguments.allowed.into();
            Ok(Some(KeyName { file, id, format: arguments.keys_format, allowed }))
        }
        (Authentication::Mac, ..) => {
            Err(Failure::new(Exit::Usage, "--auth mac needs a key: --keys FILE --key-id N"))
        }
        (Authentication::Nts | Authentication::Antp | Authentication::Plain, None, None) => {
            match Allowed::from(arguments.allowed) == Allowed::default() {
                true => Ok(None),
                false => Err(Failure::new(
                    Exit::Usage,
                    "--allow-legacy and --allow-experimental are for --auth mac",
                )),
            }
        }
        (Authentication::Nts | Authentication::Antp | Authentication::Plain, ..) => {
            Err(Failure::new(Exit::Usage, "--keys and --key-id are for --auth mac"))
        }
    }
}

/// Refuses options of ANTP with another scheme.
fn check_antp_options(arguments: &Query) -> Result<(), Failure> {
    match arguments.antp.given() {
        Some(option) if arguments.auth != Authentication::Antp => {
            Err(Failure::new(Exit::Usage, format!("{option} is for --auth antp")))
        }
        _ => Ok(()),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn one_line(answer: &Answer) -> String {
    let sample = &answer.measurement.sample;
    let cookies = match answer.measurement.response.cookie_count {
        0 => String::new(),
        count => format!("  cookies {count}"),
    };
    let bound = answer.bound.map_or(String::new(), |bound| format!("  error at most {}", bound.error()));
    let (offset, delay) = (sample.offset.to_string(), sample.delay.to_string());
    format!("offset {offset:>12}  delay {delay:>12}{cookies}{bound}\n")
}

/// Everything that was learnt, as JSON shows it.
#[derive(Debug, Serialize)]
struct Report {
    server: String,
    address: Option<SocketAddr>,
    scheme: &'static str,
    authentication: Option<Vouched>,
    timing: TimeSpent,
    exchanges: Vec<Shown>,
    failures: Vec<String>,
    exit: u8,
    error: Option<String>,
}

/// Who vouched for the keys, and what they are for.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Vouched {
    /// By a certificate, under NTS.
    Nts(Session),
    /// By a key that both sides know.
    Mac { algorithm: &'static str, key_id: u32 },
    /// By a certificate, or by a pinned key, under ANTP.
    Antp(antp::Session),
}

/// What a key exchange brought.
#[derive(Debug, Serialize)]
struct Session {
    aead: u16,
    aead_name: String,
    cookie_count: usize,
    subject: Option<String>,
    issuer: Option<String>,
    valid_until: Option<String>,
    key_exchange_address: SocketAddr,
    /// What the server's spans of the key exchange are joined by.
    key_exchange_source: SocketAddr,
}

/// Time spent in each phase before the exchanges.
#[derive(Debug, Default, Serialize)]
struct TimeSpent {
    resolve_ns: u64,
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

impl From<&Dialled> for Vouched {
    fn from(dialled: &Dialled) -> Self {
        let established = &dialled.established;
        let certificate = established.certificate.as_ref();
        Vouched::Nts(Session {
            aead: established.aead.0,
            aead_name: established.aead.to_string(),
            cookie_count: established.session.jar.count(),
            subject: certificate.map(|certificate| certificate.subject.clone()),
            issuer: certificate.map(|certificate| certificate.issuer.clone()),
            valid_until: certificate.and_then(|certificate| date(certificate.not_after)),
            key_exchange_address: dialled.address,
            key_exchange_source: dialled.local,
        })
    }
}

impl From<&SymmetricKey> for Vouched {
    fn from(key: &SymmetricKey) -> Self {
        Vouched::Mac { algorithm: key.algorithm().name(), key_id: key.id() }
    }
}

fn date(unix_seconds: i64) -> Option<String> {
    let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(unix_seconds).ok()?);
    Some(humantime::format_rfc3339_seconds(time).to_string())
}

impl TimeSpent {
    fn set(&mut self, timing: &Timing) {
        self.connect_ns = Some(nanos(timing.connect));
        self.tls_handshake_ns = Some(nanos(timing.handshake));
        self.key_exchange_ns = Some(nanos(timing.exchange));
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
            reference_id: reference(header),
            leap: leap(header.leap),
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

const fn leap(leap: Leap) -> &'static str {
    match leap {
        Leap::None => "none",
        Leap::Insert => "insert",
        Leap::Delete => "delete",
        Leap::Unsynchronised => "unsynchronised",
    }
}

/// At stratum 1 a name; above, an IPv4 address or four octets of a hash.
fn reference(header: &Header) -> String {
    match (header.stratum, header.reference_id.as_text()) {
        (0 | 1, Some(text)) => text.to_owned(),
        _ => IpAddr::from(header.reference_id.0).to_string(),
    }
}

impl Report {
    fn new(server: &str, authentication: Authentication) -> Self {
        Report {
            server: server.to_owned(),
            address: None,
            scheme: match authentication {
                Authentication::Nts => "nts",
                Authentication::Mac => "mac",
                Authentication::Antp => "antp",
                Authentication::Plain => "plain",
            },
            authentication: None,
            timing: TimeSpent::default(),
            exchanges: Vec::new(),
            failures: Vec::new(),
            exit: 0,
            error: None,
        }
    }

    /// The result of a single exchange, for people.
    fn shown(&self, answer: &Answer) -> String {
        let measurement = &answer.measurement;
        let (sample, header) = (&measurement.sample, &measurement.response.header);
        let address = self.address.map_or(String::new(), |address| format!(" ({address})"));
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            writeln!(text, "{name:<14} {value}").expect("writing to a string cannot fail");
        };
        line("server", &format!("{}{address}", self.server));
        match &self.authentication {
            None => line("authenticated", "no"),
            Some(Vouched::Mac { algorithm, key_id }) => {
                line("authenticated", &format!("MAC, {algorithm}, key {key_id}"));
            }
            Some(Vouched::Antp(session)) => {
                session.lines().iter().for_each(|(name, value)| line(name, value));
            }
            Some(Vouched::Nts(vouched)) => {
                line("authenticated", &format!("NTS, {}", vouched.aead_name));
                if let (Some(subject), Some(issuer)) = (&vouched.subject, &vouched.issuer) {
                    line("vouched for by", &format!("{subject} (issuer: {issuer})"));
                }
                if let Some(date) = &vouched.valid_until {
                    line("valid until", date);
                }
            }
        }
        line("offset", &sample.offset.to_string());
        line("delay", &sample.delay.to_string());
        if let Some(bound) = &answer.bound {
            line("error at most", &format!("{} (half the delay; E is {})", bound.error(), bound.longest()));
        }
        line("stratum", &format!("{} ({})", header.stratum, reference(header)));
        line("root distance", &sample.root_distance.to_string());
        if header.leap != Leap::None {
            line("leap second", leap(header.leap));
        }
        line("time spent", &self.time_spent(measurement));
        text
    }

    fn time_spent(&self, measurement: &Measurement) -> String {
        let phases = [
            ("resolving", Some(self.timing.resolve_ns)),
            ("connecting", self.timing.connect_ns),
            ("TLS handshake", self.timing.tls_handshake_ns),
            ("negotiation", self.timing.negotiation_ns),
            ("certificate check", self.timing.certificate_check_ns),
            ("encapsulation", self.timing.encapsulation_ns),
            ("key exchange", self.timing.key_exchange_ns),
            (
                if self.scheme == "antp" { "time sync" } else { "NTP exchange" },
                Some(nanos(measurement.whole)),
            ),
        ];
        let shown: Vec<String> = phases
            .into_iter()
            .filter_map(|(name, ns)| Some(format!("{name} {}", units::time(ns?))))
            .collect();
        shown.join(", ")
    }

    /// The result of several exchanges, for people.
    fn summary(&self) -> String {
        let (done, all) = (self.exchanges.len(), self.exchanges.len() + self.failures.len());
        let median = |value: &dyn Fn(&Shown) -> i64| {
            let mut values: Vec<i64> = self.exchanges.iter().map(value).collect();
            values.sort_unstable();
            values.get(values.len().saturating_sub(1) / 2).map(|&ns| NtpSpan::from_nanos(ns).to_string())
        };
        let (offset, delay) = (median(&|shown| shown.offset_ns), median(&|shown| shown.delay_ns));
        let medians = match (offset, delay) {
            (Some(offset), Some(delay)) => format!(", median offset {offset}, median delay {delay}"),
            _ => String::new(),
        };
        format!("{done} of {all} exchanges with {}{medians}\n", self.server)
    }
}
