//! Who is measured: servers that the study starts, and those that somebody else runs, as whoever calls names them.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_ke::tls::{Defect, certificates};
use authentick_load::target::Target;
use authentick_load::{NotAllowed, Permission, Plan};
use authentick_net::addresses::{Addresses, resolve};
use authentick_report::study::field::{Given, Name, Server};
use authentick_rig::process::is_running;

use crate::Error;
use crate::program::say;

/// Time for the look-up of a server.
const LOOK_UP_MAX: Duration = Duration::from_secs(5);

/// Who is measured, as a command line says it.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// Servers by their names; empty: as many as there are.
    pub servers: Vec<Server>,
    /// Servers that somebody else runs.
    pub given: Vec<Given>,
    /// The file of authorities that is trusted for one of them, instead of the system's.
    pub authorities: Vec<(Name, PathBuf)>,
    /// The name that its certificate must have, instead of its host's.
    pub certificate_names: Vec<(Name, String)>,
    /// Processes of it on this machine.
    pub pids: Vec<(Name, u32)>,
    /// A host that may be loaded although its address is public.
    pub permit: Option<String>,
    /// A file of prefixes that may be loaded.
    pub allow_list: Option<PathBuf>,
}

/// Who is measured. The default: whoever the study starts itself.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    servers: Vec<Server>,
    pub(super) strangers: Vec<Stranger>,
}

/// A server that somebody else runs.
#[derive(Clone, Debug)]
pub(super) struct Stranger {
    pub(super) given: Given,
    /// Its address in all load runs, if it had one.
    address: Option<SocketAddr>,
    authorities: Option<PathBuf>,
    certificate_name: Option<String>,
    pids: Vec<u32>,
    /// Its host, if that may be loaded wherever it is.
    permit: Option<String>,
    allow_list: Option<PathBuf>,
}

impl Said {
    /// Whether servers are there once, and can be found and loaded.
    fn check(&self) -> Result<(), String> {
        let Said { servers, given, permit, allow_list, .. } = self;
        Given::check_all(given).map_err(|why| format!("--server: {why}"))?;
        let is_given = |server: &Server| given.iter().any(|given| Server::Given(given.name) == *server);
        let is_known = |server: &Server| Server::BUILT_IN.contains(server) || is_given(server);
        if let Some(stranger) = servers.iter().find(|server| !is_known(server)) {
            let known = Server::BUILT_IN.map(|server| server.key().to_owned()).join(", ");
            let name = stranger.name();
            return Err(format!(
                "--servers: {name:?} is none of {known}, and no --server says where it is; add --server \
                 {name}=HOST:PORT"
            ));
        }
        if let Some(host) = permit.as_ref().filter(|host| given.iter().all(|given| given.host != **host)) {
            return Err(format!("--permit {host}: no --server is on this host; repeat the host of one"));
        }
        if allow_list.is_some() && given.is_empty() {
            let message =
                "--allow-list: there is no --server that it could be about; add one, or leave it out";
            return Err(message.to_owned());
        }
        Ok(())
    }

    /// The address of each, looked up once for all load runs, after a check that all of its addresses may be loaded;
    /// `None` where the name has no address now, which is reported when it is asked.
    fn addresses(&self) -> Result<Vec<Option<SocketAddr>>, Error> {
        let not_allowed = |error: NotAllowed| match error {
            NotAllowed::List { file, problem } => Error::File {
                place: format!("--allow-list {}", file.display()),
                problem,
                remedy: "name a file of prefixes, one on a line".to_owned(),
            },
            error @ (NotAllowed::Public(..) | NotAllowed::Another(..)) => Error::Usage(error.to_string()),
        };
        let permission =
            Permission::new(self.permit.clone(), self.allow_list.as_deref()).map_err(not_allowed)?;
        let address = |Given { host, port, .. }: &Given| {
            let Ok(found) = resolve(host, *port, LOOK_UP_MAX) else { return Ok(None) };
            let allowed = found.all().try_for_each(|address| permission.check(host, address.ip()));
            allowed.map(|()| first_responding(&found)).map_err(not_allowed)
        };
        self.given.iter().map(address).collect()
    }

    /// Whether what is said of servers by their names is of some that are there, and can have it.
    fn check_names(&self) -> Result<(), String> {
        let Said { given, authorities, certificate_names, pids, .. } = self;
        let of_authorities = authorities.iter().map(|(name, _)| ("--server-ca", *name));
        let of_certificates = certificate_names.iter().map(|(name, _)| ("--server-name", *name));
        let mut once = BTreeSet::new();
        for (option, name) in of_authorities.chain(of_certificates) {
            let keyless = given.iter().any(|given| given.name == name && given.ke_port.is_none());
            if keyless {
                return Err(format!(
                    "{option}: {name:?} has no port of a key exchange, so it shows no certificate; add it to \
                     --server: {name}=HOST:PORT:KEPORT"
                ));
            }
            if !once.insert((option, name)) {
                return Err(format!("{option}: {name:?} has two of them; give one"));
            }
        }
        let named = once.into_iter().chain(pids.iter().map(|(name, _)| ("--server-pid", *name)));
        for (option, name) in named {
            if given.iter().all(|given| given.name != name) {
                return Err(format!(
                    "{option}: no --server is called {name:?}; add --server {name}=HOST:PORT"
                ));
            }
        }
        match pids.iter().find(|(_, pid)| !is_running(*pid)) {
            Some((name, pid)) => Err(format!(
                "--server-pid {name}={pid}: there is no process of this number; name one that runs"
            )),
            None => Ok(()),
        }
    }
}

impl Choice {
    /// Who is measured.
    ///
    /// # Errors
    /// [`Error::Usage`] if something does not go together, or somebody may not be loaded; or what is wrong with a file.
    pub fn new(said: Said) -> Result<Self, Error> {
        said.check().and_then(|()| said.check_names()).map_err(Error::Usage)?;
        let addresses = said.addresses()?;
        said.authorities.iter().try_for_each(|(_, file)| check_authorities(file))?;
        let Said { servers, given, authorities, certificate_names, pids, permit, allow_list } = said;
        let of = |(given, address): (&Given, Option<SocketAddr>)| Stranger {
            given: given.clone(),
            address,
            authorities: value(&authorities, given.name),
            certificate_name: value(&certificate_names, given.name),
            pids: pids.iter().filter(|(name, _)| *name == given.name).map(|(_, pid)| *pid).collect(),
            permit: permit.clone().filter(|host| *host == given.host),
            allow_list: allow_list.clone(),
        };
        let mut strangers: Vec<Stranger> = given.iter().zip(addresses).map(of).collect();
        strangers.sort_by_key(|stranger| stranger.given.name);
        Ok(Choice { servers, strangers })
    }

    /// Who is measured, in one order, however they were named, and each once: of those that a study starts itself these
    /// if no one is named, and whoever somebody else runs.
    pub(super) fn servers(&self, default: &[Server]) -> Vec<Server> {
        let named = if self.servers.is_empty() { default } else { &self.servers };
        let built_in = Server::BUILT_IN.into_iter().filter(|server| named.contains(server));
        built_in.chain(self.given().map(|given| Server::Given(given.name))).collect()
    }

    /// Where those are that somebody else runs, in the order of their names.
    pub(super) fn given(&self) -> impl Iterator<Item = &Given> {
        self.strangers.iter().map(|stranger| &stranger.given)
    }

    /// One of them.
    pub(super) fn stranger(&self, server: Server) -> Option<&Stranger> {
        self.strangers.iter().find(|stranger| Server::Given(stranger.given.name) == server)
    }
}

/// The first of them that responds to a request for time; the first of all if none does now.
fn first_responding(found: &Addresses) -> Option<SocketAddr> {
    let first = found.all().next()?;
    if found.all().count() == 1 {
        return Some(first);
    }
    let mut entropy = Entropy::from_system().ok()?;
    let target = Target::plain(Plan::plain(first), found, false, &mut entropy);
    Some(target.map_or(first, |target| target.plan.ntp))
}

/// Checks that a file that `--server-ca` names has authorities.
fn check_authorities(file: &Path) -> Result<(), Error> {
    let (problem, remedy) = match fs::read(file).map(|pem| certificates(&pem)) {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(Defect { problem, remedy })) => (problem, remedy),
        Err(error) => (format!("cannot read it: {error}"), "name a PEM file of authorities".to_owned()),
    };
    Err(Error::File { place: format!("--server-ca {}", file.display()), problem, remedy })
}

/// What belongs to a name.
fn value<T: Clone>(all: &[(Name, T)], name: Name) -> Option<T> {
    all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
}

impl Stranger {
    /// What the report calls it.
    pub(super) fn title(&self) -> String {
        format!("{} at {}", self.given.name, self.given.at(self.given.port))
    }

    /// Where it serves time.
    pub(super) fn ntp(&self) -> String {
        self.at(self.given.port)
    }

    /// Where it exchanges keys.
    pub(super) fn ke(&self) -> Option<String> {
        self.given.ke_port.map(|port| self.at(port))
    }

    fn at(&self, port: u16) -> String {
        let with_port = |mut address: SocketAddr| {
            address.set_port(port);
            address.to_string()
        };
        self.address.map_or_else(|| self.given.at(port), with_port)
    }

    /// Whom its clients trust, and that it may be loaded as far as the user says so.
    pub(super) fn say_trusted(&self, words: &mut Vec<String>) {
        if let Some(file) = &self.authorities {
            say(words, "--ca", &file.display());
        }
        // Clients are given an address, which the certificate of a name need not have.
        match (&self.certificate_name, self.given.ke_port) {
            (Some(name), _) => say(words, "--server-name", name),
            (None, Some(_)) if self.address.is_some() => {
                let host = &self.given.host;
                say(words, "--server-name", &host.split_once('%').map_or(&**host, |(address, _)| address));
            }
            (None, _) => {}
        }
    }

    /// Whether it may be loaded, and which of its processes still run.
    pub(super) fn say_loaded(&self, words: &mut Vec<String>) {
        if let Some(host) = &self.permit {
            match self.address {
                Some(address) => say(words, "--permit", &address.ip()),
                None => say(words, "--permit", host),
            }
        }
        if let Some(file) = &self.allow_list {
            say(words, "--allow-list", &file.display());
        }
        self.pids.iter().filter(|pid| is_running(**pid)).for_each(|pid| say(words, "--server-pid", pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Given {
        text.parse().unwrap()
    }

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn servers_of_somebody_else_stand_behind_the_others_whichever_are_named() {
        use Server::{Authentick, Chrony, NtpdRs};
        let [a, b] = ["a", "b"].map(|text| Server::Given(name(text)));
        let of = |servers: &[Server]| {
            let given = vec![given("b=h:1"), given("a=h:1:2")];
            let said = Said { servers: servers.to_vec(), given, ..Said::default() };
            Choice::new(said).unwrap().servers(&[Authentick, Chrony])
        };
        assert_eq!(of(&[]), [Authentick, Chrony, a, b]);
        assert_eq!(of(&[NtpdRs, Chrony, NtpdRs]), [Chrony, NtpdRs, a, b]);
        assert_eq!(of(&[b]), [a, b]);
        assert_eq!(Choice::default().servers(&[Authentick]), [Authentick]);
    }

    #[test]
    fn words_of_a_server_are_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let [authorities, list] = ["ca.pem", "list"].map(|name| folder.path().join(name));
        fs::write(&authorities, "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----").unwrap();
        fs::write(&list, "192.0.2.0/24").unwrap();
        let said = Said {
            given: vec![given("a=h:1:2"), given("b=[::1]:3")],
            authorities: vec![(name("a"), authorities.clone())],
            certificate_names: vec![(name("a"), "n".to_owned())],
            pids: vec![(name("b"), std::process::id())],
            permit: Some("h".to_owned()),
            allow_list: Some(list.clone()),
            ..Said::default()
        };
        let choice = Choice::new(said).unwrap();
        let words = |server: &str| {
            let stranger = choice.stranger(Server::Given(name(server))).unwrap();
            let mut words = vec![stranger.ntp(), stranger.ke().unwrap_or_default()];
            stranger.say_trusted(&mut words);
            stranger.say_loaded(&mut words);
            words.join(" ")
        };
        let (ca, list) = (authorities.display(), list.display());
        assert_eq!(words("a"), format!("h:1 h:2 --ca {ca} --server-name n --permit h --allow-list {list}"));
        assert_eq!(words("b"), format!("[::1]:3  --allow-list {list} --server-pid {}", std::process::id()));
    }

    #[test]
    fn name_is_looked_up_once_and_load_gets_its_address() {
        let said = Said {
            given: vec![given("a=localhost:1:2")],
            permit: Some("localhost".to_owned()),
            ..Said::default()
        };
        let choice = Choice::new(said).unwrap();
        let [stranger] = &choice.strangers[..] else { panic!() };
        let [ntp, ke] =
            [Some(stranger.ntp()), stranger.ke()].map(|at| at.unwrap().parse::<SocketAddr>().unwrap());
        assert!(ntp.ip().is_loopback() && ke == SocketAddr::new(ntp.ip(), 2), "{ntp} {ke}");
        let mut words = Vec::new();
        stranger.say_trusted(&mut words);
        stranger.say_loaded(&mut words);
        assert_eq!(words.join(" "), format!("--server-name localhost --permit {}", ntp.ip()));
        assert_eq!(stranger.title(), "a at localhost:1");
    }

    #[test]
    fn who_may_not_be_loaded_is_refused_and_files_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name)
        };
        let of = |change: &dyn Fn(&mut Said)| {
            let mut said = Said { given: vec![given("a=192.0.2.1:1:2")], ..Said::default() };
            change(&mut said);
            Choice::new(said)
        };
        let public = of(&|_| ()).unwrap_err();
        assert!(matches!(&public, Error::Usage(why) if why.contains("--permit 192.0.2.1")), "{public}");
        let permit = |said: &mut Said| said.permit = Some("192.0.2.1".to_owned());
        assert!(of(&permit).is_ok());
        let list = file("list", "192.0.2.0/24");
        assert!(of(&|said| said.allow_list = Some(list.clone())).is_ok());
        let wrong = file("wrong", "all");
        let error = of(&|said| said.allow_list = Some(wrong.clone())).unwrap_err().to_string();
        assert!(error.contains("--allow-list") && error.contains("line 1"), "{error}");
        let error = of(&|said| {
            permit(said);
            said.authorities.push((name("a"), wrong.clone()));
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("--server-ca") && error.contains("no PEM certificate"), "{error}");
        let missing = folder.path().join("missing");
        let error = of(&|said| {
            permit(said);
            said.authorities.push((name("a"), missing.clone()));
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("--server-ca") && error.contains("cannot read it"), "{error}");
    }

    #[test]
    fn what_does_not_go_together_is_told_with_the_option_and_the_remedy() {
        type Change = fn(&mut Said);
        let changes: [(Change, &str); 10] = [
            (|said| said.given.push(given("A=h:1")), "--server: \"A\" names two servers"),
            (
                |said| said.servers.push(Server::Given(name("c"))),
                "--servers: \"c\" is none of authentick, chrony",
            ),
            (
                |said| said.authorities.push((name("c"), "f".into())),
                "--server-ca: no --server is called \"c\"",
            ),
            (
                |said| said.authorities.push((name("b"), "f".into())),
                "--server-ca: \"b\" has no port of a key exchange",
            ),
            (|said| said.certificate_names.push((name("c"), "n".to_owned())), "--server-name: no --server"),
            (|said| said.pids.push((name("c"), 1)), "--server-pid: no --server"),
            (|said| said.pids.push((name("a"), u32::MAX)), "there is no process of this number"),
            (|said| said.permit = Some("x".to_owned()), "--permit x: no --server is on this host"),
            (
                |said| (said.given, said.allow_list) = (Vec::new(), Some("list".into())),
                "--allow-list: there is no --server",
            ),
            (
                |said| said.authorities = vec![(name("a"), "f".into()), (name("a"), "g".into())],
                "--server-ca: \"a\" has two of them; give one",
            ),
        ];
        for (change, part) in changes {
            let mut said = Said { given: vec![given("a=h:1:2"), given("b=h:1")], ..Said::default() };
            assert!(Choice::new(said.clone()).is_ok());
            change(&mut said);
            let error = Choice::new(said).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("; "), "{part}: {error}");
        }
    }
}
