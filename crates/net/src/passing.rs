//! Errors of a host that go away without a change of the configuration: a disk that is full, a port that another
//! process still has, an interface or descriptors that are missing for a while.
//!
//! A missing right and a file system that is mounted read-only are not among them.

use std::io::{self, ErrorKind};

/// Whether the same call may succeed later, in the same configuration.
#[must_use]
pub fn may_pass(error: &io::Error) -> bool {
    let by_kind = matches!(
        error.kind(),
        ErrorKind::AddrInUse
            | ErrorKind::AddrNotAvailable
            | ErrorKind::HostUnreachable
            | ErrorKind::Interrupted
            | ErrorKind::NetworkDown
            | ErrorKind::NetworkUnreachable
            | ErrorKind::OutOfMemory
            | ErrorKind::QuotaExceeded
            | ErrorKind::ResourceBusy
            | ErrorKind::StaleNetworkFileHandle
            | ErrorKind::StorageFull
            | ErrorKind::TimedOut
            | ErrorKind::WouldBlock
    );
    // Which have no kind of their own.
    let by_number = matches!(
        error.raw_os_error(),
        Some(libc::EIO | libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENODEV | libc::ENXIO)
    );
    by_kind || by_number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_states_of_the_host_pass() {
        let may_pass = |number| may_pass(&io::Error::from_raw_os_error(number));
        for number in [
            libc::EADDRINUSE,
            libc::EADDRNOTAVAIL,
            libc::EAGAIN,
            libc::EDQUOT,
            libc::EIO,
            libc::EMFILE,
            libc::ENFILE,
            libc::ENOBUFS,
            libc::ENODEV,
            libc::ENOMEM,
            libc::ENOSPC,
            libc::ESTALE,
        ] {
            assert!(may_pass(number), "{}", io::Error::from_raw_os_error(number));
        }
        for number in [
            libc::EACCES,
            libc::EPERM,
            libc::EINVAL,
            libc::ENOENT,
            libc::EROFS,
            libc::EAFNOSUPPORT,
            libc::ELOOP,
        ] {
            assert!(!may_pass(number), "{}", io::Error::from_raw_os_error(number));
        }
    }
}
