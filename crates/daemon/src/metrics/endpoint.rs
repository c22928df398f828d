//! The endpoint: `GET /metrics` for Prometheus, `GET /healthz` and `GET /readyz` for who starts servers and sends
//! clients to them, `GET /spans` for timed requests.
//!
//! One thread with an event loop of its own; a slow reader costs nobody else anything. What stands on the page of
//! metrics is in [`super::page`].

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use authentick_net::tcp::PendingListener;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, oneshot};

use super::page::NodeMetrics;
use super::spans::{Kept, Position};
use crate::health;
use crate::shared::Shared;

/// Readers at once; more wait for their turn in the kernel's queue.
pub(crate) const READER_COUNT_MAX: usize = 16;
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
const COLLECT_INTERVAL: Duration = Duration::from_millis(250);
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long after a failure the endpoint is set up again: its port is taken, or there are no descriptors.
const RETRY: Duration = Duration::from_millis(500);

/// Serves metrics until stopped.
pub(crate) struct Exporter {
    listener: PendingListener,
    answers: Arc<Answers>,
}

/// What readers are answered from.
struct Answers {
    shared: Arc<Shared>,
    registry: Registry,
    /// Only this thread and its readers, one at a time, look at timed requests.
    kept: Mutex<Kept>,
}

impl Exporter {
    pub(crate) fn new(listener: PendingListener, shared: Arc<Shared>) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(NodeMetrics(Arc::clone(&shared))));
        Exporter { listener, answers: Arc::new(Answers { shared, registry, kept: Mutex::default() }) }
    }

    /// Serves until `stop` is dropped or fires. What keeps it from serving is logged once, and tried again: no state of
    /// this endpoint ends the server.
    pub(crate) fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut is_told = self.listener.local().is_none();
        let mut was_listening = !is_told;
        loop {
            let result = self.listener.listen();
            if let (Some(local), false) = (self.listener.local(), was_listening) {
                log::info!("showing metrics on http://{local}/metrics");
                (was_listening, is_told) = (true, false);
            }
            let Err(error) = result.and_then(|()| self.serve(&mut stop)) else { return };
            if !is_told {
                log::error!("no metrics: {error}; tried again every {} ms", RETRY.as_millis());
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
            let readers = Arc::new(Semaphore::new(READER_COUNT_MAX));
            let collecting = collect(Arc::clone(&self.answers));
            tokio::select! {
                result = accept(listener, readers, Arc::clone(&self.answers)) => result,
                () = collecting => Ok(()),
                _ = stop => Ok(()),
            }
        })
    }
}

async fn collect(answers: Arc<Answers>) {
    loop {
        answers.collect();
        tokio::time::sleep(COLLECT_INTERVAL).await;
    }
}

async fn accept(
    listener: tokio::net::TcpListener,
    readers: Arc<Semaphore>,
    answers: Arc<Answers>,
) -> std::io::Result<()> {
    loop {
        let permit = Arc::clone(&readers).acquire_owned().await.map_err(std::io::Error::other)?;
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, for example: try again a little later.
            tokio::time::sleep(COLLECT_INTERVAL).await;
            continue;
        };
        let answers = Arc::clone(&answers);
        tokio::spawn(async move {
            let _permit = permit;
            let service = service_fn(move |request| {
                let response = answers.to(&request);
                async { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .max_buf_size(16 * 1024)
                .serve_connection(TokioIo::new(stream), service);
            // A reader that closes early or is too slow is not our problem.
            let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
        });
    }
}

impl Answers {
    fn collect(&self) {
        if let Some(ring) = &self.shared.spans {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).collect(ring);
        }
    }

    fn to(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let text = |status, text: &str| response(status, "text/plain", text.to_owned());
        if request.method() != Method::GET {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is served here\n");
        }
        let cannot_encode = || text(StatusCode::INTERNAL_SERVER_ERROR, "cannot encode\n");
        match request.uri().path() {
            "/metrics" => {
                let mut page = String::new();
                match prometheus_client::encoding::text::encode(&mut page, &self.registry) {
                    Ok(()) => response(StatusCode::OK, OPENMETRICS, page),
                    Err(_) => cannot_encode(),
                }
            }
            "/spans" => {
                let Some(ring) = &self.shared.spans else {
                    return text(StatusCode::NOT_FOUND, NO_SPANS);
                };
                let Some(from) = position(request.uri().query().unwrap_or("")) else {
                    return text(StatusCode::BAD_REQUEST, SPANS_USAGE);
                };
                self.collect();
                let records = self.kept.lock().unwrap_or_else(PoisonError::into_inner).records(ring, from);
                match serde_json::to_string(&records) {
                    Ok(page) => response(StatusCode::OK, "application/json", page),
                    Err(_) => cannot_encode(),
                }
            }
            "/healthz" => state(&health::ailments(&self.shared), &[]),
            "/readyz" => state(&health::obstacles(&self.shared), &health::notes(&self.shared)),
            _ => text(StatusCode::NOT_FOUND, "see /metrics, /healthz, /readyz and /spans\n"),
        }
    }
}

/// What is wrong, and then what is to be looked at, a line each; 503 if anything is wrong.
fn state(wrong: &[String], notes: &[String]) -> Response<Full<Bytes>> {
    let ok = ["ok".to_owned()];
    let (status, lines) = match wrong {
        [] => (StatusCode::OK, &ok[..]),
        lines => (StatusCode::SERVICE_UNAVAILABLE, lines),
    };
    let text = lines.iter().chain(notes).map(|line| format!("{line}\n")).collect();
    response(status, "text/plain", text)
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

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
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
}
