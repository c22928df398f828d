//! Asking a process of ours to end.

use std::io;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

/// Sends SIGTERM to a child that has not been waited for, so that its number is still its own.
///
/// # Errors
/// If it may not be signalled, as one that has become another user.
pub fn terminate(child: &Child) -> io::Result<()> {
    Ok(kill_process(Pid::from_child(child), Signal::TERM)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn child_ends_by_the_signal() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        terminate(&child).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(15));
    }
}
