//! What a serving process gives up for good once its ports are bound, so that an attacker who takes it over gains
//! little.
//!
//! - Of the process: new privileges, capabilities, core files, being read by others of the same user; and, by Landlock,
//!   every file but those that are read again and the state directory (`landlock`).
//! - Of each thread: every system call that its kind does not make (`filter`).
//!
//! Each is used where the kernel has it, and what is missing is said once. `server.containment = "off"` switches all of
//! it off, except that root still becomes another user. A node that shares its process with others, as in the demo,
//! only has the filters of its threads.

mod filter;
mod landlock;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use authentick_net::process::leave_signals_to_others;
use authentick_net::{privilege, refusal};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

use crate::config::{Config, ConfigError};
use filter::Program;

/// The kinds of threads that a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// Answers requests for time.
    Packet,
    /// Exchanges keys over TLS.
    KeyExchange,
    /// Does the public-key work of ANTP.
    PublicKey,
    /// Serves metrics.
    Metrics,
    /// Reads the clock's state.
    Clock,
    /// Looks after keys and files.
    Supervisor,
    /// Talks to a memcached server that keys are shared through.
    Fleet,
    /// Writes the log.
    Log,
    /// Looks a name up, in a process of its own.
    Names,
    /// Starts and stops the others, and hears signals.
    Control,
}

impl ThreadKind {
    /// All of them; a kind's index is the data of its filter's traps.
    pub const ALL: [ThreadKind; 10] = [
        ThreadKind::Packet,
        ThreadKind::KeyExchange,
        ThreadKind::PublicKey,
        ThreadKind::Metrics,
        ThreadKind::Clock,
        ThreadKind::Supervisor,
        ThreadKind::Fleet,
        ThreadKind::Log,
        ThreadKind::Names,
        ThreadKind::Control,
    ];

    /// The name in metrics and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ThreadKind::Packet => "packet",
            ThreadKind::KeyExchange => "key-exchange",
            ThreadKind::PublicKey => "public-key",
            ThreadKind::Metrics => "metrics",
            ThreadKind::Clock => "clock",
            ThreadKind::Supervisor => "supervisor",
            ThreadKind::Fleet => "fleet",
            ThreadKind::Log => "log",
            ThreadKind::Names => "names",
            ThreadKind::Control => "control",
        }
    }

    /// System calls that threads of this kind were refused since the process began.
    #[must_use]
    pub fn refused_count(self) -> u64 {
        refusal::count(self as usize)
    }

    /// Their numbers, each once.
    pub fn refused_calls(self) -> impl Iterator<Item = usize> {
        refusal::calls(self as usize)
    }
}

/// Who else uses a node's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// Nobody: everything that a process can give up is given up.
    Own,
    /// Others, that may need what a server does not.
    Shared,
}

/// The filters of a node's threads, and what its process can read.
#[derive(Clone, Debug)]
pub struct Containment {
    process: Process,
    /// By kind; absent if they are off or cannot be had.
    programs: Option<Arc<Vec<Program>>>,
    /// What can be read besides the state directory; absent if there is no limit.
    readable: Option<Arc<landlock::Ruled>>,
}

impl Containment {
    /// Gives up what `process` can, and makes the filters that threads put on; says what is in force. To be called when
    /// ports are bound and root's rights are gone, and before there is a second thread.
    pub(crate) fn begin(config: &Config, process: Process) -> Self {
        if !config.contain {
            log::warn!("not contained: server.containment is \"off\"");
            return Containment { process: Process::Shared, programs: None, readable: None };
        }
        let mut report = Report::default();
        // Messages name the user, and the user database is out of reach soon.
        drop(privilege::acting_user());
        // This comes before the files that say what the kernel has become unreachable.
        let programs = programs();
        shrink_memory_once();
        let mut readable = None;
        if process == Process::Own {
            give_up(&mut report);
            let folders = landlock::readable(config);
            let state = fs::canonicalize(config.state.path());
            let ruled = landlock::ruled(folders.iter().cloned().chain(state));
            let restricted = landlock::restrict(&folders, config);
            readable = restricted.is_ok().then(|| Arc::new(ruled));
            report.add("Landlock", restricted.map(|kept| format!("files by {kept}")));
        }
        report.add("system call filters", programs.as_ref().map(|_| "system calls by thread"));
        if process == Process::Own {
            log::info!("{report}");
        }
        Containment { process, programs: programs.ok().map(Arc::new), readable }
    }

    /// Whether the server can still read what a path of the configuration leads to, as far as containment goes.
    pub(crate) fn may_read(&self, path: &Path) -> bool {
        self.readable.as_ref().is_none_or(|readable| landlock::leads_into(readable, path))
    }

    /// Does for a thread that had started before [`Containment::begin`] what that does for all after it, and
    /// [`Containment::enter`]. It opens no files from here on.
    pub(crate) fn enter_late(&self, kind: ThreadKind) {
        if self.process == Process::Own {
            // What is missing here is missing in the whole process, and was said of it.
            let _ = set_no_new_privs(true);
            let _ = drop_capabilities();
            let _ = landlock::restrict_to_nothing();
        }
        self.enter(kind);
    }

    /// An error about files of the configuration, with the remedy that it has if containment is its cause.
    pub(crate) fn explain<'a>(
        &self,
        error: ConfigError,
        files: impl IntoIterator<Item = &'a Path>,
    ) -> ConfigError {
        match error.is_permission && files.into_iter().any(|file| !self.may_read(file)) {
            true => ConfigError { remedy: UNREACHABLE.to_owned(), ..error },
            false => error,
        }
    }

    /// Installs the filter of its kind on the calling thread, for good. The thread may not be able to repeat what it
    /// did before.
    pub fn enter(&self, kind: ThreadKind) {
        let Some(programs) = &self.programs else { return };
        let hears_signals = kind == ThreadKind::Control;
        let alone = if hears_signals { Ok(()) } else { leave_signals_to_others() };
        if let Err(error) = alone.and_then(|()| programs[kind as usize].apply()) {
            log::error!("a {} thread has no system call filter: {error}", kind.name());
        }
        #[cfg(test)]
        tests::trespass(kind);
    }
}

/// Remedy for a file that containment does not let the server read.
pub(crate) const UNREACHABLE: &str = "a restart is needed: a contained server reads only folders that its \
                                      configuration named when it started, and one that was removed and made again \
                                      is another folder";

/// Which refused calls have been logged.
#[derive(Debug, Default)]
pub(crate) struct Refusals(BTreeSet<(&'static str, usize)>);

impl Refusals {
    /// Logs new ones: each call once for each kind of thread, however often it is tried.
    pub(crate) fn tell(&mut self) {
        for kind in ThreadKind::ALL {
            for call in kind.refused_calls() {
                if self.0.insert((kind.name(), call)) {
                    log::error!(
                        "a {} thread was refused system call {call}, for which this program has no use; `ausyscall \
                         {call}` names it, and who made it may be an intruder",
                        kind.name(),
                    );
                }
            }
        }
    }
}

/// What is in force, and what is not.
#[derive(Debug, Default)]
struct Report {
    kept: Vec<String>,
    missing: Vec<String>,
}

impl Report {
    fn add(&mut self, what: &str, result: Result<impl Into<String>, impl fmt::Display>) {
        match result {
            Ok(kept) => self.kept.push(kept.into()),
            Err(error) => self.missing.push(format!("{what} ({error})")),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "contained: {}", self.kept.join(", "))?;
        match self.missing.is_empty() {
            true => Ok(()),
            false => write!(f, "; not here: {}", self.missing.join(", ")),
        }
    }
}

/// Drops what would let the process, or what it starts, have capabilities again. To be called while root's rights are
/// still there: without them the bounding set stays, and `no_new_privs` keeps it from mattering.
pub(crate) fn drop_bounding_set(config: &Config, process: Process) {
    if !config.contain || process == Process::Shared {
        return;
    }
    drop_bounding_capabilities();
}

/// The same for the calling thread, and those that it starts.
pub(crate) fn drop_bounding_capabilities() {
    for capability in CapabilitySet::all().iter() {
        // The kernel has fewer than are known here, or more; one that is not allowed to go stays.
        let _ = remove_capability_from_bounding_set(capability);
    }
}

/// Gives up what a process can, but for files and system calls, in one that is not the server itself.
pub(crate) fn give_up_quietly() {
    // The server says what this kernel lacks.
    give_up(&mut Report::default());
}

/// Gives up what looking up a name does not take, in a process or thread that does nothing else: all files but those of
/// the resolver, which are read; connections of TCP but to resolvers; and all system calls but a list.
pub(crate) fn contain_lookup(config: &Config) {
    if !config.contain {
        return;
    }
    give_up_quietly();
    let _ = landlock::restrict_to_resolver();
    let _ = refusal::install();
    if let Ok(program) = Program::new(ThreadKind::Names) {
        let _ = program.apply();
    }
    #[cfg(test)]
    tests::trespass(ThreadKind::Names);
}

fn give_up(report: &mut Report) {
    report.add("no_new_privs", set_no_new_privs(true).map(|()| "no new privileges"));
    report.add("dropped capabilities", drop_capabilities().map(|()| "no capabilities"));
    let nothing = Rlimit { current: Some(0), maximum: Some(0) };
    report.add("a limit on core files", setrlimit(Resource::Core, nothing).map(|()| "no core files"));
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    report.add("hidden memory", hidden.map(|()| "not dumpable"));
}

fn drop_capabilities() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

fn programs() -> io::Result<Vec<Program>> {
    if !has_traps() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel has none"));
    }
    let programs: Result<Vec<Program>, _> = ThreadKind::ALL.into_iter().map(Program::new).collect();
    let programs = programs?;
    refusal::install()?;
    Ok(programs)
}

/// Has the memory of a thread shrink. When that happens for the first time in a process, glibc reads
/// /proc/sys/vm/overcommit_memory, and no thread of ours may open files later: its filter would count an intruder.
fn shrink_memory_once() {
    /// Below what is mapped for itself, and together above what is kept for the next one: see mallopt(3).
    const BLOCKS: [usize; 8] = [64 << 10; 8];
    let shrink = || drop(std::hint::black_box(BLOCKS.map(|size| vec![1_u8; size])));
    // A thread has an arena of its own, and only such arenas are looked after like this.
    if let Ok(thread) = std::thread::Builder::new().spawn(shrink) {
        // It cannot panic, and if it did, nothing would be lost but this precaution.
        let _ = thread.join();
    }
}

/// Whether the kernel has filters that trap. seccomp(2), "/proc interfaces".
fn has_traps() -> bool {
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail");
    actions.is_ok_and(|actions| actions.split_whitespace().any(|action| action == "trap"))
}

/// What this host has to contain a server with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The version of Landlock; or why there is none.
    pub landlock: Result<u32, String>,
    /// Whether threads can have system call filters.
    pub filters: bool,
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.landlock {
            Ok(version) => write!(f, "files by Landlock {version}")?,
            Err(reason) => write!(f, "files by their owners alone, without Landlock: {reason}")?,
        }
        match self.filters {
            true => f.write_str("; system calls by thread"),
            false => f.write_str("; no system call filters: this kernel or processor has none"),
        }
    }
}

/// Finds out what there is. Changes nothing permanently.
#[must_use]
pub fn offer() -> Offer {
    Offer { landlock: landlock::version(), filters: has_traps() && Program::new(ThreadKind::Packet).is_ok() }
}

#[cfg(test)]
mod tests;
