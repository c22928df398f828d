//! Ancillary data of a datagram: when the kernel received it, and which address of ours was asked.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use authentick_wire::time::NtpTime;

/// Octets of ancillary data: room for a receive stamp, and the larger of the two packet informations or an error with
/// the address of who reports it.
pub(super) const CONTROL_SIZE: usize = 128;

/// A buffer for ancillary data, aligned as the kernel's headers in it need.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub(super) struct Control(pub(super) [u8; CONTROL_SIZE]);

/// Which address of ours a datagram was sent to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
}

impl Asked {
    /// Whether it is a broadcast or multicast address, by which many hosts and all sockets of a group are asked at
    /// once. Of such a datagram the kernel reports as local address the one that a response would leave from. ip(7).
    pub(super) const fn is_shared(&self) -> bool {
        match self {
            Asked::V4(info) => info.ipi_addr.s_addr != info.ipi_spec_dst.s_addr,
            Asked::V6(info) => info.ipi6_addr.s6_addr[0] == 0xff,
        }
    }
}

/// What the kernel said about a received datagram.
#[derive(Clone, Copy, Default)]
pub(super) struct Ancillary {
    pub(super) received: Option<NtpTime>,
    pub(super) asked: Option<Asked>,
    /// Why a datagram that was sent does not arrive, for one out of the error queue.
    pub(super) error: Option<libc::sock_extended_err>,
}

/// Receives one message with its ancillary data; returns the octets that came, of which `buffer` has the first.
///
/// # Errors
/// The kernel's.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    flags: libc::c_int,
) -> io::Result<(usize, Ancillary)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = Control([0; CONTROL_SIZE]);
    // SAFETY: an msghdr is integers and pointers, for which all zeros is a value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = CONTROL_SIZE;
    // SAFETY: recvmsg(2) writes to what the message points to: live objects of the sizes that it gives.
    let size = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    if size < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has filled the message's control part; nothing writes to it now.
    Ok((size as usize, unsafe { read(&message) }))
}

/// Reads the ancillary data of a message that `recvmsg` or `recvmmsg` has just filled.
///
/// # Safety
/// `message.msg_control` points to `message.msg_controllen` octets that the kernel wrote, and nothing else writes to
/// them during the call.
pub(super) unsafe fn read(message: &libc::msghdr) -> Ancillary {
    let mut ancillary = Ancillary::default();
    // SAFETY: by the contract of this function the message's control part is readable; cmsg(3) stays within it.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return whole headers within the control part, or null.
        let libc::cmsghdr { cmsg_level: level, cmsg_type: kind, .. } = unsafe { header.read() };
        // SAFETY: `header` is such a header.
        let data = unsafe { libc::CMSG_DATA(header) };
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: socket(7): this message carries a timespec. It may lie unaligned.
                let stamp = unsafe { ptr::read_unaligned(data.cast::<libc::timespec>()) };
                //= rfc5905#7.3-7
                ancillary.received = Some(NtpTime::from_unix(stamp.tv_sec, stamp.tv_nsec as u32));
            }
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                // SAFETY: ip(7), ipv6(7): this message begins with a sock_extended_err. It may lie unaligned.
                ancillary.error = Some(unsafe { ptr::read_unaligned(data.cast()) });
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // SAFETY: ip(7): this message carries an in_pktinfo. It may lie unaligned.
                ancillary.asked = Some(Asked::V4(unsafe { ptr::read_unaligned(data.cast()) }));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                // SAFETY: ipv6(7): this message carries an in6_pktinfo. It may lie unaligned.
                ancillary.asked = Some(Asked::V6(unsafe { ptr::read_unaligned(data.cast()) }));
            }
            _ => {}
        }
        // SAFETY: as for CMSG_FIRSTHDR above, from a header that it returned.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    ancillary
}

/// Writes ancillary data that makes a response leave from the address that was asked; returns its size.
///
/// # Safety
/// `control` points to a writable [`Control`] that nothing else uses during the call.
pub(super) unsafe fn write(control: *mut Control, asked: Asked) -> usize {
    match asked {
        Asked::V4(asked) => {
            let info = libc::in_pktinfo {
                // The route decides about the interface; the source is the local address that was asked. ip(7).
                ipi_ifindex: 0,
                ipi_spec_dst: asked.ipi_spec_dst,
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            // SAFETY: the contract of this function is that of `write_one`.
            unsafe { write_one(control, libc::IPPROTO_IP, libc::IP_PKTINFO, info) }
        }
        Asked::V6(asked) => {
            // A link-local address means nothing without its interface; any other leaves the choice to the route.
            let link_local = asked.ipi6_addr.s6_addr[0] == 0xfe && asked.ipi6_addr.s6_addr[1] & 0xc0 == 0x80;
            let info = libc::in6_pktinfo {
                ipi6_addr: asked.ipi6_addr,
                ipi6_ifindex: if link_local { asked.ipi6_ifindex } else { 0 },
            };
            // SAFETY: the contract of this function is that of `write_one`.
            unsafe { write_one(control, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info) }
        }
    }
}

/// Writes a single control message with `info` as its data; returns its size.
///
/// # Safety
/// As [`write`].
pub(super) unsafe fn write_one<T>(
    control: *mut Control,
    level: libc::c_int,
    kind: libc::c_int,
    info: T,
) -> usize {
    const HEADER_SIZE: usize = size_of::<libc::cmsghdr>();
    const { assert!(HEADER_SIZE + 8 + size_of::<T>() <= CONTROL_SIZE, "a control buffer holds one message") };
    // SAFETY: cmsg(3): this computes a size and touches no memory.
    let length = unsafe { libc::CMSG_LEN(size_of::<T>() as u32) };
    // SAFETY: likewise.
    let space = unsafe { libc::CMSG_SPACE(size_of::<T>() as u32) };
    let header = control.cast::<libc::cmsghdr>();
    // SAFETY: `control` is writable, aligned for a header, and large enough for one with this data.
    unsafe { header.write(libc::cmsghdr { cmsg_len: length as _, cmsg_level: level, cmsg_type: kind }) };
    // SAFETY: the header was written just now; its data follow within the buffer.
    let data = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: there is room for the data, as the assertion above says.
    unsafe { data.cast::<T>().write_unaligned(info) };
    space as usize
}
