//! The endpoint: `GET /metrics` for Prometheus, `GET /spans` for timed requests.
//!
//! One thread with an event loop of its own; a slow reader costs nobody else anything. Names follow those of ntpd-rs
//! where the meaning is the same.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use authentick_ke::server::Outcome as KeOutcome;
use authentick_proto::antp::server::ExchangeOutcome;
use authentick_proto::server::outcome::Outcome;
use authentick_wire::antp::Suite;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::sync::{Semaphore, oneshot};

use super::counters::Totals;
use super::spans::{Kept, Position};
use crate::antp::AntpState;
use crate::containment::Kind;
use crate::shared::Shared;
use crate::symmetric::keeper::{Shown, SymmetricState};

/// Readers at once; more wait for their turn in the kernel's queue.
pub(crate) const READER_COUNT_MAX: usize = 16;
/// Symmetric keys with counters of their own on the page.
const SHOWN_KEY_COUNT_MAX: usize = 1024;
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
const COLLECT_INTERVAL: Duration = Duration::from_millis(250);
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves metrics until stopped.
pub(crate) struct Exporter {
    listener: TcpListener,
    state: Arc<State>,
}

struct State {
    shared: Arc<Shared>,
    registry: Registry,
    /// Only this thread and its readers, one at a time, look at timed requests.
    kept: Mutex<Kept>,
}

impl Exporter {
    pub(crate) fn new(listener: TcpListener, shared: Arc<Shared>) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        let mut registry = Registry::default();
        registry.register_collector(Box::new(View(Arc::clone(&shared))));
        Ok(Exporter { listener, state: Arc::new(State { shared, registry, kept: Mutex::default() }) })
    }

    /// Serves until `stop` is dropped or fires.
    pub(crate) fn run(self, stop: oneshot::Receiver<()>) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let readers = Arc::new(Semaphore::new(READER_COUNT_MAX));
            let collecting = collect(Arc::clone(&self.state));
            tokio::select! {
                result = accept(listener, readers, self.state) => result,
                () = collecting => Ok(()),
                _ = stop => Ok(()),
            }
        })
    }
}

async fn collect(state: Arc<State>) {
    loop {
        state.collect();
        tokio::time::sleep(COLLECT_INTERVAL).await;
    }
}

async fn accept(
    listener: tokio::net::TcpListener,
    readers: Arc<Semaphore>,
    state: Arc<State>,
) -> std::io::Result<()> {
    loop {
        let permit = Arc::clone(&readers).acquire_owned().await.map_err(std::io::Error::other)?;
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, for example: try again a little later.
            tokio::time::sleep(COLLECT_INTERVAL).await;
            continue;
        };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let _permit = permit;
            let service = service_fn(move |request| {
                let response = state.answer(&request);
                async { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .max_buf_size(16 * 1024)
                .serve_connection(TokioIo::new(stream), service);
            // A reader that breaks off or dawdles is no concern of ours.
            let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
        });
    }
}

impl State {
    fn collect(&self) {
        if let Some(ring) = &self.shared.spans {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).collect(ring);
        }
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::GET {
            return response(
                StatusCode::METHOD_NOT_ALLOWED,
                "text/plain",
                "only GET is served here\n".to_owned(),
            );
        }
        match request.uri().path() {
            "/metrics" => {
                let mut text = String::new();
                match prometheus_client::encoding::text::encode(&mut text, &self.registry) {
                    Ok(()) => response(StatusCode::OK, OPENMETRICS, text),
                    Err(_) => response(
                        StatusCode::INTERNAL_SERVER_ERROR,
                        "text/plain",
                        "cannot encode\n".to_owned(),
                    ),
                }
            }
            "/spans" if self.shared.spans.is_none() => {
                let text = "no requests are timed; name clients in [metrics] span-clients\n".to_owned();
                response(StatusCode::NOT_FOUND, "text/plain", text)
            }
            "/spans" => {
                self.collect();
                let Some(from) = position(request.uri().query().unwrap_or("")) else {
                    return response(StatusCode::BAD_REQUEST, "text/plain", SPANS_USAGE.to_owned());
                };
                let records = self.kept.lock().unwrap_or_else(PoisonError::into_inner).records(from);
                match serde_json::to_string(&records) {
                    Ok(text) => response(StatusCode::OK, "application/json", text),
                    Err(_) => response(
                        StatusCode::INTERNAL_SERVER_ERROR,
                        "text/plain",
                        "cannot encode\n".to_owned(),
                    ),
                }
            }
            _ => response(StatusCode::NOT_FOUND, "text/plain", "see /metrics and /spans\n".to_owned()),
        }
    }
}

const SPANS_USAGE: &str =
    "write /spans, or /spans?ntp=N&ke=N with the numbers of `next` in the last reading\n";

/// Where a reading of spans is to begin: `ntp=N&ke=N`, each 0 if it is absent; `None` for anything else.
fn position(query: &str) -> Option<Position> {
    let mut from = Position::default();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, number) = part.split_once('=')?;
        let number = number.parse().ok()?;
        match name {
            "ntp" => from.ntp = number,
            "ke" => from.ke = number,
            _ => return None,
        }
    }
    Some(from)
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The node as a source of metrics, read at each scrape.
#[derive(Debug)]
struct View(Arc<Shared>);

impl Collector for View {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let shared = &*self.0;
        let out = &mut Out { encoder: &mut encoder };
        let totals = Totals::of(&shared.workers);
        out.counter("ntp_server_received_packets", "Datagrams received", totals.received)?;
        out.outcomes(
            "ntp_server_packets",
            "Datagrams by what became of them; they add up to those received",
            Outcome::ALL.iter().map(|&outcome| (outcome.label(), totals.of_outcome(outcome))),
        )?;
        out.counter(
            "ntp_server_response_send_errors",
            "Responses that the kernel refused to send",
            totals.send_failures,
        )?;
        out.counter(
            "ntp_server_receive_errors",
            "Times that the kernel failed to receive, and the server went on",
            totals.receive_failures,
        )?;
        out.counter(
            "ntp_server_socket_drops",
            "Datagrams that the kernel dropped because the server did not read them in time",
            totals.dropped,
        )?;
        out.refused_calls()?;
        let snapshot = shared.snapshot();
        let dispersion = snapshot.root_dispersion_at(shared.clock.now());
        out.gauge("ntp_system_stratum", "Stratum that is served", f64::from(snapshot.stratum))?;
        out.gauge(
            "ntp_system_leap_indicator",
            "Leap indicator that is served: 3 means not synchronised",
            f64::from(snapshot.leap.to_bits()),
        )?;
        out.gauge(
            "ntp_system_root_delay_seconds",
            "Round trip to the reference clock",
            snapshot.root_delay.as_nanos() as f64 / 1e9,
        )?;
        out.gauge(
            "ntp_system_root_dispersion_seconds",
            "Largest error with respect to the reference clock",
            dispersion.as_nanos() as f64 / 1e9,
        )?;
        let boot_ns = shared.clock.boot_ns();
        let ages = [("clock", shared.looked.load().age(boot_ns)), ("files", shared.files.age(boot_ns))];
        out.labelled_gauge(
            "ntp_heartbeat_age_seconds",
            "Since when a thread of the supervisor has not come round; the clock's state counts for 10 seconds",
            ages.map(|(thread, age)| ("thread", thread, age.as_secs_f64())),
        )?;
        out.gauge(
            "ntp_uptime_seconds",
            "Time since the server started",
            shared.started.elapsed().as_secs_f64(),
        )?;
        out.labelled_gauge(
            "ntp_build_info",
            "Always 1; the label says which version runs",
            [("version", env!("CARGO_PKG_VERSION"), 1.0)],
        )?;
        if let Some(symmetric) = &shared.symmetric {
            out.symmetric(symmetric)?;
        }
        if let Some(antp) = &shared.antp {
            out.antp(antp)?;
        }
        let Some(nts) = &shared.nts else { return Ok(()) };
        out.counter(
            "nts_ke_connections_accepted",
            "Key exchange connections accepted",
            nts.ke.accepted_count(),
        )?;
        out.counter(
            "nts_ke_accept_failures",
            "Times that the kernel had no descriptor or no memory for a key exchange connection",
            nts.ke.accept_failure_count(),
        )?;
        out.outcomes(
            "nts_ke_connections",
            "Key exchange connections by how they ended",
            KeOutcome::ALL.iter().map(|&outcome| (outcome.label(), nts.ke.of(outcome))),
        )?;
        out.gauge(
            "nts_ke_connections_open",
            "Key exchange connections open now",
            nts.ke.open_count() as f64,
        )?;
        out.gauge(
            "nts_ke_certificate_expiry_timestamp_seconds",
            "When the certificate ends, in Unix seconds",
            nts.certificate().not_after as f64,
        )?;
        let keys = nts.keys.keys.load();
        out.rotation(
            "nts_cookie_key",
            ["Cookie key", "cookies"],
            (keys.keys().count(), keys.rotated()),
            (&nts.keys.rotations, &nts.keys.rotation_failures),
        )
    }
}

/// The word for a suite in configuration and metrics.
const fn suite_word(suite: Suite) -> &'static str {
    match suite {
        Suite::P256 => "ecdh",
        Suite::RSA_PKCS1 => "rsa",
        Suite::RSA_OAEP => "rsa-oaep",
        Suite::X25519 => "x25519",
        Suite(_) => "other",
    }
}

struct Out<'e, 'a> {
    encoder: &'e mut DescriptorEncoder<'a>,
}

impl Out<'_, '_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> std::fmt::Result {
        ConstCounter::new(value).encode(self.encoder.encode_descriptor(
            name,
            help,
            None,
            MetricType::Counter,
        )?)
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> std::fmt::Result {
        ConstGauge::new(value).encode(self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }

    fn refused_calls(&mut self) -> std::fmt::Result {
        let name = "ntp_server_refused_system_calls";
        let help = "System calls that a thread of this kind has no business with, refused by its filter";
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for kind in Kind::ALL {
            let count = ConstCounter::new(kind.refused_count());
            count.encode(metric.encode_family(&[("thread", kind.name())])?)?;
        }
        Ok(())
    }

    fn outcomes<'s>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (&'s str, u64)>,
    ) -> std::fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (label, value) in values {
            ConstCounter::new(value).encode(metric.encode_family(&[("outcome", label)])?)?;
        }
        Ok(())
    }

    fn antp(&mut self, antp: &AntpState) -> std::fmt::Result {
        let exchanges = &antp.exchanges;
        let (depth, room) = exchanges.depth();
        self.gauge(
            "antp_key_exchanges_waiting",
            "Key exchanges that wait for a public-key thread",
            depth as f64,
        )?;
        self.gauge("antp_key_exchanges_waiting_limit", "How many may wait; more are refused", room as f64)?;
        self.counter(
            "antp_key_exchanges_refused",
            "Key exchanges that were refused because too many waited",
            exchanges.refused_count(),
        )?;
        self.counter(
            "antp_key_exchange_send_errors",
            "Answers to key exchanges that the kernel refused to send",
            exchanges.send_failures(),
        )?;
        let (name, help) = ("antp_key_exchanges", "Key exchanges of the public-key threads by suite and end");
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (index, suite) in Suite::ALL.into_iter().enumerate() {
            for &outcome in ExchangeOutcome::ALL {
                let labels = [("suite", suite_word(suite)), ("outcome", outcome.label())];
                ConstCounter::new(exchanges.ended(outcome, index)).encode(metric.encode_family(&labels)?)?;
            }
        }
        self.labelled_gauge(
            "antp_certificate_expiry_timestamp_seconds",
            "When the certificate of a suite ends, in Unix seconds",
            antp.loaded
                .load()
                .certificates
                .iter()
                .map(|(suite, certificate)| ("suite", suite_word(*suite), certificate.not_after as f64)),
        )?;
        let keys = antp.keys.keys.load();
        self.rotation(
            "antp_state_key",
            ["State key", "state"],
            (keys.keys().count(), keys.rotated()),
            (&antp.keys.rotations, &antp.keys.rotation_failures),
        )
    }

    /// How many keys of a kind there are and how they take turns. `words`: one key in prose, at the start of a
    /// sentence, and what it opens; `keys`: how many there are, and when the current one began to seal, in Unix
    /// seconds; `turns`: rotations that were made, and those that failed.
    fn rotation(
        &mut self,
        prefix: &str,
        words: [&str; 2],
        keys: (usize, u64),
        turns: (&AtomicU64, &AtomicU64),
    ) -> std::fmt::Result {
        let ([kind, opened], (count, rotated), (made, failed)) = (words, keys, turns);
        let key = kind.to_lowercase();
        self.gauge(&format!("{prefix}s"), &format!("{kind}s that open {opened}"), count as f64)?;
        self.gauge(
            &format!("{prefix}_rotated_timestamp_seconds"),
            &format!("When the current {key} began to seal, in Unix seconds"),
            rotated as f64,
        )?;
        self.counter(
            &format!("{prefix}_rotations"),
            &format!("Rotations of the {key}s"),
            made.load(Ordering::Relaxed),
        )?;
        self.counter(
            &format!("{prefix}_rotation_failures"),
            "Rotations that failed, for example on a full disk; the old keys stay in force",
            failed.load(Ordering::Relaxed),
        )
    }

    fn symmetric(&mut self, symmetric: &SymmetricState) -> std::fmt::Result {
        let all = symmetric.shown();
        self.gauge("ntp_symmetric_keys", "Symmetric keys in force", all.len() as f64)?;
        self.counter(
            "ntp_symmetric_key_reload_failures",
            "Times that the key file could not be read again; the old keys stay in force",
            symmetric.reload_failures.load(Ordering::Relaxed),
        )?;
        // Thousands of keys make a long page: then only those are on it that somebody has named.
        let is_named = |key: &Shown| key.counts.answered + key.counts.wrong_tags + key.counts.not_allowed > 0;
        let few = all.len() <= SHOWN_KEY_COUNT_MAX;
        let keys: Vec<Shown> =
            all.into_iter().filter(|key| few || is_named(key)).take(SHOWN_KEY_COUNT_MAX).collect();
        self.per_key(&keys, MetricType::Counter, "requests", "Requests that named the key", |key| {
            Some(key.counts.answered + key.counts.wrong_tags + key.counts.not_allowed)
        })?;
        self.per_key(&keys, MetricType::Counter, "answers", "Answers under the key", |key| {
            Some(key.counts.answered)
        })?;
        self.per_key(
            &keys,
            MetricType::Counter,
            "wrong_tags",
            "Requests that named the key and whose tag was wrong",
            |key| Some(key.counts.wrong_tags),
        )?;
        self.per_key(
            &keys,
            MetricType::Counter,
            "not_allowed",
            "Requests that named the key while its algorithm is not allowed",
            |key| Some(key.counts.not_allowed),
        )?;
        self.per_key(
            &keys,
            MetricType::Gauge,
            "uses",
            "Tags made under the key by clients and by this server, those before its start included",
            |key| Some(key.uses),
        )?;
        self.per_key(
            &keys,
            MetricType::Gauge,
            "uses_limit",
            "Uses after which the key should be another one",
            |key| key.limit,
        )?;
        self.per_key(
            &keys,
            MetricType::Gauge,
            "retires_timestamp_seconds",
            "From when on the key is not accepted any more, in Unix seconds",
            |key| key.retires,
        )
    }

    fn per_key(
        &mut self,
        keys: &[Shown],
        kind: MetricType,
        name: &str,
        help: &str,
        value: impl Fn(&Shown) -> Option<u64>,
    ) -> std::fmt::Result {
        let name = format!("ntp_symmetric_key_{name}");
        let mut metric = self.encoder.encode_descriptor(&name, help, None, kind)?;
        for key in keys {
            let Some(value) = value(key) else { continue };
            let labels = [("key", key.id.to_string()), ("type", key.name.to_owned())];
            let metric = metric.encode_family(&labels)?;
            match kind {
                MetricType::Counter => ConstCounter::new(value).encode(metric)?,
                _ => ConstGauge::new(value as f64).encode(metric)?,
            }
        }
        Ok(())
    }

    fn labelled_gauge<'s>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (&'s str, &'s str, f64)>,
    ) -> std::fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (label, text, value) in values {
            ConstGauge::new(value).encode(metric.encode_family(&[(label, text)])?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_begins_where_the_query_says() {
        assert_eq!(position(""), Some(Position::default()));
        assert_eq!(position("ke=7&ntp=9"), Some(Position { ntp: 9, ke: 7 }));
        for query in ["ntp", "ntp=", "ntp=-1", "other=1", "ntp=1&x"] {
            assert_eq!(position(query), None, "{query}");
        }
    }
}
