//! How many descriptors a process may have.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files as far as the process may, and returns it. A client per port needs a descriptor per
/// client, and the usual soft limit is 1,024.
pub fn raise_limit() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    limit.current = limit.maximum;
    let raised = setrlimit(Resource::Nofile, limit).is_ok();
    let now = if raised { limit.maximum } else { before };
    now.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_raised_to_what_is_allowed() {
        let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        assert_eq!(raise_limit(), most);
        assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), most);
    }
}
