//! Connecting to one agent: name, address, TLS, its welcome; and the threads that read from it and send it heartbeats.

use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use authentick_client::HostPort;
use authentick_net::addresses::{NO_ROUTE, is_refused_route, race, resolve};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::error::{CrewError, Fault};
use super::limits::HANDSHAKE_MAX;
use super::link::{self, LinkError, Receiver, Sender};
use super::message::{About, FromAgent, ToAgent, shown};
use crate::lock;

/// What an agent's reader saw, and when; and which agent's.
pub(super) type Event = (usize, Result<(FromAgent, Instant), LinkError>);

/// The step and the counts of an agent's last heartbeat.
pub(super) type Beat = (u64, [u64; 3]);

/// An agent that takes orders.
pub(super) struct Connected {
    pub(super) name: String,
    /// What it says of its host.
    pub(super) about: About,
    pub(super) sender: Arc<Sender<ToAgent>>,
    pub(super) beat: Arc<Mutex<Beat>>,
    /// What was reported to the watch about this step.
    pub(super) told: [u64; 3],
    /// Ends the thread that sends heartbeats when dropped.
    _alive: SyncSender<()>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.sender.finish();
        self.sender.close();
    }
}

/// Connects to one agent and starts the threads that read from it and send it signs of life.
pub(super) fn connect(
    index: usize,
    name: &str,
    tls: &Arc<ClientConfig>,
    events: &SyncSender<Event>,
) -> Result<Connected, CrewError> {
    let (host, port) = host_and_port(name)?;
    let host = host.as_str();
    let server_name = ServerName::try_from(HostPort::without_zone(host).to_owned()).map_err(|_| {
        CrewError::new(name, Fault::Usage, format!("{host:?} is no name that a certificate can have"))
    })?;
    let stream = dial(name, host, port)?;
    let opened = ClientConnection::new(Arc::clone(tls), server_name)
        .map_err(LinkError::Tls)
        .and_then(|tls| link::open::<ToAgent, FromAgent>(stream, tls));
    // Under TLS 1.3 the client's handshake ends before the agent has judged our certificate.
    let (sender, mut receiver) = opened.map_err(|error| CrewError::unconnected(name, host, &error))?;
    let about = match receiver.receive().map_err(|error| CrewError::unconnected(name, host, &error))?.0 {
        FromAgent::Welcome(about) => about,
        FromAgent::Busy { with } => {
            let message = format!("it is busy with {}; wait, or end that run", shown(&with));
            return Err(CrewError::new(name, Fault::Busy, message));
        }
        FromAgent::Refused { why } => return Err(CrewError::refused(name, &why)),
        FromAgent::Ready
        | FromAgent::Beat { .. }
        | FromAgent::Pong { .. }
        | FromAgent::Done { .. }
        | FromAgent::Failed { .. } => return Err(out_of_turn(name)),
    };
    let (alive, dead) = mpsc::sync_channel(0);
    let (sender, beat) = (Arc::new(sender), Arc::default());
    let connected = Connected {
        name: name.to_owned(),
        about,
        sender: Arc::clone(&sender),
        beat: Arc::clone(&beat),
        told: [0; 3],
        _alive: alive,
    };
    let events = events.clone();
    start_thread(name, move || read(index, receiver, &beat, &events))?;
    start_thread(name, move || sender.keep_alive(&dead, || ToAgent::Beat))?;
    Ok(connected)
}

fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), CrewError> {
    thread::Builder::new().name("agent".to_owned()).spawn(run).map(drop).map_err(|error| {
        CrewError::new(name, Fault::Generator, format!("this host has no thread for it: {error}"))
    })
}

/// Reads until the connection ends. Heartbeats are kept here; everything else is passed on.
fn read(index: usize, mut receiver: Receiver<FromAgent>, beat: &Mutex<Beat>, events: &SyncSender<Event>) {
    loop {
        let event = receiver.receive();
        if let Ok((FromAgent::Beat { step, counts }, _)) = event {
            *lock(beat) = (step, counts);
            continue;
        }
        let is_last = event.is_err();
        if events.send((index, event)).is_err() || is_last {
            return;
        }
    }
}

/// `HOST:PORT`, HOST being a name or an address, IPv6 in brackets.
fn host_and_port(name: &str) -> Result<(String, u16), CrewError> {
    match name.parse() {
        Ok(HostPort { host, port: Some(port) }) => Ok((host, port)),
        Ok(HostPort { port: None, .. }) | Err(_) => {
            Err(CrewError::new(name, Fault::Usage, "no agent; write HOST:PORT, IPv6 as [ADDRESS]:PORT"))
        }
    }
}

/// A connection to the one of the host's addresses that is the first to accept.
fn dial(name: &str, host: &str, port: u16) -> Result<TcpStream, CrewError> {
    let unreachable = |message: String| CrewError::new(name, Fault::Unreachable, message);
    let addresses = resolve(host, port, HANDSHAKE_MAX)
        .map_err(|error| unreachable(format!("{host:?} cannot be resolved: {error}")))?;
    let addresses: Vec<SocketAddr> = addresses.all().collect();
    match race(&addresses, Instant::now() + HANDSHAKE_MAX) {
        Ok((stream, _)) => Ok(stream),
        Err(error) if is_refused_route(&error) => Err(unreachable(NO_ROUTE.to_owned())),
        Err(error) => Err(unreachable(format!("cannot connect: {error}; is the agent started?"))),
    }
}

/// An agent that sent a message that is not due.
pub(super) fn out_of_turn(name: &str) -> CrewError {
    CrewError::new(name, Fault::Protocol, "it said something out of turn; run one version everywhere")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_named_by_host_and_port() {
        for (name, expected) in [
            ("a.lab:4470", Some(("a.lab", 4470))),
            ("192.0.2.1:1", Some(("192.0.2.1", 1))),
            ("[2001:db8::1]:65535", Some(("2001:db8::1", 65_535))),
            ("a.lab", None),
            ("a.lab:", None),
            ("a.lab:0", None),
            ("a.lab:65536", None),
            (":4470", None),
            ("[]:4470", None),
        ] {
            let expected = expected.map(|(host, port): (&str, u16)| (host.to_owned(), port));
            assert_eq!(host_and_port(name).ok(), expected, "{name}");
        }
    }
}
