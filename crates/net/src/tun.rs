//! TUN devices: interfaces whose packets a process reads and writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// Creates the device `name` in the network namespace of the calling thread. A read takes one IP packet that the
/// kernel routed into the device, a write hands it one, both without any header before it; neither blocks. The device
/// goes away with the file. tun(4), `linux/if_tun.h`.
///
/// # Errors
/// If the name is empty or longer than 15 octets, is taken, or the process lacks `CAP_NET_ADMIN`.
pub fn create(name: &str) -> io::Result<File> {
    // SAFETY: `ifreq` is a plain C structure of octets, integers and pointers, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last octet stays zero: the kernel wants a C string.
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("no interface can be named {name:?}"),
        ));
    }
    for (slot, octet) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *slot = octet as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which outlives the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result == 0 { Ok(file) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_interface_can_have_are_refused() {
        for name in ["", "sixteen-octets-1"] {
            assert_eq!(create(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
    }
}
