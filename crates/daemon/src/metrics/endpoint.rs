//! HTTP endpoints: `/metrics` for Prometheus, `/spans` for timed requests, `/healthz` and `/readyz` for probes.
//!
//! The endpoint of metrics has all of them, that of health (`[health] listen`) only the last two. Each has a thread, an
//! event loop and descriptors of its own, so readers of metrics do not delay probes. On a full endpoint a newcomer has
//! the place of the oldest connection that has sent no request, else of the oldest one.
//!
//! What is held for readers is bounded: a page of metrics is made at most four times a second and shared by those that
//! wait for it, and timed requests are written piece by piece as their reader takes them. What stands on the page of
//! metrics is in [`super::page`].

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use authentick_net::tcp::PendingListener;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::page::NodeMetrics;
use super::spans::{Kept, Position, Reading};
use crate::health;
use crate::shared::Shared;

/// Connections of an endpoint at once.
pub(crate) const READER_COUNT_MAX: usize = 16;
/// How often timed requests are collected, and how long to wait after a descriptor was refused.
const COLLECT_INTERVAL: Duration = Duration::from_millis(250);
/// Pages of metrics in a second, at most.
const PAGE_COUNT_MAX: usize = 4;
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long after a failure an endpoint is set up again: its port is taken, or there are no descriptors.
const RETRY: Duration = Duration::from_millis(500);

/// Serves HTTP until stopped.
pub(crate) struct Endpoint {
    listener: PendingListener,
    scope: Scope,
    pages: Arc<Pages>,
}

/// Which pages an endpoint has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All.
    Metrics,
    /// Only those for probes.
    Health,
}

/// Bounds of one connection.
#[derive(Clone, Copy)]
struct Bounds {
    /// From accepting it to its end.
    timeout: Duration,
    header_timeout: Duration,
    /// Octets that are read, over all requests.
    received_size_max: u64,
    keep_alive: bool,
}

impl Scope {
    /// Name of its thread.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Scope::Metrics => "metrics",
            Scope::Health => "health",
        }
    }

    const fn first_page(self) -> &'static str {
        match self {
            Scope::Metrics => "/metrics",
            Scope::Health => "/healthz",
        }
    }

    const fn bounds(self) -> Bounds {
        match self {
            Scope::Metrics => Bounds {
                timeout: Duration::from_secs(30),
                header_timeout: Duration::from_secs(5),
                received_size_max: 1 << 20,
                keep_alive: true,
            },
            // A probe waits for a second by default.
            Scope::Health => Bounds {
                timeout: Duration::from_secs(1),
                header_timeout: Duration::from_secs(1),
                received_size_max: 4 * 1024,
                keep_alive: false,
            },
        }
    }
}

impl Endpoint {
    pub(crate) fn new(listener: PendingListener, shared: Arc<Shared>, scope: Scope) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(NodeMetrics(Arc::clone(&shared))));
        let (kept, metrics) = (Mutex::default(), tokio::sync::Mutex::default());
        Endpoint { listener, scope, pages: Arc::new(Pages { shared, scope, registry, metrics, kept }) }
    }

    /// Serves until `stop` is dropped or fires. What keeps it from serving is logged once, and tried again: no state of
    /// this endpoint ends the server.
    pub(crate) fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut is_told = self.listener.local().is_none();
        let mut was_listening = !is_told;
        loop {
            let result = self.listener.listen();
            if let (Some(local), false) = (self.listener.local(), was_listening) {
                log::info!("showing {} on http://{local}{}", self.scope.name(), self.scope.first_page());
                (was_listening, is_told) = (true, false);
            }
            let Err(error) = result.and_then(|()| self.serve(&mut stop)) else { return };
            if !is_told {
                log::error!("no {}: {error}; tried again every {} ms", self.scope.name(), RETRY.as_millis());
                is_told = true;
            }
            if stop.try_recv() != Err(TryRecvError::Empty) {
                return;
            }
            std::thread::sleep(RETRY);
        }
    }

    fn serve(&self, stop: &mut oneshot::Receiver<()>) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener.listener()?)?;
            let collecting = collect(Arc::clone(&self.pages), self.scope);
            tokio::select! {
                () = accept(listener, self.scope.bounds(), Arc::clone(&self.pages)) => Ok(()),
                () = collecting => Ok(()),
                _ = stop => Ok(()),
            }
        })
    }
}

async fn collect(pages: Arc<Pages>, scope: Scope) {
    match scope {
        Scope::Health => std::future::pending().await,
        Scope::Metrics => loop {
            pages.collect();
            tokio::time::sleep(COLLECT_INTERVAL).await;
        },
    }
}

/// A connection.
struct Reader {
    task: JoinHandle<()>,
    has_asked: Arc<AtomicBool>,
}

async fn accept(listener: tokio::net::TcpListener, bounds: Bounds, pages: Arc<Pages>) {
    // The oldest in front.
    let mut readers: VecDeque<Reader> = VecDeque::with_capacity(READER_COUNT_MAX);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, for example: try again a little later.
            tokio::time::sleep(COLLECT_INTERVAL).await;
            continue;
        };
        readers.retain(|reader| !reader.task.is_finished());
        if readers.len() >= READER_COUNT_MAX {
            let has_not_asked = |reader: &Reader| !reader.has_asked.load(Ordering::Relaxed);
            let index = readers.iter().position(has_not_asked).unwrap_or(0);
            if let Some(reader) = readers.remove(index) {
                reader.task.abort();
                // Its descriptor is free before another one is used.
                let _ = reader.task.await;
            }
        }
        let has_asked = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(serve(stream, bounds, Arc::clone(&pages), Arc::clone(&has_asked)));
        readers.push_back(Reader { task, has_asked });
    }
}

async fn serve(stream: TcpStream, bounds: Bounds, pages: Arc<Pages>, has_asked: Arc<AtomicBool>) {
    let service = service_fn(move |request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        let pages = Arc::clone(&pages);
        async move { Ok::<_, Infallible>(pages.response(&request).await) }
    });
    let (received, sent) = stream.into_split();
    let stream = tokio::io::join(received.take(bounds.received_size_max), sent);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.header_timeout)
        .keep_alive(bounds.keep_alive)
        // The least that the library takes.
        .max_buf_size(8 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    // A reader that closes early or is too slow is not our problem.
    let _ = tokio::time::timeout(bounds.timeout, connection).await;
}

/// The source of all pages.
struct Pages {
    shared: Arc<Shared>,
    scope: Scope,
    registry: Registry,
    /// Held by the one that makes a page while others wait to share it.
    metrics: tokio::sync::Mutex<MetricsPage>,
    /// Only this thread and its readers, one at a time, look at timed requests.
    kept: Mutex<Kept>,
}

/// The newest page of metrics.
#[derive(Default)]
struct MetricsPage {
    /// When the last pages were made, the newest at the end.
    made: VecDeque<Instant>,
    text: Bytes,
}

impl MetricsPage {
    /// When another page may be made.
    fn next(&self) -> Option<Instant> {
        self.made
            .front()
            .filter(|_| self.made.len() >= PAGE_COUNT_MAX)
            .map(|&first| first + Duration::from_secs(1))
    }

    fn put(&mut self, text: Bytes, now: Instant) {
        if self.made.len() >= PAGE_COUNT_MAX {
            self.made.pop_front();
        }
        self.made.push_back(now);
        self.text = text;
    }
}

impl Pages {
    fn collect(&self) {
        if let Some(ring) = &self.shared.spans {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).collect(ring);
        }
    }

    /// A page that was made after this was called; `None` if it cannot be encoded.
    async fn metrics(&self) -> Option<Bytes> {
        let asked = Instant::now();
        let mut page = self.metrics.lock().await;
        if page.made.back().is_some_and(|&made| made >= asked) {
            return Some(page.text.clone());
        }
        if let Some(next) = page.next() {
            tokio::time::sleep_until(next).await;
        }
        let now = Instant::now();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).ok()?;
        page.put(text.into(), now);
        Some(page.text.clone())
    }

    async fn response(self: Arc<Self>, request: &Request<Incoming>) -> Response<Page> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are served here\n");
        }
        match (request.uri().path(), self.scope) {
            ("/healthz", _) => state(&health::ailments(&self.shared), &[]),
            ("/readyz", _) => state(&health::obstacles(&self.shared), &health::notes(&self.shared)),
            ("/metrics", Scope::Metrics) => match self.metrics().await {
                Some(page) => response(StatusCode::OK, OPENMETRICS, Page::Whole(Some(page))),
                None => text(StatusCode::INTERNAL_SERVER_ERROR, "cannot encode\n"),
            },
            ("/spans", Scope::Metrics) => self.spans(request.uri().query().unwrap_or("")),
            (_, Scope::Metrics) => {
                text(StatusCode::NOT_FOUND, "see /metrics, /healthz, /readyz and /spans\n")
            }
            (_, Scope::Health) => text(StatusCode::NOT_FOUND, "see /healthz and /readyz\n"),
        }
    }

    fn spans(self: Arc<Self>, query: &str) -> Response<Page> {
        let Some(ring) = &self.shared.spans else {
            return text(StatusCode::NOT_FOUND, NO_SPANS);
        };
        let Some(from) = position(query) else {
            return text(StatusCode::BAD_REQUEST, SPANS_USAGE);
        };
        self.collect();
        let reading = self.kept.lock().unwrap_or_else(PoisonError::into_inner).reading(ring, from);
        let mut response = response(StatusCode::OK, "application/json", Page::Spans(reading, self));
        // Its length is not known before: it ends with the connection, for readers without chunks.
        *response.version_mut() = Version::HTTP_10;
        response
    }
}

/// The body of a response.
enum Page {
    /// In one piece, until it is taken.
    Whole(Option<Bytes>),
    /// Timed requests, in pieces that are made when they are taken.
    Spans(Reading, Arc<Pages>),
}

impl Body for Page {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match self.get_mut() {
            Page::Whole(text) => text.take(),
            Page::Spans(reading, pages) => {
                reading.next(&pages.kept.lock().unwrap_or_else(PoisonError::into_inner)).map(Bytes::from)
            }
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Page::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Page::Whole(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Page::Spans(..) => SizeHint::default(),
        }
    }
}

/// What is wrong, and then what is to be looked at, a line each; 503 if anything is wrong.
fn state(wrong: &[String], notes: &[String]) -> Response<Page> {
    let ok = ["ok".to_owned()];
    let (status, lines) = match wrong {
        [] => (StatusCode::OK, &ok[..]),
        lines => (StatusCode::SERVICE_UNAVAILABLE, lines),
    };
    let text: String = lines.iter().chain(notes).map(|line| format!("{line}\n")).collect();
    response(status, "text/plain", Page::Whole(Some(text.into())))
}

const NO_SPANS: &str = "no requests are timed; name clients in [metrics] span-clients\n";
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

fn text(status: StatusCode, text: &'static str) -> Response<Page> {
    response(status, "text/plain", Page::Whole(Some(Bytes::from_static(text.as_bytes()))))
}

fn response(status: StatusCode, kind: &'static str, page: Page) -> Response<Page> {
    let mut response = Response::new(page);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
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

    #[test]
    fn fifth_page_of_a_second_waits_for_its_end() {
        let (mut page, start) = (MetricsPage::default(), Instant::now());
        for number in 0..4 {
            assert_eq!(page.next(), None);
            page.put(Bytes::new(), start + Duration::from_millis(number));
        }
        assert_eq!(page.next(), Some(start + Duration::from_secs(1)));
        page.put(Bytes::new(), start + Duration::from_secs(1));
        assert_eq!(page.next(), Some(start + Duration::from_millis(1001)));
    }
}
