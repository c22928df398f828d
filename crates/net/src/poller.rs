//! Waiting for many descriptors at once, with deadlines finer than a millisecond.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

/// Descriptors that are reported at once, at most.
pub const EVENT_COUNT_MAX: usize = 64;

/// What a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Something to read, or an error.
    Read,
    /// Something to read, room to write, or an error.
    ReadWrite,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        match self {
            Interest::Read => epoll::EventFlags::IN,
            Interest::ReadWrite => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        }
    }
}

/// A set of descriptors, each with a number of the caller's choice. Level-triggered: what is not dealt with is
/// reported again.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, events: Vec::with_capacity(EVENT_COUNT_MAX) })
    }

    /// Watches a descriptor. Closing it takes it out.
    ///
    /// # Errors
    /// If it is watched already, or the kernel has no memory for it.
    pub fn add(&self, descriptor: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, descriptor, epoll::EventData::new_u64(number), interest.flags())?)
    }

    /// Watches a descriptor for something else.
    ///
    /// # Errors
    /// If it is not watched.
    pub fn change(&self, descriptor: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, descriptor, epoll::EventData::new_u64(number), interest.flags())?)
    }

    /// Waits until a descriptor is ready or `patience` is over, to the nanosecond as far as the kernel's timers allow
    /// (`epoll_pwait2`, Linux 5.11); hands to `ready` the numbers of those that are ready, at most
    /// [`EVENT_COUNT_MAX`] in one call and the others first in the next one, and whether an error waits there.
    ///
    /// # Errors
    /// If the kernel fails to wait. A signal is none: it ends the wait.
    pub fn wait(&mut self, patience: Duration, mut ready: impl FnMut(u64, bool)) -> io::Result<()> {
        let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
        self.events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &self.events {
            let flags = event.flags;
            ready(event.data.u64(), flags.contains(epoll::EventFlags::ERR));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Instant;

    use super::*;

    #[test]
    fn patience_is_not_rounded_up_to_milliseconds() {
        let mut poller = Poller::new().unwrap();
        let patience = Duration::from_micros(300);
        let lasted = (0..50).map(|_| {
            let start = Instant::now();
            poller.wait(patience, |_, _| {}).unwrap();
            start.elapsed()
        });
        // The shortest, as anything can be late on a busy host.
        let shortest = lasted.min().unwrap();
        assert!(shortest >= patience && shortest < Duration::from_micros(900), "{shortest:?}");
    }

    #[test]
    fn ready_descriptors_are_told_by_their_numbers() {
        let (first, second) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut poller = Poller::new().unwrap();
        poller.add(&first, 7, Interest::Read).unwrap();
        poller.add(&second, u64::MAX, Interest::Read).unwrap();
        assert!(poller.add(&second, 8, Interest::Read).is_err());
        let mut ready = Vec::new();
        let start = Instant::now();
        poller.wait(Duration::from_millis(20), |number, _| ready.push(number)).unwrap();
        assert!(ready.is_empty() && start.elapsed() >= Duration::from_millis(20));
        first.send_to(b"x", second.local_addr().unwrap()).unwrap();
        poller.wait(Duration::from_secs(2), |number, _| ready.push(number)).unwrap();
        assert_eq!(ready, [u64::MAX]);
        poller.change(&first, 7, Interest::ReadWrite).unwrap();
        drop(second);
        ready.clear();
        poller.wait(Duration::ZERO, |number, _| ready.push(number)).unwrap();
        assert_eq!(ready, [7]);
    }
}
