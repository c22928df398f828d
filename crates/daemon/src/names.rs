//! Names of the configuration, looked up while the server runs: a name may be known later than the server is started,
//! and move to another address.
//!
//! To look a name up takes files, sockets and libraries that no thread of a contained server may use. So a process of
//! its own does that (`process`), which is forked while the server has one thread and no secret. For each name there
//! is a pair of sockets: an octet from the server asks, and a `Reply` comes back. Which name that is, the process
//! knows from the configuration, so who takes the server over can have no other one looked up. A node that shares its
//! process with others has a thread for each name instead.
//!
//! **Invariant:** nothing here waits for a resolver.

mod process;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::Builder;
use std::time::{Duration, Instant};

use authentick_net::refusal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

use crate::config::{Config, Endpoint, Reference};
use crate::containment::ThreadKind;

/// How long after a look-up the next one of the same name is asked for, at least.
const RETRY: Duration = Duration::from_secs(5);
/// A look-up that takes longer is given up. The C library waits for 30 s at most, by default.
const LIMIT: Duration = Duration::from_secs(60);
/// Addresses of a name; more are left out.
const ADDRESS_COUNT_MAX: usize = 16;
/// Octets of a reply, and of the error in it.
const REPLY_SIZE_MAX: usize = 4096;
const ERROR_SIZE_MAX: usize = 200;

/// The names of a configuration on their way to who asks for them.
#[derive(Debug, Default)]
pub struct NameLookups(Vec<(Endpoint, OwnedFd)>);

impl NameLookups {
    /// Starts the process that looks up the names of `config`, if there are any, and asks it for each. The calling
    /// thread must be the only one. A server can do without the process, which the log says then.
    #[must_use]
    pub fn by_process(config: &Config) -> Self {
        Self::begin(config, |names| match names.is_empty() {
            true => Ok(()),
            false => process::start(config, &names),
        })
    }

    /// The same by a thread for each name.
    pub(crate) fn by_threads(config: &Config) -> Self {
        Self::begin(config, |names| {
            names.into_iter().try_for_each(|name| {
                let serve = move || while name.is_asked() && name.answer().is_ok() {};
                Builder::new().name("names".to_owned()).spawn(serve).map(drop)
            })
        })
    }

    fn begin(config: &Config, start: impl FnOnce(Vec<AnsweredName>) -> io::Result<()>) -> Self {
        let started = pairs(config).and_then(|(lookups, names)| start(names).map(|()| lookups));
        started.unwrap_or_else(|error| {
            log::error!("names of the configuration are not looked up: {error}; write addresses, or restart");
            NameLookups::default()
        })
    }

    /// The addresses of the upstream, if there is one.
    pub(crate) fn upstream(&mut self, config: &Config) -> Option<ServerAddresses> {
        match &config.reference {
            Reference::Upstream(server) => Some(self.addresses("server.reference.upstream", server)),
            Reference::Asserted { .. } | Reference::Kernel { .. } => None,
        }
    }

    /// The addresses of a server that the configuration names under `key`.
    pub(crate) fn addresses(&mut self, key: &'static str, server: &Endpoint) -> ServerAddresses {
        let place = self.0.iter().position(|(name, _)| name == server);
        let line = place.map(|place| self.0.swap_remove(place).1);
        let mut addresses = ServerAddresses { key, line, ..ServerAddresses::from(server.clone()) };
        addresses.want(Instant::now());
        addresses
    }
}

/// A pair for each name of a configuration: what the server gets of it, and what answers.
fn pairs(config: &Config) -> io::Result<(NameLookups, Vec<AnsweredName>)> {
    let upstream = match &config.reference {
        Reference::Upstream(server) => Some(server),
        Reference::Asserted { .. } | Reference::Kernel { .. } => None,
    };
    let (mut lookups, mut theirs) = (NameLookups::default(), Vec::new());
    for server in upstream.into_iter().chain(config.memcached_servers()) {
        if let Endpoint::Name { host, port } = server {
            let (ours, line) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
            lookups.0.push((server.clone(), ours));
            theirs.push(AnsweredName { host: host.clone(), port: *port, line });
        }
    }
    Ok((lookups, theirs))
}

/// The end of a pair that answers.
#[derive(Debug)]
struct AnsweredName {
    host: String,
    port: u16,
    line: OwnedFd,
}

impl AnsweredName {
    /// Waits for a question; false if there will be none any more.
    fn is_asked(&self) -> bool {
        loop {
            match recv(&self.line, &mut [0_u8; 16], RecvFlags::empty()) {
                Ok((count, _)) => return count > 0,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Looks the name up, which may take long, and says what came of it.
    fn answer(&self) -> io::Result<()> {
        #[expect(clippy::disallowed_methods, reason = "a process of its own waits for it")]
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let reply = Reply {
            found: found.map(Iterator::collect).map_err(|error| error.to_string()),
            refused: ThreadKind::Names.refused_calls().collect(),
        };
        send(&self.line, reply.emit().as_bytes(), SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// What came of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reply {
    found: Result<Vec<SocketAddr>, String>,
    /// System calls that the process was refused meanwhile.
    refused: Vec<usize>,
}

impl Reply {
    /// Two lines: addresses, or an error behind an exclamation mark; and the numbers of refused calls.
    fn emit(&self) -> String {
        let mut text = match &self.found {
            Ok(addresses) => {
                let texts: Vec<String> =
                    addresses.iter().take(ADDRESS_COUNT_MAX).map(ToString::to_string).collect();
                texts.join(" ")
            }
            Err(error) => {
                format!("!{}", error.replace('\n', " ").chars().take(ERROR_SIZE_MAX).collect::<String>())
            }
        };
        for (index, call) in self.refused.iter().enumerate() {
            write!(text, "{}{call}", if index == 0 { '\n' } else { ' ' }).expect("a string takes all");
        }
        text
    }

    /// `None` if it is none: the process may have been taken over by what answered it.
    fn parse(octets: &[u8], port: u16) -> Option<Self> {
        let text = std::str::from_utf8(octets).ok()?;
        let (found, refused) = text.split_once('\n').unwrap_or((text, ""));
        let of_port = |text: &str| {
            let mut address: SocketAddr = text.parse().ok()?;
            address.set_port(port);
            Some(address)
        };
        let found = match found.strip_prefix('!') {
            Some(error) => Err(error.chars().take(ERROR_SIZE_MAX).collect()),
            None => {
                Ok(found.split_whitespace().take(ADDRESS_COUNT_MAX).map(of_port).collect::<Option<_>>()?)
            }
        };
        let refused = refused.split_whitespace().map(|call| call.parse().ok()).collect::<Option<_>>()?;
        Some(Reply { found, refused })
    }
}

/// The addresses of a server, by turns: those of a name, as far as they are known, or the one that there is.
#[derive(Debug)]
pub(crate) struct ServerAddresses {
    server: Endpoint,
    /// Where the configuration names it.
    key: &'static str,
    known: Vec<SocketAddr>,
    at: usize,
    /// To who looks the name up.
    line: Option<OwnedFd>,
    /// Since when a reply is awaited.
    asked: Option<Instant>,
    /// Before this, nothing is asked again.
    next: Option<Instant>,
    /// Why there is no address, as the log has it.
    trouble: Option<String>,
}

impl From<Endpoint> for ServerAddresses {
    /// Those that are known without a look-up.
    fn from(server: Endpoint) -> Self {
        let known = match server {
            Endpoint::Address(address) => vec![address],
            Endpoint::Name { .. } => Vec::new(),
        };
        ServerAddresses { server, key: "", known, at: 0, line: None, asked: None, next: None, trouble: None }
    }
}

impl ServerAddresses {
    /// Those of a server, looked up here and now, which may take long. Without an error there is at least one.
    ///
    /// # Errors
    /// If there are none, or they are not found.
    pub(crate) fn look_up(server: &Endpoint) -> io::Result<Self> {
        let mut addresses = ServerAddresses::from(server.clone());
        if let Endpoint::Name { host, port } = server {
            #[expect(clippy::disallowed_methods, reason = "for `--check` and commands, which may wait")]
            let found = (host.as_str(), *port).to_socket_addrs()?;
            addresses.known = found.collect();
        }
        match addresses.known.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "it has no address")),
            false => Ok(addresses),
        }
    }

    /// What the configuration names.
    pub(crate) const fn server(&self) -> &Endpoint {
        &self.server
    }

    /// All that are known.
    pub(crate) fn known(&self) -> &[SocketAddr] {
        &self.known
    }

    /// The one to ask; `None` before the first look-up has succeeded.
    pub(crate) fn current(&self) -> Option<SocketAddr> {
        self.known.get(self.at).copied()
    }

    /// Why there is none.
    pub(crate) fn trouble(&self) -> &str {
        self.trouble.as_deref().unwrap_or("no reply yet")
    }

    /// The next one is to be asked, as the current one is silent.
    pub(crate) fn pass_over(&mut self) {
        self.at = (self.at + 1).checked_rem(self.known.len()).unwrap_or(0);
    }

    /// Leaves addresses out that may not be asked.
    pub(crate) fn retain(&mut self, is_good: impl FnMut(&SocketAddr) -> bool) {
        let current = self.current();
        self.known.retain(is_good);
        self.at = self.known.iter().position(|address| Some(*address) == current).unwrap_or(0);
    }

    /// Has the name looked up, unless that is under way or was done a moment ago. Does not wait.
    pub(crate) fn want(&mut self, now: Instant) {
        let Some(line) = &self.line else { return };
        let is_under_way =
            self.asked.is_some_and(|since| now.saturating_duration_since(since) < LIMIT + RETRY);
        if is_under_way || self.next.is_some_and(|next| now < next) {
            return;
        }
        self.asked = Some(now);
        // Who is gone is noticed where its reply is read.
        let _ = send(line, b"?", SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// The same, however long ago the last look-up was.
    pub(crate) fn want_again(&mut self, now: Instant) {
        self.next = None;
        self.want(now);
    }

    /// Waits until there is a reply to read, for `patience` at most.
    pub(crate) fn wait(&self, patience: Duration) {
        let (Some(line), Ok(patience)) = (&self.line, Timespec::try_from(patience)) else { return };
        // Where waiting fails, there has been none.
        let _ = poll(&mut [PollFd::new(line, PollFlags::IN)], Some(&patience));
    }

    /// Reads a reply, if there is one; whether other addresses are known now. With `keep` the current one answers, and
    /// stays whatever the name says.
    pub(crate) fn receive(&mut self, now: Instant, keep: bool) -> bool {
        let Some(line) = &self.line else { return false };
        let mut octets = [0; REPLY_SIZE_MAX];
        let size = match recv(line.as_fd(), &mut octets, RecvFlags::DONTWAIT) {
            Ok((1.., size)) => size,
            Err(Errno::AGAIN | Errno::INTR) => return false,
            Ok((0, _)) | Err(_) => {
                self.line = None;
                self.fail("the process that looks names up has ended; restart the server");
                return false;
            }
        };
        (self.asked, self.next) = (None, Some(now + RETRY));
        let reply = octets.get(..size).and_then(|octets| Reply::parse(octets, self.server.port()));
        let Some(Reply { found, refused }) = reply else {
            self.fail("the process that looks names up sent no addresses");
            return false;
        };
        refused.into_iter().for_each(|call| refusal::note(ThreadKind::Names as usize, call));
        match found {
            Ok(found) if !found.is_empty() => self.take(found, keep),
            Ok(_) => {
                self.fail("it has no address");
                false
            }
            Err(error) => {
                self.fail(&error);
                false
            }
        }
    }

    fn take(&mut self, mut found: Vec<SocketAddr>, keep: bool) -> bool {
        let current = self.current().filter(|_| keep);
        if let Some(current) = current
            && !found.contains(&current)
        {
            found.insert(0, current);
        }
        let at = found.iter().position(|address| Some(*address) == current).unwrap_or(0);
        // Resolvers give the same addresses in turns.
        let set = |addresses: &[SocketAddr]| addresses.iter().copied().collect::<BTreeSet<_>>();
        let is_other = set(&found) != set(&self.known);
        if self.trouble.take().is_some() || is_other {
            let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
            log::info!("{} = \"{}\": resolved to {}", self.key, self.server, texts.join(", "));
        }
        if is_other {
            (self.known, self.at) = (found, at);
        }
        is_other
    }

    fn fail(&mut self, error: &str) {
        if self.trouble.as_deref() == Some(error) {
            return;
        }
        log::warn!(
            "{} = \"{}\": name lookup failed: {error}; repeated every {} s; check the name, and that this host's \
             resolver works (getent hosts NAME), or write an address",
            self.key,
            self.server,
            RETRY.as_secs()
        );
        self.trouble = Some(error.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "ntp.example.net:123";

    /// Addresses of a name, and the end that answers.
    fn addresses() -> (ServerAddresses, OwnedFd) {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let server = ServerAddresses::from(NAME.parse::<Endpoint>().unwrap());
        (ServerAddresses { line: Some(ours), ..server }, theirs)
    }

    fn say(line: &OwnedFd, text: &str) {
        send(line, text.as_bytes(), SendFlags::empty()).unwrap();
    }

    fn texts(addresses: &ServerAddresses) -> Vec<String> {
        addresses.known().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn replies_are_read_as_they_were_written() {
        let good = Reply { found: Ok(vec!["[2001:db8::1]:123".parse().unwrap()]), refused: vec![41, 42] };
        let bad = Reply { found: Err("no such name".to_owned()), refused: vec![] };
        for reply in [good, bad] {
            assert_eq!(Reply::parse(reply.emit().as_bytes(), 123), Some(reply));
        }
        let many = Reply { found: Ok(vec!["192.0.2.1:1".parse().unwrap(); 99]), refused: vec![] };
        assert!(many.emit().len() < REPLY_SIZE_MAX);
    }

    #[test]
    fn reply_of_a_process_that_was_taken_over_is_refused() {
        for octets in [&b"\xff"[..], b"192.0.2.1", b"192.0.2.1:1 x", b"192.0.2.1:1\nx", b"a:1"] {
            assert_eq!(Reply::parse(octets, 123), None, "{octets:?}");
        }
        let found = Reply::parse(b"192.0.2.1:22", 123).unwrap().found.unwrap();
        assert_eq!(found, ["192.0.2.1:123".parse().unwrap()], "the port is the configuration's");
    }

    #[test]
    fn address_that_answers_is_kept_whatever_the_name_says() {
        let ((mut addresses, line), now) = (addresses(), Instant::now());
        say(&line, "192.0.2.1:1 192.0.2.2:1");
        assert!(addresses.receive(now, false));
        assert_eq!(texts(&addresses), ["192.0.2.1:123", "192.0.2.2:123"]);
        addresses.pass_over();
        say(&line, "192.0.2.3:1 192.0.2.2:1");
        assert!(addresses.receive(now, true));
        assert_eq!(addresses.current().unwrap().to_string(), "192.0.2.2:123");
        say(&line, "192.0.2.9:1");
        assert!(addresses.receive(now, true));
        assert_eq!(addresses.current().unwrap().to_string(), "192.0.2.2:123");
        say(&line, "192.0.2.9:1");
        assert!(addresses.receive(now, false), "it is silent now");
        assert_eq!(texts(&addresses), ["192.0.2.9:123"]);
        say(&line, "!no such name");
        assert!(!addresses.receive(now, false));
        assert_eq!(texts(&addresses), ["192.0.2.9:123"], "what was known is tried on");
    }

    #[test]
    fn name_is_looked_up_once_at_a_time_and_at_intervals() {
        let ((mut addresses, line), now) = (addresses(), Instant::now());
        let asked = || recv(&line, &mut [0_u8; 16], RecvFlags::DONTWAIT).is_ok();
        addresses.want(now);
        assert!(asked());
        addresses.want(now + RETRY);
        assert!(!asked(), "it is under way");
        addresses.want(now + LIMIT + RETRY);
        assert!(asked(), "it was given up");
        say(&line, "!no such name");
        assert!(!addresses.receive(now, false));
        addresses.want(now);
        assert!(!asked());
        addresses.want(now + RETRY);
        assert!(asked());
        say(&line, "192.0.2.1:1");
        assert!(addresses.receive(now, false));
        addresses.want_again(now);
        assert!(asked());
    }

    #[test]
    fn end_of_the_process_leaves_what_is_known() {
        let ((mut addresses, line), now) = (addresses(), Instant::now());
        say(&line, "192.0.2.1:1");
        drop(line);
        assert!(addresses.receive(now, false));
        assert!(!addresses.receive(now, false));
        assert!(addresses.trouble().contains("has ended"));
        addresses.want(now);
        assert_eq!(texts(&addresses), ["192.0.2.1:123"]);
    }
}
