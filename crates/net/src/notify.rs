//! Words to the service manager that has started this process: sd_notify(3).
//!
//! The socket is opened once, as a process that serves can open no more of its kind later.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// How long a word may wait for a service manager that does not listen.
const PATIENCE: Duration = Duration::from_millis(100);
/// Descriptors in one message; the kernel takes 253 (SCM_MAX_FD).
const SENT_COUNT_MAX: usize = 128;

/// The way to the service manager.
#[derive(Debug)]
pub struct Notifier(UnixDatagram);

impl Notifier {
    /// The one that the environment names (`NOTIFY_SOCKET`); `None` if it names none.
    ///
    /// # Errors
    /// If nobody listens there, or the address has another form than a path or an abstract name.
    pub fn from_environment() -> io::Result<Option<Self>> {
        env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()).map(|name| Self::to(&name)).transpose()
    }

    /// The one at a path, or with an abstract name, which begins with `@`.
    ///
    /// # Errors
    /// As [`Notifier::from_environment`].
    pub fn to(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(name)?,
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "neither a path nor an abstract name",
                ));
            }
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address)?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Notifier(socket))
    }

    /// Sends assignments, such as `READY=1`, a line each.
    ///
    /// # Errors
    /// If the service manager is gone, or does not listen.
    pub fn tell(&self, assignments: &str) -> io::Result<()> {
        self.0.send(assignments.as_bytes()).map(drop)
    }

    /// Has the service manager keep `sockets` for the next run, all under `name`: printable ASCII without a colon.
    ///
    /// # Errors
    /// As [`Notifier::tell`].
    pub fn keep(&self, name: &str, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
        // Without the last, one on which an error is reported would be forgotten.
        let text = format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0");
        for sockets in sockets.chunks(SENT_COUNT_MAX) {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SENT_COUNT_MAX))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            let has_room = ancillary.push(SendAncillaryMessage::ScmRights(sockets));
            debug_assert!(has_room, "there is room for as many");
            sendmsg(&self.0, &[IoSlice::new(text.as_bytes())], &mut ancillary, SendFlags::NOSIGNAL)?;
        }
        Ok(())
    }

    /// Has the service manager close all that it keeps under `name`.
    ///
    /// # Errors
    /// As [`Notifier::tell`].
    pub fn forget(&self, name: &str) -> io::Result<()> {
        self.tell(&format!("FDSTOREREMOVE=1\nFDNAME={name}"))
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

    use super::*;

    /// The text of the next message, and the descriptors in it.
    fn next(manager: &UnixDatagram) -> (String, Vec<OwnedFd>) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SENT_COUNT_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut text = [0; 256];
        let received =
            recvmsg(manager, &mut [io::IoSliceMut::new(&mut text)], &mut ancillary, RecvFlags::empty());
        let size = received.unwrap().bytes;
        let descriptors = ancillary.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        (String::from_utf8(text[..size].to_vec()).unwrap(), descriptors.collect())
    }

    #[test]
    fn words_and_sockets_reach_whoever_listens_at_a_name() {
        let name = format!("authentick-notify-{}", std::process::id());
        let manager =
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes()).unwrap()).unwrap();
        let notifier = Notifier::to(OsStr::new(&format!("@{name}"))).unwrap();
        notifier.tell("READY=1\nSTATUS=good").unwrap();
        let (text, none) = next(&manager);
        assert_eq!((text.as_str(), none.len()), ("READY=1\nSTATUS=good", 0));
        let sockets: Vec<UdpSocket> =
            (0..SENT_COUNT_MAX + 2).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let borrowed: Vec<BorrowedFd<'_>> = sockets.iter().map(AsFd::as_fd).collect();
        notifier.keep("udp", &borrowed).unwrap();
        let (text, mut kept) = next(&manager);
        assert_eq!(text, "FDSTORE=1\nFDNAME=udp\nFDPOLL=0");
        kept.extend(next(&manager).1);
        let of = |socket: &UdpSocket| socket.local_addr().unwrap();
        assert_eq!(kept.len(), sockets.len());
        assert!(
            kept.into_iter().map(UdpSocket::from).zip(&sockets).all(|(kept, sent)| of(&kept) == of(sent))
        );
        notifier.forget("udp").unwrap();
        assert_eq!(next(&manager).0, "FDSTOREREMOVE=1\nFDNAME=udp");
        drop(manager);
        assert!(notifier.tell("READY=1").is_err());
    }

    #[test]
    fn address_without_a_listener_or_of_another_form_is_an_error() {
        assert!(Notifier::to(OsStr::new("/nonexistent/notify")).is_err());
        assert_eq!(Notifier::to(OsStr::new("vsock:2:1234")).unwrap_err().kind(), io::ErrorKind::Unsupported);
    }
}
