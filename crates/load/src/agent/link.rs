//! One connection between coordinator and agent: messages over TLS over TCP, sent and received by different threads.
//!
//! A sender encrypts under one lock and writes under another, and a receiver holds none while it waits, so that neither
//! waits for the other. TLS's own messages are sent along with the next message, at the latest with a heartbeat.

use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use authentick_ke::client::describe;
use rustls::Connection;

use super::limits::{ALPN, BEAT, HANDSHAKE_MAX, MESSAGE_MAX, SILENCE_MAX};
use super::message::{Inbox, Message, MessageError, emit};
use crate::lock;

/// Why a connection can no longer be used.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// The other side closed it.
    #[error("it closed the connection")]
    Closed,
    /// Nothing came for [`SILENCE_MAX`].
    #[error("it was silent for {} ms", SILENCE_MAX.as_millis())]
    Silent,
    /// A message, or the handshake, took too long.
    #[error("it took too long to say something")]
    Slow,
    /// TLS failed.
    #[error("TLS: {}", describe(.0))]
    Tls(rustls::Error),
    /// The other side speaks something else.
    #[error("it does not speak {}", String::from_utf8_lossy(ALPN))]
    NoAlpn,
    /// What came is no message.
    #[error("it sent {0}")]
    Message(#[from] MessageError),
    /// The host failed to send or receive.
    #[error("the connection failed: {0}")]
    Io(io::ErrorKind),
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        // rustls wraps its own errors when it does the reading and writing.
        if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return LinkError::Tls(tls.clone());
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected => LinkError::Closed,
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => LinkError::Silent,
            kind => LinkError::Io(kind),
        }
    }
}

/// Does the TLS handshake on a new connection, and splits it into a sender of `S` and a receiver of `R`.
pub(crate) fn open<S: Message, R: Message>(
    stream: TcpStream,
    tls: impl Into<Connection>,
) -> Result<(Sender<S>, Receiver<R>), LinkError> {
    let mut tls = tls.into();
    stream.set_nodelay(true)?;
    let mut timed = Timed { stream: &stream, deadline: Instant::now() + HANDSHAKE_MAX };
    while tls.is_handshaking() {
        tls.complete_io(&mut timed).map_err(|error| match LinkError::from(error) {
            LinkError::Silent => LinkError::Slow,
            other => other,
        })?;
    }
    if tls.alpn_protocol() != Some(ALPN) {
        return Err(LinkError::NoAlpn);
    }
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    // A message is encrypted as a whole; its size is bounded.
    tls.set_buffer_limit(None);
    let mut inbox = Inbox::new();
    // What came along with the end of the handshake.
    let state = tls.process_new_packets().map_err(LinkError::Tls)?;
    take(&mut tls, state.plaintext_bytes_to_read(), &mut inbox)?;
    let shared = Arc::new(Shared { stream, tls: Mutex::new(tls), writing: Mutex::new(()) });
    let sender = Sender { shared: Arc::clone(&shared), messages: PhantomData };
    let receiver = Receiver { shared, inbox, since: Instant::now(), read_at: Instant::now() };
    Ok((sender, receiver))
}

/// Moves decrypted octets to the inbox.
fn take<M: Message>(tls: &mut Connection, size: usize, inbox: &mut Inbox<M>) -> Result<(), LinkError> {
    let mut plain = vec![0; size];
    tls.reader().read_exact(&mut plain)?;
    inbox.push(&plain);
    Ok(())
}

/// A stream with one deadline for all reading and writing.
struct Timed<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(octets)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

struct Shared {
    stream: TcpStream,
    tls: Mutex<Connection>,
    /// Held while encrypted octets are on their way out, so that they stay in order.
    writing: Mutex<()>,
}

impl Shared {
    /// Lets `what` put something into the TLS connection, and writes the result.
    fn write(&self, what: impl FnOnce(&mut Connection) -> io::Result<()>) -> Result<(), LinkError> {
        let _writing = lock(&self.writing);
        let mut sealed = Vec::new();
        {
            let mut tls = lock(&self.tls);
            what(&mut tls)?;
            while tls.wants_write() {
                tls.write_tls(&mut sealed)?;
            }
        }
        (&self.stream).write_all(&sealed)?;
        Ok(())
    }
}

/// The end that sends; several threads may do so.
pub(crate) struct Sender<M> {
    shared: Arc<Shared>,
    messages: PhantomData<fn(M)>,
}

impl<M: Message> Sender<M> {
    /// Sends one message. If the other side reads nothing for [`SILENCE_MAX`], the connection becomes unusable.
    pub(crate) fn send(&self, message: &M) -> Result<(), LinkError> {
        let octets = emit(message)?;
        let result = self.shared.write(|tls| tls.writer().write_all(&octets));
        if result.is_err() {
            // Half a message may have been sent, and nothing after it would be understood.
            self.close();
        }
        result
    }

    /// Sends signs of life until the other end of `dead` is dropped, or the connection is of no more use.
    pub(crate) fn keep_alive(&self, dead: &mpsc::Receiver<()>, beat: impl Fn() -> M) {
        while let Err(RecvTimeoutError::Timeout) = dead.recv_timeout(BEAT) {
            if self.send(&beat()).is_err() {
                return;
            }
        }
    }

    /// Sends the last message, if it can be sent.
    pub(crate) fn conclude(&self, message: &M) {
        let _ = self.send(message);
        self.finish();
    }

    /// Says that nothing more is sent; the other side reads to the end.
    pub(crate) fn finish(&self) {
        let _ = self.shared.write(|tls| {
            tls.send_close_notify();
            Ok(())
        });
        let _ = self.shared.stream.shutdown(Shutdown::Write);
    }

    /// Ends the connection at once. Both receivers notice.
    pub(crate) fn close(&self) {
        let _ = self.shared.stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
impl<M> Sender<M> {
    /// Sends octets that need not be a message.
    pub(crate) fn send_octets(&self, octets: &[u8]) -> Result<(), LinkError> {
        self.shared.write(|tls| tls.writer().write_all(octets))
    }
}

/// The end that receives.
pub(crate) struct Receiver<M> {
    shared: Arc<Shared>,
    inbox: Inbox<M>,
    /// Since when part of a message is in the inbox.
    since: Instant,
    read_at: Instant,
}

impl<M: Message> Receiver<M> {
    /// Waits for the next message; with the instant at which its last octets came.
    pub(crate) fn receive(&mut self) -> Result<(M, Instant), LinkError> {
        let mut raw = [0; 16_384];
        loop {
            if let Some(message) = self.inbox.next()? {
                self.since = self.read_at;
                return Ok((message, self.read_at));
            }
            let size = match (&self.shared.stream).read(&mut raw) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(size) => size,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.read_at = Instant::now();
            if self.inbox.is_empty() {
                self.since = self.read_at;
            } else if self.read_at - self.since > MESSAGE_MAX {
                return Err(LinkError::Slow);
            }
            self.unseal(&raw[..size])?;
        }
    }

    fn unseal(&mut self, mut raw: &[u8]) -> Result<(), LinkError> {
        let mut tls = lock(&self.shared.tls);
        while !raw.is_empty() {
            if tls.read_tls(&mut raw)? == 0 {
                return Err(LinkError::Closed);
            }
            let state = tls.process_new_packets().map_err(LinkError::Tls)?;
            take(&mut tls, state.plaintext_bytes_to_read(), &mut self.inbox)?;
            if state.peer_has_closed() && self.inbox.is_empty() {
                return Err(LinkError::Closed);
            }
        }
        Ok(())
    }

    /// The first certificate of the other side, in DER.
    pub(crate) fn certificate(&self) -> Option<Vec<u8>> {
        lock(&self.shared.tls).peer_certificates()?.first().map(|certificate| certificate.to_vec())
    }

    /// Discards what still comes, until the other side closes or `time` is up: closing at once would reset the
    /// connection, and the last message might be lost.
    pub(crate) fn linger(self, time: Duration) {
        let mut timed = Timed { stream: &self.shared.stream, deadline: Instant::now() + time };
        let mut raw = [0; 4096];
        while timed.read(&mut raw).is_ok_and(|size| size > 0) {}
    }
}
