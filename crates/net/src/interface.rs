//! Network interfaces by their names, as zones of link-local addresses are written (RFC 4007 11).

use std::io;

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

/// The index of the interface of this name.
///
/// # Errors
/// `ENODEV` if there is none now; and if there is no descriptor left to ask by.
pub fn index_of(name: &str) -> io::Result<u32> {
    let asked = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(netdevice::name_to_index(&asked, name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_has_its_index_and_a_missing_one_none() {
        assert_eq!(index_of("lo").unwrap(), 1);
        assert_eq!(index_of("nosuchif0").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
