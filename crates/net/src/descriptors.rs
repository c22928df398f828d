//! How many descriptors this process may have, and how many it has.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process have as many descriptors as it may without asking anybody: the soft limit becomes the hard one.
/// Returns how many that is; `None` if there is no limit. The low soft limit is there for programs that use select(2),
/// getrlimit(2) and systemd.exec(5) say.
///
/// # Errors
/// If the kernel refuses; the old limit stays then.
pub fn raise_limit() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum)
}

/// How many descriptors this process may have; `None` if there is no limit.
#[must_use]
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// How many descriptors this process has.
///
/// # Errors
/// If there is no `/proc` to look into.
pub fn open_count() -> io::Result<usize> {
    // One of them is that of the folder itself.
    Ok(std::fs::read_dir("/proc/self/fd")?.count().saturating_sub(1))
}

/// Whether this process can open so many more descriptors.
///
/// # Errors
/// If it cannot: the system's reason.
pub fn have_room(count: usize) -> io::Result<()> {
    let first = std::fs::File::open("/dev/null")?;
    let copies: io::Result<Vec<_>> = (1..count).map(|_| first.try_clone()).collect();
    copies.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_the_hard_one_after_it_was_raised() {
        let hard = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise_limit().unwrap(), hard);
        assert_eq!(limit(), hard);
        assert_eq!(raise_limit().unwrap(), hard, "and can be raised again");
    }

    #[test]
    fn open_descriptors_are_counted() {
        // Other tests of this process open and close some meanwhile.
        let files: Vec<_> = (0..200).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        assert!(open_count().unwrap() > files.len());
    }
}
