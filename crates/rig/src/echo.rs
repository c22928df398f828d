//! What an exchange takes between two hosts: datagrams of 48 octets, there and back, with nothing else at either end.
//!
//! A study measures it beside what it measures over a path: over the cable, and over a path without delay, which is
//! what the relay adds to every delay that it is given.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Error;
use crate::hosts::{Host, Hosts};
use crate::link::Link;
use crate::path::Path;

/// Octets of a datagram, as of NTP.
const SIZE: usize = 48;

/// How long an answer may take; then it is lost.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// How often the echo looks whether it is over.
const TICK: Duration = Duration::from_millis(50);

/// Measures `count` exchanges between a client, at `own`, and the server, at `server`, which are addresses of these
/// hosts or of a path between them; before each there is a `pause`, in which threads fall asleep. Returns what they
/// took, in ascending order; those that were lost are left out.
///
/// # Errors
/// If the hosts do not have the addresses.
pub fn exchanges(
    hosts: &Hosts,
    client: usize,
    [own, server]: [IpAddr; 2],
    count: usize,
    pause: Duration,
) -> Result<Vec<Duration>, Error> {
    let bind = |host, address| {
        let bind = || UdpSocket::bind(SocketAddr::new(address, 0));
        hosts.within(host, bind).flatten().map_err(Error::system(format!("a socket at {address}")))
    };
    let (server, client) = (bind(Host::Server, server)?, bind(Host::Client(client), own)?);
    let measured = (|| {
        client.connect(server.local_addr()?)?;
        client.set_read_timeout(Some(ANSWER_MAX))?;
        server.set_read_timeout(Some(TICK))?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| echo(&server, &stop));
            let times = (0..count).map(|number| {
                std::thread::sleep(pause);
                exchange(&client, number as u64)
            });
            let times: io::Result<Vec<Option<Duration>>> = times.collect();
            stop.store(true, Ordering::Relaxed);
            times
        })
    })();
    let times = measured.map_err(Error::system("measuring a path"))?;
    let mut times: Vec<Duration> = times.into_iter().flatten().collect();
    times.sort_unstable();
    Ok(times)
}

/// What a path adds to its delays: the median over a path without delay, less that over the cable. None is added where
/// that is less, as on a machine with much other work.
///
/// # Errors
/// Where there can be no path, or nothing came back.
pub fn cost(hosts: &Hosts, client: usize, count: usize, pause: Duration) -> Result<Duration, Error> {
    let path = Path::new(hosts, client, Link::default(), Link::default(), 0)?;
    let median = |addresses| {
        let times = exchanges(hosts, client, addresses, count, pause)?;
        let lost = || io::Error::new(io::ErrorKind::TimedOut, "nothing came back");
        times.get(times.len() / 2).copied().ok_or_else(lost).map_err(Error::system("measuring a path"))
    };
    let cable = median([hosts.address(Host::Client(client)), hosts.address(Host::Server)])?;
    Ok(median([path.client_address(), path.server_address()])?.saturating_sub(cable))
}

/// Sends back what comes until it is over.
fn echo(socket: &UdpSocket, stop: &AtomicBool) {
    let mut buffer = [0; SIZE];
    while !stop.load(Ordering::Relaxed) {
        if let Ok((size, client)) = socket.recv_from(&mut buffer) {
            // One that cannot be sent is lost.
            let _ = socket.send_to(&buffer[..size], client);
        }
    }
}

/// One exchange; `None` if it was lost.
fn exchange(socket: &UdpSocket, number: u64) -> io::Result<Option<Duration>> {
    let (mut request, mut answer) = ([0; SIZE], [0; SIZE]);
    request[..8].copy_from_slice(&number.to_be_bytes());
    let start = Instant::now();
    socket.send(&request)?;
    loop {
        match socket.recv(&mut answer) {
            Ok(_) if answer == request => return Ok(Some(start.elapsed())),
            // Of one that was given up.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}
