//! `recvmmsg` and `sendmmsg` over memory that is laid out once, when a worker starts.
//!
//! Each of [`BATCH_SIZE`] slots has a buffer for the request, one for the response, an address and ancillary data. The
//! message headers point to them for good; before a call only those headers are reset that the last one changed.
//!
//! **Invariant:** everything that a header points to lies in [`Slots`], whose addresses stay good. References into a
//! slot exist only inside `respond`, never during a system call.

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use authentick_wire::datagram::Datagram;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

use super::buffer::Buffer;
use super::control::{self, Control};
use super::slots::Slots;
use crate::engine::{BATCH_SIZE, Handler, ReplyPath};

/// The memory of one worker's batches.
pub(super) struct Batch {
    requests: Slots<Buffer>,
    responses: Slots<Buffer>,
    sources: Slots<libc::sockaddr_storage>,
    /// Ancillary data: as received, and overwritten with what is sent.
    controls: Slots<Control>,
    request_parts: Slots<libc::iovec>,
    response_parts: Slots<libc::iovec>,
    incoming: Vec<libc::mmsghdr>,
    outgoing: Vec<libc::mmsghdr>,
    /// Headers of `incoming` that the last call changed.
    dirty_count: usize,
    outgoing_count: usize,
}

/// What one flush did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flushed {
    pub(super) sent: usize,
    pub(super) failed: usize,
    /// Of those that failed: there was no room in the send buffer.
    pub(super) blocked: usize,
}

pub(super) const fn zeroed_header() -> libc::mmsghdr {
    // SAFETY: an mmsghdr is integers and pointers, for which all zeros is a value.
    unsafe { mem::zeroed() }
}

impl Batch {
    pub(super) fn new() -> Self {
        // SAFETY: a sockaddr_storage is octets and integers, for which all zeros is a value.
        let no_address: libc::sockaddr_storage = unsafe { mem::zeroed() };
        let no_part = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        let mut batch = Batch {
            requests: Slots::new(Buffer::ZERO),
            responses: Slots::new(Buffer::ZERO),
            sources: Slots::new(no_address),
            controls: Slots::new(Control([0; control::CONTROL_SIZE])),
            request_parts: Slots::new(no_part),
            response_parts: Slots::new(no_part),
            incoming: vec![zeroed_header(); BATCH_SIZE],
            outgoing: vec![zeroed_header(); BATCH_SIZE],
            dirty_count: BATCH_SIZE,
            outgoing_count: 0,
        };
        for slot in 0..BATCH_SIZE {
            let octets = batch.requests.address(slot).cast();
            batch.request_parts[slot] = libc::iovec { iov_base: octets, iov_len: DATAGRAM_SIZE_MAX };
            let header = &mut batch.incoming[slot].msg_hdr;
            header.msg_iov = batch.request_parts.address(slot);
            header.msg_iovlen = 1;
            header.msg_name = batch.sources.address(slot).cast();
            header.msg_control = batch.controls.address(slot).cast();
        }
        batch
    }

    /// Receives up to `count_max` datagrams, at most [`BATCH_SIZE`]. With `wait`, blocks for the first, as long as the
    /// socket's receive timeout says; else returns at once. Returns how many came, 0 if none did in time.
    pub(super) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        wait: bool,
        count_max: usize,
    ) -> io::Result<usize> {
        for message in &mut self.incoming[..self.dirty_count] {
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            message.msg_hdr.msg_controllen = control::CONTROL_SIZE;
            message.msg_hdr.msg_flags = 0;
        }
        self.dirty_count = 0;
        let flags = if wait { libc::MSG_WAITFORONE } else { libc::MSG_DONTWAIT };
        // SAFETY: the headers point to live memory of this batch, of the sizes that they give, to which no reference
        // exists now.
        self.dirty_count = unsafe { receive(socket, &mut self.incoming[..count_max], flags) }?;
        Ok(self.dirty_count)
    }

    /// Lends the first `count` datagrams, as the last [`Batch::receive`] left them, to `handler`, sends the early
    /// packets that it has, and prepares the responses that it wrote for [`Batch::flush`]. `number` is that of `socket`
    /// in its engine. Datagrams that the kernel did not stamp are stamped now.
    pub(super) fn respond(
        &mut self,
        count: usize,
        number: usize,
        socket: BorrowedFd<'_>,
        handler: &mut impl Handler,
    ) -> Flushed {
        let mut paths = [ReplyPath { socket: number, asked: None }; BATCH_SIZE];
        let mut received = [NtpTime::ZERO; BATCH_SIZE];
        for ((message, path), received) in self.incoming[..count].iter().zip(&mut paths).zip(&mut received) {
            // SAFETY: the kernel has filled this message's control part; nothing writes to it now.
            let ancillary = unsafe { control::read(&message.msg_hdr) };
            path.asked = ancillary.asked;
            //= rfc5905#7.3-7
            *received = ancillary.received.unwrap_or_else(|| handler.now());
        }
        let (mut sizes, mut starts) = ([0; BATCH_SIZE], [0; BATCH_SIZE]);
        self.lend(&received[..count], &paths, &mut sizes, |batch| handler.respond(batch, &paths[..count]));
        let mut flushed = Flushed::default();
        if !handler.early().is_empty() {
            for early in handler.early() {
                starts[early.index] = early.size;
            }
            // What lies before the start of a response is its early packet.
            self.prepare(&[0; BATCH_SIZE][..count], &starts, &paths);
            flushed = self.flush(socket);
            self.lend(&received[..count], &paths, &mut sizes, |batch| handler.finish(batch));
        }
        self.prepare(&starts[..count], &sizes, &paths);
        flushed
    }

    /// Lends a batch to `work`, which takes sizes of responses over and leaves others.
    fn lend(
        &mut self,
        received: &[NtpTime],
        paths: &[ReplyPath; BATCH_SIZE],
        sizes: &mut [usize; BATCH_SIZE],
        work: impl FnOnce(&mut [Datagram<'_>]),
    ) {
        let count = received.len();
        let mut datagrams: [MaybeUninit<Datagram<'_>>; BATCH_SIZE] =
            [const { MaybeUninit::uninit() }; BATCH_SIZE];
        for (slot, message) in self.incoming[..count].iter().enumerate() {
            // SAFETY: the kernel wrote an address there; no reference to it exists.
            let source = unsafe { self.sources.address(slot).read() };
            // SAFETY: `self` is borrowed mutably, and this is the only reference to this buffer while it is lent.
            let request = unsafe { &mut (*self.requests.address(slot)).octets };
            // SAFETY: likewise.
            let response = unsafe { &mut (*self.responses.address(slot)).octets };
            let size = (message.msg_len as usize).min(DATAGRAM_SIZE_MAX);
            datagrams[slot].write(Datagram {
                source: socket_address(&source),
                received: received[slot],
                truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                to_many: paths[slot].asked.is_some_and(|asked| asked.is_shared()),
                request: &mut request[..size],
                response,
                response_size: sizes[slot],
            });
        }
        // SAFETY: the first `count` datagrams were written just now; `MaybeUninit<T>` has the layout of `T`.
        let lent = unsafe { &mut *(&raw mut datagrams[..count] as *mut [Datagram<'_>]) };
        work(lent);
        for (size, datagram) in sizes.iter_mut().zip(&*lent) {
            *size = datagram.response_size;
        }
    }

    /// Prepares `sizes` octets of each response, from the octet in `starts` on; nothing where that is none.
    fn prepare(&mut self, starts: &[usize], sizes: &[usize; BATCH_SIZE], paths: &[ReplyPath; BATCH_SIZE]) {
        self.outgoing_count = 0;
        for (slot, (&start, &size)) in
            starts.iter().zip(sizes).enumerate().filter(|(_, (_, size))| **size > 0)
        {
            let start = start.min(DATAGRAM_SIZE_MAX);
            let octets = self.responses.address(slot).cast::<u8>().wrapping_add(start);
            self.response_parts[slot] =
                libc::iovec { iov_base: octets.cast(), iov_len: size.min(DATAGRAM_SIZE_MAX - start) };
            let header = &mut self.outgoing[self.outgoing_count].msg_hdr;
            header.msg_name = self.sources.address(slot).cast();
            header.msg_namelen = self.incoming[slot].msg_hdr.msg_namelen;
            header.msg_iov = self.response_parts.address(slot);
            header.msg_iovlen = 1;
            match paths[slot].asked {
                Some(asked) => {
                    let control = self.controls.address(slot);
                    header.msg_control = control.cast();
                    // SAFETY: what was received there has been read; nothing else uses this buffer.
                    header.msg_controllen = unsafe { control::write(control, asked) };
                }
                None => {
                    header.msg_control = ptr::null_mut();
                    header.msg_controllen = 0;
                }
            }
            self.outgoing_count += 1;
        }
    }

    /// Sends what was prepared. A datagram that cannot be sent is given up: its client will ask again, and a late
    /// answer would be a wrong one.
    pub(super) fn flush(&mut self, socket: BorrowedFd<'_>) -> Flushed {
        let mut flushed = Flushed::default();
        let mut at = 0;
        while at < self.outgoing_count {
            let rest = &mut self.outgoing[at..self.outgoing_count];
            // SAFETY: the headers point to live memory of this batch, of the sizes that they give, to which no
            // reference exists now.
            match unsafe { send(socket, rest) } {
                Ok(count @ 1..) => {
                    at += count;
                    flushed.sent += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // sendmmsg(2) reports an error only for the first datagram of a call: this one.
                result @ (Ok(0) | Err(_)) => {
                    at += 1;
                    flushed.failed += 1;
                    let is_full = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
                    flushed.blocked += usize::from(result.is_err_and(is_full));
                }
            }
        }
        self.outgoing_count = 0;
        flushed
    }
}

/// Sends the datagrams of these headers without waiting; returns how many left, the first ones.
///
/// # Errors
/// The kernel's, if the first of them cannot be sent.
///
/// # Safety
/// What the headers point to lives, is as large as they say, and is not referred to during the call.
pub(super) unsafe fn send(socket: BorrowedFd<'_>, headers: &mut [libc::mmsghdr]) -> io::Result<usize> {
    let (first, count) = (headers.as_mut_ptr(), headers.len() as libc::c_uint);
    // SAFETY: sendmmsg(2) writes to the headers, of which it is told the number, and reads what they point to, for
    // which the caller answers.
    let count = unsafe { libc::sendmmsg(socket.as_raw_fd(), first, count, libc::MSG_DONTWAIT) };
    if count < 0 { Err(io::Error::last_os_error()) } else { Ok(count as usize) }
}

/// Receives as many datagrams as there are headers, at most; returns how many came, 0 if none did.
///
/// # Errors
/// The kernel's; that nothing came in time, or that a signal came first, is none.
///
/// # Safety
/// What the headers point to lives, is as large as they say, and is not referred to during the call.
pub(super) unsafe fn receive(
    socket: BorrowedFd<'_>,
    headers: &mut [libc::mmsghdr],
    flags: libc::c_int,
) -> io::Result<usize> {
    let (first, count) = (headers.as_mut_ptr(), headers.len() as libc::c_uint);
    // SAFETY: recvmmsg(2) writes to the headers, of which it is told the number, and to what they point to, for which
    // the caller answers.
    let count = unsafe { libc::recvmmsg(socket.as_raw_fd(), first, count, flags, ptr::null_mut()) };
    if count >= 0 {
        return Ok(count as usize);
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}

fn socket_address(storage: &libc::sockaddr_storage) -> SocketAddr {
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET6 => {
            // SAFETY: the family says which structure the storage holds; storage is as large and aligned as any.
            let v6 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
            SocketAddrV6::new(
                Ipv6Addr::from(v6.sin6_addr.s6_addr),
                u16::from_be(v6.sin6_port),
                u32::from_be(v6.sin6_flowinfo),
                v6.sin6_scope_id,
            )
            .into()
        }
        _ => {
            // SAFETY: sockets here are of the two internet families. A zeroed storage reads as 0.0.0.0:0.
            let v4 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
            SocketAddrV4::new(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)), u16::from_be(v4.sin_port))
                .into()
        }
    }
}
