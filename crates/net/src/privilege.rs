//! Giving rights away: from root to an unprivileged user, for the whole process and for good.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;

/// A user of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    uid: libc::uid_t,
    gid: libc::gid_t,
}

/// Looks a user up; `None` if there is none of that name.
///
/// # Errors
/// If the user database cannot be read.
pub fn find_user(name: &str) -> io::Result<Option<User>> {
    let Ok(c_name) = CString::new(name) else { return Ok(None) };
    let mut buffer = vec![0; 16 * 1024];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to live objects of the sizes given; getpwnam_r(3) writes nowhere else.
    let error = unsafe {
        libc::getpwnam_r(
            c_name.as_ptr(),
            entry.as_mut_ptr(),
            buffer.as_mut_ptr(),
            buffer.len(),
            &raw mut found,
        )
    };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    if found.is_null() {
        return Ok(None);
    }
    // SAFETY: getpwnam_r(3) returned 0 and a result, so it has filled the entry.
    let entry = unsafe { entry.assume_init() };
    Ok(Some(User { name: name.to_owned(), uid: entry.pw_uid, gid: entry.pw_gid }))
}

/// Whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this process may have ports below 1024, or below what the system has made of that limit. Found by trying.
#[must_use]
pub fn may_bind_low_ports() -> bool {
    // Downwards from the last one: few of them are in use.
    let tried = (1..1024).rev().map(|port| std::net::UdpSocket::bind(("127.0.0.1", port)));
    let mut decided = tried.filter_map(|result| match result {
        Ok(_) => Some(true),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => None,
        Err(_) => Some(false),
    });
    decided.next().unwrap_or(false)
}

impl User {
    /// Makes `path` belong to this user.
    ///
    /// # Errors
    /// If the process may not do that.
    pub fn own(&self, path: &std::path::Path) -> io::Result<()> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
    }

    /// Makes the whole process run as this user, without supplementary groups, capabilities, or a way to get any
    /// back. Sockets that are open stay usable.
    ///
    /// # Errors
    /// If a step fails; the process must then not go on.
    pub fn become_user(&self) -> io::Result<()> {
        // SAFETY: setgroups(2) with a count of zero reads no memory.
        checked(unsafe { libc::setgroups(0, std::ptr::null()) })?;
        // SAFETY: setgid(2) takes no pointer; glibc applies it to all threads.
        checked(unsafe { libc::setgid(self.gid) })?;
        // SAFETY: setuid(2) takes no pointer; glibc applies it to all threads.
        checked(unsafe { libc::setuid(self.uid) })?;
        rustix::thread::set_no_new_privs(true)?;
        if self.uid != 0 && is_root() {
            return Err(io::Error::other("still root after setuid"));
        }
        Ok(())
    }
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        assert_eq!(find_user("root").unwrap().unwrap().uid, 0);
        assert_eq!(find_user("no such user").unwrap(), None);
        assert_eq!(find_user("nul\0octet").unwrap(), None);
    }
}
