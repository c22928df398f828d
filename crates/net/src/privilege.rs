//! Giving rights away: from root to an unprivileged user, for the whole process and for good.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

/// A user of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name; the number, if there is none.
    pub name: String,
    uid: libc::uid_t,
    gid: libc::gid_t,
    is_named: bool,
}

/// Looks a user up; `None` if there is none of that name.
///
/// # Errors
/// If the user database cannot be read.
pub fn find_user(name: &str) -> io::Result<Option<User>> {
    let Ok(c_name) = CString::new(name) else { return Ok(None) };
    look_up_user(|entry, buffer, found| {
        // SAFETY: all pointers are to live objects of the sizes given; getpwnam_r(3) writes nowhere else.
        unsafe { libc::getpwnam_r(c_name.as_ptr(), entry, buffer.as_mut_ptr(), buffer.len(), found) }
    })
}

/// Looks up who has this number; `None` if nobody has.
///
/// # Errors
/// If the user database cannot be read.
pub fn find_user_by_id(uid: u32) -> io::Result<Option<User>> {
    look_up_user(|entry, buffer, found| {
        // SAFETY: all pointers are to live objects of the sizes given; getpwuid_r(3) writes nowhere else.
        unsafe { libc::getpwuid_r(uid, entry, buffer.as_mut_ptr(), buffer.len(), found) }
    })
}

/// The number of a group; `None` if there is none of that name.
///
/// # Errors
/// If the group database cannot be read.
pub fn find_group(name: &str) -> io::Result<Option<u32>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    // Room for the names of a group's members.
    look_up::<libc::group, _>(
        256 * 1024,
        |entry, strings, found| {
            // SAFETY: all pointers are to live objects of the sizes given; getgrnam_r(3) writes nowhere else.
            unsafe { libc::getgrnam_r(name.as_ptr(), entry, strings.as_mut_ptr(), strings.len(), found) }
        },
        |entry| entry.gr_gid,
    )
}

/// The number of the user as whom this process acts.
#[must_use]
pub fn acting_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The name of the user as whom this process acts, for messages; the number, if there is none. It is looked up once for
/// each user that the process becomes, so a process that has asked before it gave up its rights still knows it then.
#[must_use]
pub fn acting_user() -> String {
    static KNOWN: Mutex<Option<(u32, String)>> = Mutex::new(None);
    let uid = acting_uid();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some((user, name)) if *user == uid => name.clone(),
        Some(_) | None => {
            let name = find_user_by_id(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
            *known = Some((uid, name.clone()));
            name
        }
    }
}

/// Asks the user database by one of its functions.
fn look_up_user(
    ask: impl FnOnce(*mut libc::passwd, &mut [libc::c_char], *mut *mut libc::passwd) -> libc::c_int,
) -> io::Result<Option<User>> {
    look_up(16 * 1024, ask, |entry: &libc::passwd| {
        // SAFETY: the name is a string with its end, in the buffer, which is alive.
        let name = unsafe { CStr::from_ptr(entry.pw_name) };
        let name = name.to_string_lossy().into_owned();
        User { name, uid: entry.pw_uid, gid: entry.pw_gid, is_named: true }
    })
}

/// Asks a database by one of its functions, which fills an entry, and `room` octets with its strings.
fn look_up<E, T>(
    room: usize,
    ask: impl FnOnce(*mut E, &mut [libc::c_char], *mut *mut E) -> libc::c_int,
    read: impl FnOnce(&E) -> T,
) -> io::Result<Option<T>> {
    let mut buffer = vec![0; room];
    let mut entry = MaybeUninit::<E>::uninit();
    let mut found = std::ptr::null_mut();
    let error = ask(entry.as_mut_ptr(), &mut buffer, &raw mut found);
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    if found.is_null() {
        return Ok(None);
    }
    // SAFETY: the function returned 0 and a result, so it has filled the entry.
    let entry = unsafe { entry.assume_init() };
    Ok(Some(read(&entry)))
}

/// Whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this process may bind a port. Found by trying, on a loopback address; the right is asked for before the use.
#[must_use]
pub fn may_bind(port: u16) -> bool {
    let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    !std::net::UdpSocket::bind(("127.0.0.1", port)).err().is_some_and(denied)
}

impl User {
    /// A user and a group by their numbers alone, who need not have a name.
    #[must_use]
    pub fn nameless(uid: u32, gid: u32) -> Self {
        User { name: uid.to_string(), uid, gid, is_named: false }
    }

    /// The numbers of the user and of its own group.
    #[must_use]
    pub const fn ids(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Makes the whole process run as this user, in the groups that the user database gives it, without capabilities,
    /// or a way to get any back. Sockets that are open stay usable.
    ///
    /// # Errors
    /// If a step fails; the process must then not go on.
    pub fn become_user(&self) -> io::Result<()> {
        if self.is_named {
            let name = CString::new(&*self.name)?;
            // SAFETY: the name is a string with its end, which initgroups(3) only reads.
            checked(unsafe { libc::initgroups(name.as_ptr(), self.gid) })?;
        } else {
            // SAFETY: setgroups(2) with a count of zero reads no memory.
            checked(unsafe { libc::setgroups(0, std::ptr::null()) })?;
        }
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
        let root = find_user("root").unwrap().unwrap();
        assert_eq!(root.ids(), (0, 0));
        assert_eq!(find_user_by_id(0).unwrap(), Some(root));
        assert_eq!(find_user_by_id(4_000_000_000).unwrap(), None);
        assert_eq!(find_user("no such user").unwrap(), None);
        assert_eq!(find_user("nul\0octet").unwrap(), None);
    }

    #[test]
    fn groups_are_found_by_name() {
        assert_eq!(find_group("root").unwrap(), Some(0));
        assert_eq!(find_group("no such group").unwrap(), None);
        assert_eq!(find_group("nul\0octet").unwrap(), None);
    }
}
