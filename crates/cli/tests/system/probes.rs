//! Probes and readers of metrics, beside readers that are idle, slow or many.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::lab::{Lab, Server, start};

/// How long a probe of Kubernetes waits unless its manifest says otherwise.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// A server with an endpoint of health, and where that is.
fn serve(lab: &Lab) -> (Server, SocketAddr) {
    let mut server = start(&lab.config("", "[health]\nlisten = \"127.0.0.1:0\""));
    let health = server.process.wait_for_line("answering probes on http://");
    (server, health.trim_end_matches("/healthz").parse().unwrap())
}

/// The response to a request, all of it within `timeout`.
fn ask(address: SocketAddr, request: &str, timeout: Duration) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    write!(stream, "{request}\r\nHost: test\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

/// So many connections, each of which has said `words`.
fn hold(address: SocketAddr, count: usize, words: &str) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(address).unwrap();
        // The server may have closed it for a newer one.
        let _ = stream.write_all(words.as_bytes());
        stream
    };
    (0..count).map(connect).collect()
}

#[test]
fn head_and_http_1_0_are_answered_by_both_endpoints() {
    let lab = Lab::new();
    let (server, health) = serve(&lab);
    for (address, path) in [
        (server.metrics, "/metrics"),
        (server.metrics, "/spans"),
        (server.metrics, "/healthz"),
        (health, "/readyz"),
    ] {
        let head = ask(address, &format!("HEAD {path} HTTP/1.1"), Duration::from_secs(10)).unwrap();
        assert!(head.contains(" 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{path}: {head}");
        let old = ask(address, &format!("GET {path} HTTP/1.0"), Duration::from_secs(10)).unwrap();
        assert!(old.starts_with("HTTP/1.0 200 OK\r\n") && !old.ends_with("\r\n\r\n"), "{path}: {old}");
        let post = ask(address, &format!("POST {path} HTTP/1.1"), Duration::from_secs(10)).unwrap();
        assert!(post.contains(" 405 "), "{path}: {post}");
    }
    let other = ask(health, "GET /metrics HTTP/1.1", Duration::from_secs(10)).unwrap();
    assert!(other.contains(" 404 "), "{other}");
    let long = format!("GET /healthz HTTP/1.1\r\nX-Long: {}", "x".repeat(6000));
    let refused = ask(health, &long, Duration::from_secs(10)).unwrap_or_default();
    assert!(!refused.contains(" 200 "), "{refused}");
}

#[test]
fn probe_beside_readers_of_metrics_is_answered_within_a_second() {
    let lab = Lab::new();
    let (server, health) = serve(&lab);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let idle = hold(server.metrics, 200, "");
        let slow = hold(server.metrics, 200, "GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let next = Instant::now() + Duration::from_micros(500);
                let _ = TcpStream::connect(server.metrics);
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        });
        for number in 0..30 {
            let answered = ask(health, "GET /healthz HTTP/1.1", PROBE_TIMEOUT);
            if answered.as_ref().map_or(true, |response| !response.starts_with("HTTP/1.1 200 ")) {
                stop.store(true, Ordering::Relaxed);
                panic!("probe {number}: {answered:?}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
        drop((idle, slow));
    });
}

#[test]
fn newcomer_takes_the_place_of_an_idle_reader() {
    let lab = Lab::new();
    let (server, health) = serve(&lab);
    for address in [server.metrics, health] {
        for (count, words) in [(16, ""), (80, ""), (16, "GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n")] {
            let held = hold(address, count, words);
            let answered = ask(address, "GET /healthz HTTP/1.1", PROBE_TIMEOUT);
            assert!(answered.is_ok_and(|response| response.contains(" 200 ")), "{address} {count} {words:?}");
            drop(held);
        }
    }
}

fn resident_kib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn slow_readers_of_spans_hold_little_memory() {
    let lab = Lab::new();
    let (server, _) = serve(&lab);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(server.ntp).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut request = [0; 48];
    request[0] = 0x23;
    for number in 0..20_000 {
        client.send(&request).unwrap();
        // A lost one is a record less.
        let _ = client.recv(&mut [0; 64]);
        if number % 2000 == 0 {
            // Has them collected before the ring is full.
            let _ = server.get("/spans?ntp=1000000");
        }
    }
    let whole = server.get("/spans");
    let shown: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let count = shown["ntp"].as_array().unwrap().len();
    assert!(count >= 15_000 && whole.len() > 400 * count, "{count} in {} octets", whole.len());
    let before = resident_kib(&server);
    let held = hold(server.metrics, 16, "GET /spans HTTP/1.1\r\nHost: test\r\n\r\n");
    // The first octets have come, so the page has been begun.
    for mut stream in &held {
        stream.read_exact(&mut [0; 12]).unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
    let grown = resident_kib(&server).saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB more for sixteen readers of {} octets each", whole.len());
    drop(held);
}
