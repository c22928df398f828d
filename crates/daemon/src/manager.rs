//! The service manager that has started the process, mostly systemd: it is told how the server does (`Type=notify`,
//! sd_notify(3)), and keeps the server's sockets over a restart (`FileDescriptorStoreMax=`).
//!
//! Sockets are kept from before the server is ready on, so that nothing is lost even if it is killed: what comes while
//! no process runs waits in them. Which of them serve where is told by their addresses, so that sockets which the
//! manager has opened itself (`Sockets=`) serve as well.

use std::cell::Cell;
use std::env;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use authentick_net::inherited::{self, Inherited};
use authentick_net::notify::Notifier;

/// The service manager, if there is one, and the sockets that it had kept.
#[derive(Debug)]
pub struct Manager {
    notifier: Option<Notifier>,
    /// Those that nobody has taken.
    kept: Vec<Inherited>,
    /// How often it wants to hear that the server is well.
    watchdog: Option<Duration>,
    /// Whether the last word has reached it.
    is_reached: Cell<bool>,
}

/// Where clients come: the address of sockets for datagrams, or of listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) is_listener: bool,
    pub(crate) address: SocketAddr,
}

/// Sockets of one place that a service manager had kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptAt {
    pub(crate) count: usize,
    /// Whether each of them lets others be bound to its address.
    pub(crate) all_share: bool,
}

impl Place {
    fn has(self, socket: &Inherited) -> bool {
        socket.local == self.address && socket.is_listener == self.is_listener
    }
}

impl fmt::Display for Place {
    /// As the name of its sockets, which has no colon.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_listener { "tcp" } else { "udp" };
        write!(f, "{kind}-{}", self.address.to_string().replace(':', "_"))
    }
}

impl Manager {
    /// The one that the environment speaks of. To be called once, as the sockets can be taken once.
    #[must_use]
    pub fn find() -> Self {
        let notifier = Notifier::from_environment().unwrap_or_else(|error| {
            log::warn!("the service manager is not told how this server does: NOTIFY_SOCKET: {error}");
            None
        });
        let text = |name| env::var(name).ok();
        let watchdog = watchdog(text("WATCHDOG_USEC"), text("WATCHDOG_PID"), std::process::id());
        Manager { notifier, kept: inherited::take(), watchdog, is_reached: Cell::new(true) }
    }

    /// None at all.
    #[must_use]
    pub const fn none() -> Self {
        Manager { notifier: None, kept: Vec::new(), watchdog: None, is_reached: Cell::new(true) }
    }

    /// Whether sockets are kept for the next run.
    pub(crate) const fn keeps(&self) -> bool {
        self.notifier.is_some()
    }

    /// How many sockets of `place` were kept, `count` at most; they stay with the manager.
    pub(crate) fn kept_at(&self, place: Place, count: usize) -> KeptAt {
        let mut kept = self.kept.iter().filter(|socket| place.has(socket)).take(count);
        let mut at = KeptAt { count: 0, all_share: true };
        kept.by_ref().for_each(|socket| {
            at.count += 1;
            at.all_share &= socket.shares;
        });
        at
    }

    /// The sockets of `place` that were kept, `count` at most.
    pub(crate) fn take(&mut self, place: Place, count: usize) -> Vec<Inherited> {
        let (here, elsewhere) =
            std::mem::take(&mut self.kept).into_iter().partition(|socket| place.has(socket));
        let mut here: Vec<Inherited> = here;
        self.kept = elsewhere;
        self.kept.extend(here.drain(count.min(here.len())..));
        here
    }

    /// Has the sockets of a place kept for the next run, and no others of that place any longer.
    pub(crate) fn keep(&self, place: Place, sockets: &[BorrowedFd<'_>]) {
        let name = place.to_string();
        self.say(|notifier| {
            if self.kept.iter().any(|socket| place.has(socket)) {
                notifier.forget(&name)?;
            }
            // What it has already it keeps once.
            notifier.keep(&name, sockets)
        });
    }

    /// Closes what was kept and is of no use any more, and has it kept no longer; `places` are those that are served.
    pub(crate) fn close_the_rest(&mut self, places: &[Place]) {
        for socket in std::mem::take(&mut self.kept) {
            if !places.iter().any(|place| place.has(&socket)) {
                let (local, name) = (socket.local, &socket.name);
                log::info!(
                    "a socket that was kept from an earlier run is closed: nothing is served on {local} now"
                );
                self.say(|notifier| notifier.forget(name));
            }
        }
    }

    /// The server is not ready yet, and says so again within `soon`: its start may take that much longer than the
    /// manager would wait.
    pub(crate) fn starts_later(&self, soon: Duration) {
        self.say(|notifier| notifier.tell(&format!("EXTEND_TIMEOUT_USEC={}", soon.as_micros())));
    }

    /// The server has started, or has read its files again.
    pub fn ready(&self, status: &str) {
        self.say(|notifier| notifier.tell(&format!("READY=1\nSTATUS={status}")));
    }

    /// The server is about to read its files again; [`Manager::ready`] follows.
    pub fn reloading(&self) {
        let now_us = authentick_net::clock::monotonic_ns() / 1000;
        self.say(|notifier| notifier.tell(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}")));
    }

    /// The server is about to stop.
    pub fn stopping(&self) {
        self.say(|notifier| notifier.tell("STOPPING=1"));
    }

    /// How the server does, in a few words.
    pub fn status(&self, status: &str) {
        self.say(|notifier| notifier.tell(&format!("STATUS={status}")));
    }

    /// How often [`Manager::is_well`] has to be called at least; `None` if nobody waits for it.
    #[must_use]
    pub const fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// The server does what it has to. A manager that does not hear this kills it, and starts another.
    pub fn is_well(&self) {
        if self.watchdog.is_some() {
            self.say(|notifier| notifier.tell("WATCHDOG=1"));
        }
    }

    /// Says something, and complains once if it does not arrive. The server goes on without a manager.
    fn say(&self, word: impl FnOnce(&Notifier) -> io::Result<()>) {
        let Some(notifier) = &self.notifier else { return };
        let result = word(notifier);
        if let (Err(error), true) = (&result, self.is_reached.get()) {
            log::warn!("the service manager does not hear how this server does: {error}");
        }
        self.is_reached.set(result.is_ok());
    }
}

/// How often the process with the number `own` has to say that it is well. sd_watchdog_enabled(3).
fn watchdog(microseconds: Option<String>, pid: Option<String>, own: u32) -> Option<Duration> {
    let is_meant = pid.is_none_or(|pid| pid.parse() == Ok(own));
    let microseconds: u64 = microseconds?.parse().ok()?;
    (is_meant && microseconds > 0).then(|| Duration::from_micros(microseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(address: &str, is_listener: bool) -> Place {
        Place { is_listener, address: address.parse().unwrap() }
    }

    #[test]
    fn sockets_of_a_place_have_a_name_that_a_service_manager_takes() {
        assert_eq!(place("192.0.2.1:123", false).to_string(), "udp-192.0.2.1_123");
        assert_eq!(place("[2001:db8::1]:4460", true).to_string(), "tcp-[2001_db8__1]_4460");
    }

    #[test]
    fn kept_sockets_are_taken_by_kind_and_address_and_no_more_than_are_needed() {
        let kept = |address: &str, is_listener| Inherited {
            name: "of no matter".to_owned(),
            local: address.parse().unwrap(),
            is_listener,
            shares: true,
            socket: std::fs::File::open("/dev/null").unwrap().into(),
        };
        let here = "192.0.2.1:123";
        let all = [(here, false), ("192.0.2.2:123", false), (here, true), (here, false), (here, false)];
        let kept = all.map(|(address, is_listener)| kept(address, is_listener)).into();
        let mut manager = Manager { kept, ..Manager::none() };
        assert_eq!(manager.take(place(here, false), 2).len(), 2);
        assert_eq!(manager.take(place(here, true), 2).len(), 1);
        assert_eq!(manager.take(place("192.0.2.3:123", false), 1).len(), 0);
        assert_eq!(manager.kept.len(), 2, "one too many, and one of an address that nobody serves");
        manager.close_the_rest(&[place(here, false)]);
        assert!(manager.kept.is_empty());
    }

    #[test]
    fn watchdog_is_that_of_this_process() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(watchdog(text("30000000"), text("7"), 7), Some(Duration::from_secs(30)));
        assert_eq!(watchdog(text("30000000"), None, 7), Some(Duration::from_secs(30)));
        assert_eq!(watchdog(text("30000000"), text("8"), 7), None);
        assert_eq!(watchdog(text("0"), None, 7), None);
        assert_eq!(watchdog(text("soon"), None, 7), None);
        assert_eq!(watchdog(None, None, 7), None);
    }
}
