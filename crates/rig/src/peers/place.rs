//! Where a program of others runs.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::hosts::{self, Host, Hosts};

/// A host and a processor, or this machine's and any. It does not keep hosts: what runs there ends before they do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    namespace: Option<String>,
    processor: Option<usize>,
}

impl Place {
    /// This machine, wherever this process is.
    #[must_use]
    pub fn here() -> Self {
        Place::default()
    }

    /// One of the hosts.
    #[must_use]
    pub fn on(hosts: &Hosts, host: Host) -> Self {
        Place { namespace: Some(hosts.name(host).to_owned()), processor: None }
    }

    /// The same with one processor, by its number.
    #[must_use]
    pub fn pinned_to(self, processor: usize) -> Self {
        Place { processor: Some(processor), ..self }
    }

    /// A command that will run there. Programs replace each other, so the child is the program itself.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut words = Vec::new();
        if let Some(namespace) = &self.namespace {
            words.extend(["ip", "netns", "exec", namespace].map(str::to_owned));
        }
        if let Some(processor) = self.processor {
            words.extend(["taskset".to_owned(), "-c".to_owned(), processor.to_string()]);
        }
        let Some((first, rest)) = words.split_first() else { return Command::new(program) };
        let mut command = Command::new(first);
        command.args(rest).arg(program);
        command
    }

    /// Does `work` there, as [`Hosts::within`] does, on whatever processor.
    ///
    /// # Errors
    /// If there is no such host any more, or this process may not enter it.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        match &self.namespace {
            Some(namespace) => hosts::within(namespace, work),
            None => Ok(work()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_enters_its_host_and_its_processor() {
        let words = |place: &Place| {
            let command = place.command(Path::new("/usr/bin/true"));
            let mut words = vec![command.get_program().to_owned()];
            words.extend(command.get_args().map(ToOwned::to_owned));
            words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(words(&Place::here()), "/usr/bin/true");
        assert_eq!(words(&Place::here().pinned_to(1)), "taskset -c 1 /usr/bin/true");
        let host = Place { namespace: Some("atk-1-0-s".to_owned()), processor: Some(0) };
        assert_eq!(words(&host), "ip netns exec atk-1-0-s taskset -c 0 /usr/bin/true");
        assert_eq!(Place::here().within(|| 7).unwrap(), 7);
        assert!(Place { processor: None, namespace: Some("no-such-host".to_owned()) }.within(|| ()).is_err());
    }
}
