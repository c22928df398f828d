//! The bare floor: an echo that does nothing but move datagrams, and the generator that loads it and every server.
//!
//! Both talk to the kernel directly and share no code with the engine that they are compared with.
#![expect(unsafe_code, reason = "the floor must not share the engine it is compared with")]

use std::io;
use std::mem;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::{Duration, Instant};

const BATCH: usize = 64;
const SIZE: usize = 2048;

/// Message headers with a buffer, a name and a control part each.
struct Messages {
    headers: Vec<libc::mmsghdr>,
    parts: Vec<libc::iovec>,
    names: Vec<libc::sockaddr_storage>,
    controls: Vec<[u64; 16]>,
    buffers: Vec<[u8; SIZE]>,
}

impl Messages {
    fn new() -> Self {
        // SAFETY: integers and pointers, for which zeros are values.
        let header = unsafe { mem::zeroed::<libc::mmsghdr>() };
        // SAFETY: integers and octets, likewise.
        let name = unsafe { mem::zeroed::<libc::sockaddr_storage>() };
        let part = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        Messages {
            headers: vec![header; BATCH],
            parts: vec![part; BATCH],
            names: vec![name; BATCH],
            controls: vec![[0; 16]; BATCH],
            buffers: vec![[0; SIZE]; BATCH],
        }
    }

    /// Points every header at its own parts, with or without name and control part.
    fn point(&mut self, named: bool) {
        for index in 0..BATCH {
            self.parts[index] =
                libc::iovec { iov_base: self.buffers[index].as_mut_ptr().cast(), iov_len: SIZE };
            let header = &mut self.headers[index].msg_hdr;
            header.msg_iov = &raw mut self.parts[index];
            header.msg_iovlen = 1;
            if named {
                header.msg_name = (&raw mut self.names[index]).cast();
                header.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
                header.msg_control = self.controls[index].as_mut_ptr().cast();
                header.msg_controllen = size_of::<[u64; 16]>();
            }
        }
    }

    fn receive(&mut self, socket: &UdpSocket, flags: libc::c_int) -> io::Result<usize> {
        // SAFETY: `point` has just made every header point to live memory of this object.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                BATCH as u32,
                flags,
                ptr::null_mut(),
            )
        };
        if count >= 0 { Ok(count as usize) } else { Err(io::Error::last_os_error()) }
    }

    fn send(&mut self, socket: &UdpSocket, count: usize) -> usize {
        // SAFETY: as in `receive`; the first `count` parts hold what is to be sent.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), count as u32, 0) };
        usize::try_from(sent).unwrap_or(0)
    }
}

fn set(socket: &UdpSocket, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: setsockopt(2) reads an int from `value`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as u32,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends every datagram back, for ever. Receive stamps are on, and packet information on a wildcard address, which is
/// then sent back too, as a server must.
pub(crate) fn echo(address: SocketAddr) -> io::Result<()> {
    let socket = UdpSocket::bind(address)?;
    set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 4 << 20)?;
    let wildcard = address.ip().is_unspecified();
    if wildcard {
        set(&socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
    }
    let mut messages = Messages::new();
    loop {
        messages.point(true);
        let count = messages.receive(&socket, libc::MSG_WAITFORONE)?;
        for index in 0..count {
            messages.parts[index].iov_len = messages.headers[index].msg_len as usize;
            let header = &mut messages.headers[index].msg_hdr;
            header.msg_controllen =
                if wildcard { packet_info(&mut messages.controls[index], header) } else { 0 };
        }
        messages.send(&socket, count);
    }
}

/// Reduces what was received beside a datagram to the packet information that is to be sent; returns its size.
fn packet_info(control: &mut [u64; 16], header: &libc::msghdr) -> usize {
    // SAFETY: the kernel has filled the control part that the header points to, which is `control`.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: the CMSG functions return whole headers inside the control part, or null.
        let libc::cmsghdr { cmsg_level, cmsg_type, .. } = unsafe { message.read() };
        if (cmsg_level, cmsg_type) == (libc::IPPROTO_IP, libc::IP_PKTINFO) {
            // SAFETY: computing a size touches no memory.
            let space = unsafe { libc::CMSG_SPACE(size_of::<libc::in_pktinfo>() as u32) } as usize;
            // SAFETY: both lie within `control`, and may overlap.
            unsafe { ptr::copy(message.cast::<u8>(), control.as_mut_ptr().cast(), space) };
            return space;
        }
        // SAFETY: as above.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    0
}

/// What a load of one server brought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    pub(crate) invalid: u64,
    pub(crate) seconds: f64,
}

/// How many requests are on their way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) socket_count: usize,
    /// Requests in flight on each socket.
    pub(crate) window: usize,
    /// What is on its way for longer is lost.
    pub(crate) patience: Duration,
}

/// How long there may be no answer at all. A thread on a busy machine may take a while to begin.
const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// Keeps the window of each connected socket full for `duration`, or until there is an answer. Requests are taken in
/// turn from `requests`; `check` is shown every answer and says whether it is good.
pub(crate) fn generate(
    server: SocketAddr,
    requests: &[Vec<u8>],
    Flow { socket_count, window, patience }: Flow,
    duration: Duration,
    mut check: impl FnMut(&mut [u8]) -> bool,
) -> io::Result<Load> {
    let any: SocketAddr = if server.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let sockets: Vec<UdpSocket> = (0..socket_count)
        .map(|_| {
            let socket = UdpSocket::bind(any)?;
            socket.connect(server)?;
            set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 4 << 20)?;
            Ok(socket)
        })
        .collect::<io::Result<_>>()?;
    let mut in_flight = vec![0usize; socket_count];
    let mut last_answer = vec![Instant::now(); socket_count];
    let (mut outgoing, mut incoming) = (Messages::new(), Messages::new());
    let mut load = Load::default();
    let mut next = 0;
    let start = Instant::now();
    while start.elapsed() < duration || (load.answered == 0 && start.elapsed() < FIRST_ANSWER) {
        for (index, socket) in sockets.iter().enumerate() {
            if in_flight[index] > 0 && last_answer[index].elapsed() > patience {
                in_flight[index] = 0;
            }
            let count = (window - in_flight[index]).min(BATCH);
            // Few large calls cost less than many small ones.
            if count >= BATCH / 2 || in_flight[index] == 0 {
                outgoing.point(false);
                for slot in 0..count {
                    let request = &requests[next % requests.len()];
                    next += 1;
                    outgoing.parts[slot] =
                        libc::iovec { iov_base: request.as_ptr().cast_mut().cast(), iov_len: request.len() };
                }
                let sent = outgoing.send(socket, count);
                in_flight[index] += sent;
                load.sent += sent as u64;
            }
            incoming.point(false);
            let count = incoming.receive(socket, libc::MSG_DONTWAIT).unwrap_or(0);
            if count > 0 {
                last_answer[index] = Instant::now();
                in_flight[index] = in_flight[index].saturating_sub(count);
            }
            for slot in 0..count {
                let size = incoming.headers[slot].msg_len as usize;
                match check(&mut incoming.buffers[slot][..size.min(SIZE)]) {
                    true => load.answered += 1,
                    false => load.invalid += 1,
                }
            }
        }
    }
    load.seconds = start.elapsed().as_secs_f64();
    Ok(load)
}
