//! Paths with a delay, loss and a rate, as UDP and TCP meet them.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::relay::{Link, Path};
use authentick_lab::servers::make_room;
use authentick_lab::skip::skip;
use authentick_rig::echo;
use authentick_rig::rounds::Transport;

const MS: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(10);

/// Tests that measure time run one after another.
static ALONE: Mutex<()> = Mutex::new(());

fn hosts() -> Option<(Hosts, MutexGuard<'static, ()>)> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Hosts::new(1).map_err(|skip| skip.tell()).ok().map(|hosts| (hosts, alone))
}

fn lay(hosts: &Hosts, there: Link, back: Link, seed: u64) -> Option<Path> {
    Path::new(hosts, 0, there, back, seed).map_err(|skip| skip.tell()).ok()
}

fn bind(hosts: &Hosts, host: Host, address: IpAddr) -> UdpSocket {
    let socket = hosts.within(host, || UdpSocket::bind(SocketAddr::new(address, 0))).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A UDP echo on the server's end of a path and a socket connected to it on the client's.
fn pair(hosts: &Hosts, server: IpAddr, client: IpAddr) -> (UdpSocket, UdpSocket) {
    let server = bind(hosts, Host::Server, server);
    let client = bind(hosts, Host::Client(0), client);
    client.connect(server.local_addr().unwrap()).unwrap();
    server.connect(client.local_addr().unwrap()).unwrap();
    // The usual room is for 256 small datagrams: 100 Mbit/s bring as many in 2 ms.
    make_room(&server);
    (server, client)
}

#[test]
fn exchange_over_20_ms_each_way_takes_40_ms_over_both_families() {
    let Some((hosts, _alone)) = hosts() else { return };
    let Some(path) = lay(&hosts, Link::delayed(20 * MS), Link::delayed(20 * MS), 1) else { return };
    let addresses = [
        (path.server_address(), path.client_address()),
        (path.server_address_v6(), path.client_address_v6()),
    ];
    for (server, client) in addresses {
        let (server, client) = pair(&hosts, server, client);
        let mut times = Vec::new();
        let begun = Instant::now();
        while times.len() < 21 || times.iter().min() > Some(&(42 * MS)) && begun.elapsed() < PATIENCE {
            let (start, mut buffer) = (Instant::now(), [0; 48]);
            client.send(&[1; 48]).unwrap();
            server.recv(&mut buffer).unwrap();
            server.send(&buffer).unwrap();
            client.recv(&mut buffer).unwrap();
            times.push(start.elapsed());
        }
        times.sort_unstable();
        // Never earlier. What else runs on this machine makes most of them later, and one is in time.
        assert!(times[0] >= 40 * MS, "{times:?}");
        assert!(times[0] < 42 * MS, "{times:?}");
    }
}

/// The NTS study's path: its capture shows round trips of 0.12 ms.
#[test]
fn exchange_over_60_us_each_way_takes_120_us_and_what_was_added_is_told() {
    const ROUND_TRIP: Duration = Duration::from_micros(120);
    const COUNT: u32 = 201;
    let Some((hosts, _alone)) = hosts() else { return };
    let one_way = || Link::delayed(ROUND_TRIP / 2);
    let Some(path) = lay(&hosts, one_way(), one_way(), 6) else { return };
    let addresses = [path.client_address(), path.server_address()];
    let dropped = path.dropped(&hosts).unwrap();
    let times = echo::exchanges(&hosts, 0, addresses, COUNT as usize, Duration::ZERO).unwrap();
    assert_eq!(times.len(), COUNT as usize, "{times:?}");
    assert!(times[0] >= ROUND_TRIP, "{times:?}");
    let (there, back) = (path.there(), path.back());
    let rest = times.iter().sum::<Duration>() - COUNT * ROUND_TRIP;
    for traffic in [there, back] {
        assert!(traffic.passed >= COUNT.into() && traffic.late_max <= traffic.late, "{traffic:?}");
        assert!(traffic.late_mean().unwrap() <= traffic.late_max, "{traffic:?}");
    }
    // What the kernel sent by itself at the beginning may have been late too.
    let others = (there.passed + back.passed - 2 * u64::from(COUNT)) as u32;
    assert!(
        there.late + back.late <= rest + others * there.late_max.max(back.late_max),
        "{there:?} {back:?} {rest:?}"
    );
    assert_eq!(path.dropped(&hosts).unwrap(), dropped);
    echo::cost(&hosts, 0, 21, Duration::ZERO).unwrap();
    // Over a path that loses everything nothing is measured.
    let path = lay(&hosts, Link::default().with_loss(1_000_000), Link::default(), 8).unwrap();
    let addresses = [path.client_address(), path.server_address()];
    assert!(echo::exchanges(&hosts, 0, addresses, 1, MS).unwrap().is_empty());
}

/// TCP's handshake, a question that is asked in two pieces, and UDP beside it: what passes at the client's end is
/// counted, whatever the path loses.
#[test]
fn round_trips_are_counted_over_a_path_that_loses_packets() {
    let Some((hosts, _alone)) = hosts() else { return };
    let link = || Link::delayed(2 * MS).with_loss(50_000);
    let Some(path) = lay(&hosts, link(), link(), 7) else { return };
    let listener = hosts.within(Host::Server, || TcpListener::bind((path.server_address(), 0))).unwrap();
    let address = listener.local_addr().unwrap();
    path.count_round_trips();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 6000];
        while stream.read_exact(&mut buffer[..2]).is_ok() {
            stream.write_all(&buffer).unwrap();
        }
    });
    let mut stream =
        hosts.within(Host::Client(0), || TcpStream::connect_timeout(&address, PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for _ in 0..20 {
        stream.write_all(&[1]).unwrap();
        stream.write_all(&[2]).unwrap();
        stream.read_exact(&mut [0; 6000]).unwrap();
    }
    let (echo, client) = pair(&hosts, path.server_address_v6(), path.client_address_v6());
    let target = echo.local_addr().unwrap();
    client.send(&[1; 48]).unwrap();
    drop(stream);
    server.join().unwrap();
    let trips = path.round_trips();
    let of_tcp: Vec<_> = trips.towards(Transport::Tcp, address.port()).collect();
    assert_eq!(of_tcp.len(), 1);
    assert_eq!((of_tcp[0].0.server, of_tcp[0].1.round_trips), (address, 21), "{of_tcp:?}");
    let of_udp: Vec<_> = trips.towards(Transport::Udp, target.port()).collect();
    assert_eq!((of_udp[0].1.round_trips, of_udp[0].1.from_client), (0, 1), "nobody answered");
    assert!(path.there().lost + path.back().lost > 0);
}

#[test]
fn delays_of_both_directions_are_their_own_and_jitter_varies() {
    let Some((hosts, _alone)) = hosts() else { return };
    let Some(path) = lay(&hosts, Link::delayed(30 * MS).with_jitter(20 * MS), Link::default(), 2) else {
        return;
    };
    let (server, client) = pair(&hosts, path.server_address(), path.client_address());
    let times = |from: &UdpSocket, to: &UdpSocket| {
        let time = |_| {
            let start = Instant::now();
            from.send(&[1; 48]).unwrap();
            to.recv(&mut [0; 48]).unwrap();
            start.elapsed()
        };
        let mut times: Vec<Duration> = (0..31).map(time).collect();
        times.sort_unstable();
        times
    };
    let (there, back) = (times(&client, &server), times(&server, &client));
    assert!(there[0] >= 30 * MS && there[15] < 50 * MS, "{there:?}");
    assert!(there[25] - there[5] > 6 * MS, "{there:?}");
    assert!(back[15] < 2 * MS, "{back:?}");
}

#[test]
fn one_in_ten_is_lost_and_counted() {
    let Some((hosts, _alone)) = hosts() else { return };
    let Some(path) = lay(&hosts, Link::default().with_loss(100_000), Link::default(), 3) else { return };
    let (server, client) = pair(&hosts, path.server_address(), path.client_address());
    let before = path.there();
    let receiver = std::thread::spawn(move || {
        let (mut count, mut buffer) = (0, [0; 48]);
        // The last datagrams say that it is over; one of them will pass.
        while server.recv(&mut buffer).unwrap() == 48 {
            count += 1;
        }
        count
    });
    for index in 0..2000 {
        client.send(&[1; 48]).unwrap();
        if index % 50 == 49 {
            std::thread::sleep(MS);
        }
    }
    let wait = Instant::now();
    while path.there().offered < before.offered + 2000 {
        assert!(wait.elapsed() < PATIENCE, "{:?}", path.there());
        std::thread::sleep(MS);
    }
    let traffic = path.there();
    for _ in 0..10 {
        client.send(&[1; 4]).unwrap();
    }
    let received: u64 = receiver.join().unwrap();
    // 1800 within four standard deviations of sqrt(2000 * 0.1 * 0.9).
    assert!(received.abs_diff(1800) < 54, "{received}");
    assert_eq!(received + traffic.lost - before.lost, 2000);
    assert_eq!(traffic.passed + traffic.lost, traffic.offered);
}

#[test]
fn tcp_transfer_passes_whole_over_a_lossy_path_with_a_rate() {
    let Some((hosts, _alone)) = hosts() else { return };
    let link = || Link::limited(100_000_000, 20 * MS).with_delay(2 * MS).with_loss(2000);
    let Some(path) = lay(&hosts, link(), link(), 4) else { return };
    let listener = hosts.within(Host::Server, || TcpListener::bind((path.server_address(), 0))).unwrap();
    let address = listener.local_addr().unwrap();
    let sent: Vec<u8> = (0..2_000_000u32).map(|index| (index % 251) as u8).collect();
    let expected = sent.clone();
    let sender = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&sent).unwrap();
    });
    let start = Instant::now();
    let mut stream =
        hosts.within(Host::Client(0), || TcpStream::connect_timeout(&address, PATIENCE)).unwrap();
    // A handshake is a round trip.
    assert!(start.elapsed() >= 4 * MS);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    assert!(received == expected, "{} octets", received.len());
    // 16 Mbit and headers take 160 ms at this rate.
    assert!(start.elapsed() > 160 * MS, "{:?}", start.elapsed());
}

/// A flood is measured again if the machine was too busy to make it one; more than the rate never passes.
#[test]
fn flood_of_48_octets_passes_a_link_at_the_rate_of_its_frames() {
    for (rate_bps, is_slow) in [(20_000_000, true), (100_000_000, false)] {
        let Some((hosts, _alone)) = hosts() else { return };
        let start = Instant::now();
        let Some(path) = lay(&hosts, Link::limited(rate_bps, 100 * MS), Link::default(), 5) else { return };
        let expected = Link::packets_per_second(rate_bps, 48 + 28);
        let shares: Vec<f64> = (0..8)
            .map(|_| flood(&hosts, &path, 1.2 * expected) / expected)
            .inspect(|_| {
                let (passed, time) = (path.there().passed as f64, start.elapsed());
                assert!(passed <= 1.0 + expected * time.as_secs_f64(), "{passed} in {time:?}");
            })
            .take_while(|share| *share < 0.95)
            .collect();
        if shares.len() == 8 {
            assert!(!is_slow, "{shares:?}");
            skip(&format!("the machine is too busy to fill {rate_bps} bit/s: {shares:.2?} of it"));
        }
    }
}

/// Datagrams a second that arrive while `rate` are sent: more than the link takes, and not as many as this machine can,
/// or its processors would have no time for the link.
fn flood(hosts: &Hosts, path: &Path, rate: f64) -> f64 {
    let (server, client) = pair(hosts, path.server_address(), path.client_address());
    let (stop, arrived) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (start, mut sent) = (Instant::now(), 0.0);
            while !stop.load(Ordering::Relaxed) {
                // Where it has little of a processor it never catches up.
                while sent < rate * start.elapsed().as_secs_f64() && !stop.load(Ordering::Relaxed) {
                    // A full device refuses.
                    let _ = client.send(&[1; 48]);
                    sent += 1.0;
                }
                std::thread::sleep(MS / 5);
            }
        });
        scope.spawn(|| {
            server.set_read_timeout(Some(50 * MS)).unwrap();
            while !stop.load(Ordering::Relaxed) {
                if server.recv(&mut [0; 48]).is_ok() {
                    arrived.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        std::thread::sleep(100 * MS);
        let (start, before) = (Instant::now(), arrived.load(Ordering::Relaxed));
        std::thread::sleep(500 * MS);
        let rate = (arrived.load(Ordering::Relaxed) - before) as f64 / start.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        rate
    })
}
