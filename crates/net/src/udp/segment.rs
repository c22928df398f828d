//! Requests of one socket that leave as one message, which the kernel takes apart again (UDP_SEGMENT, Linux 4.18).
//!
//! Each segment is a datagram of its own on the wire, and for a receiver: the kernel or the interface splits the
//! message at the lowest layer that can, on loopback and veth at the receiving socket. What is saved is the way there:
//! memory, route, filters and queues once instead of once for each datagram.
//!
//! Whether the kernel can is asked once; whether a route can shows when a message is refused. `udp_send_skb` in
//! net/ipv4/udp.c refuses with EIO where checksums are not offloaded or IPsec is in the way, and with EMSGSIZE
//! (earlier: EINVAL) if a segment does not fit the path's MTU.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

use super::control::{self, Control};
use crate::engine::BATCH_SIZE;

/// Octets of a message, at most: all lengths within an IP packet of 64 KiB, headers included, are possible.
const MESSAGE_SIZE_MAX: usize = 65_000;

/// Datagrams of a message, at most: UDP_MAX_SEGMENTS of include/linux/udp.h, until it was doubled in Linux 6.8.
const SEGMENT_COUNT_MAX: usize = 64;

const _: () = assert!(BATCH_SIZE <= SEGMENT_COUNT_MAX, "a whole batch of short requests is one message");

/// What is known of the kernel's ability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segmentation {
    /// Nothing was ever refused.
    Possible,
    /// The last call failed with what can also be the network's word on a datagram before.
    Doubted,
    /// Datagrams leave one by one.
    Impossible,
}

impl Segmentation {
    /// Asks the kernel whether it knows of it. One that does not would pass over the wish and send one long datagram.
    pub(super) fn probe() -> Self {
        let known = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).is_ok_and(|socket| {
            let mut size: libc::c_int = 0;
            let (at, mut length) = ((&raw mut size).cast(), size_of_val(&size) as libc::socklen_t);
            // SAFETY: getsockopt(2) writes at most `length` octets to `size`, and to `length`; both outlive the call.
            let result = unsafe {
                libc::getsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, at, &raw mut length)
            };
            result == 0
        });
        if known { Segmentation::Possible } else { Segmentation::Impossible }
    }

    /// How many of these datagrams, by their sizes, the next message takes: at least one, if there is any.
    pub(super) fn count(self, sizes: impl IntoIterator<Item = usize>) -> usize {
        let mut sizes = sizes.into_iter();
        let Some(first) = sizes.next() else { return 0 };
        let count_max = match self {
            // A size of zero means no segments.
            _ if first == 0 => 1,
            Segmentation::Impossible => 1,
            Segmentation::Possible | Segmentation::Doubted => SEGMENT_COUNT_MAX.min(MESSAGE_SIZE_MAX / first),
        };
        1 + sizes.take(count_max.saturating_sub(1)).take_while(|&size| size == first).count()
    }

    /// A message of several datagrams has left.
    pub(super) fn succeeded(&mut self) {
        if *self == Segmentation::Doubted {
            *self = Segmentation::Possible;
        }
    }

    /// A message of several datagrams was refused. `true`: they are to be sent again, one by one.
    pub(super) fn failed(&mut self, error: &io::Error) -> bool {
        *self = match (error.raw_os_error(), *self) {
            (Some(libc::EIO | libc::EINVAL), _) => Segmentation::Impossible,
            // The network can say the same of a datagram before, but that is said once.
            (Some(libc::EMSGSIZE), Segmentation::Possible) => Segmentation::Doubted,
            (Some(libc::EMSGSIZE), Segmentation::Doubted) => Segmentation::Impossible,
            (_, before) => before,
        };
        *self == Segmentation::Impossible
    }
}

/// Writes ancillary data that has the kernel take a message apart into datagrams of `size` octets; returns its length.
///
/// # Safety
/// `control` points to a writable [`Control`] that nothing else uses during the call.
pub(super) unsafe fn write(control: *mut Control, size: usize) -> usize {
    let size = u16::try_from(size).unwrap_or(u16::MAX);
    // SAFETY: the contract of this function is that of `write_one`.
    unsafe { control::write_one(control, libc::SOL_UDP, libc::UDP_SEGMENT, size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_takes_datagrams_of_one_size_and_no_more_than_a_packet_holds() {
        let possible = Segmentation::Possible;
        assert_eq!(possible.count([]), 0);
        assert_eq!(possible.count([48]), 1);
        assert_eq!(possible.count([48, 48, 48, 47, 48]), 3);
        assert_eq!(possible.count([48; BATCH_SIZE + 1]), SEGMENT_COUNT_MAX);
        assert_eq!(possible.count([2048; BATCH_SIZE]), 31);
        assert_eq!(possible.count([0; 5]), 1);
        assert_eq!(Segmentation::Doubted.count([48; 2]), 2);
        assert_eq!(Segmentation::Impossible.count([48; 5]), 1);
    }

    #[test]
    fn one_word_of_the_network_is_no_refusal_and_two_in_a_row_are() {
        let error = io::Error::from_raw_os_error;
        let mut state = Segmentation::Possible;
        assert!(!state.failed(&error(libc::ECONNREFUSED)) && state == Segmentation::Possible);
        assert!(!state.failed(&error(libc::EMSGSIZE)));
        state.succeeded();
        assert!(!state.failed(&error(libc::EMSGSIZE)) && !state.failed(&error(libc::EAGAIN)));
        assert!(state.failed(&error(libc::EMSGSIZE)));
        for refusal in [libc::EIO, libc::EINVAL] {
            let mut state = Segmentation::Possible;
            assert!(state.failed(&error(refusal)));
            state.succeeded();
            assert_eq!(state, Segmentation::Impossible);
        }
    }
}
