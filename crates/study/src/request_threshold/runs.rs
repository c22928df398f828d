//! What runs need: the server in each configuration and the agents, which are started when they are first wanted.

use std::fmt::Write as _;
use std::path::PathBuf;

use authentick_net::report_file;
use authentick_report::study::request_threshold::{Part, Run, SCALE_SECONDS_MAX, Settings};
use tempfile::TempDir;

use super::hosts::{Agents, Inequality};
use super::{NamedHosts, RequestThreshold, SERVER_SHARE, WINDOW};
use crate::folder::Folder;
use crate::identities::Identities;
use crate::program::{Launch, Listening, say};
use crate::{Caller, Error};

/// What is offered to find this machine's limit: more than any host sends.
const FLOOD_RPS: f64 = 2e6;

/// Which server is running, where the study brings its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Configuration {
    /// One worker that does no more than answer.
    Plain,
    /// The same under a quota.
    Old,
    /// The same under the same quota, which also counts every request for a rate limit, and times it.
    New,
}

/// A server and agents.
pub struct Bench<'a> {
    paper: &'a RequestThreshold,
    caller: Caller<'a>,
    inequality: Inequality,
    folder: TempDir,
    identities: Identities,
    server: Option<(Configuration, Listening)>,
    agents: Option<Agents>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        paper: &'a RequestThreshold,
        inequality: Inequality,
        caller: Caller<'a>,
    ) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let identities = Identities::new(folder.path()).map_err(Error::rig("cannot make certificates"))?;
        Ok(Bench { paper, caller, inequality, folder, identities, server: None, agents: None })
    }

    /// Who carries the study out.
    pub(super) fn caller(&self) -> Caller<'a> {
        self.caller
    }

    /// Where a run is to write its record.
    pub(super) fn record_file(&self) -> PathBuf {
        self.folder.path().join("run.json")
    }

    /// The arguments of a run, all but the scheme and the record. Starts what it needs.
    pub(super) fn arguments(
        &mut self,
        folder: &mut Folder<Settings>,
        run: &Run,
    ) -> Result<Vec<String>, Error> {
        let settings = folder.plan.settings.clone();
        let mut words = vec![match &self.paper.target {
            Some(target) => target.clone(),
            None => self.server(run.part)?.address.to_string(),
        }];
        if let Some(host) = &self.paper.permit {
            say(&mut words, "--permit", host);
        }
        if let Some(file) = &self.paper.allow_list {
            say(&mut words, "--allow-list", &file.display());
        }
        say(&mut words, "--timeout", &settings.timeout_seconds);
        let seconds = match run.part {
            Part::Scale => settings.one_host_seconds.min(SCALE_SECONDS_MAX),
            Part::OneHost => settings.one_host_seconds,
            Part::SeveralHosts => settings.several_hosts_seconds,
            Part::Old | Part::New => settings.configuration_seconds,
        };
        say(&mut words, "--step-seconds", &seconds);
        let rate = run.published_rps.unwrap_or(0.0) * folder.plan.found.scale.unwrap_or(1.0);
        match run.part {
            Part::Scale => say(&mut words, "--rate", &FLOOD_RPS),
            Part::OneHost => say(&mut words, "--rate", &rate),
            Part::SeveralHosts => {
                let NamedHosts { names, ca, chain, key } = self.hosts(folder)?;
                say(&mut words, "--rate", &(rate * names.len() as f64));
                say(&mut words, "--agents", &names.join(","));
                say(&mut words, "--agent-ca", &ca.display());
                say(&mut words, "--certificate-chain", &chain.display());
                say(&mut words, "--private-key", &key.display());
            }
            Part::Old | Part::New => {
                say(&mut words, "--closed", &WINDOW);
                if let Some((_, server)) = &self.server {
                    say(&mut words, "--server-pid", &server.id());
                }
            }
        }
        Ok(words)
    }

    /// The hosts, and the files by which coordinator and agents know each other.
    fn hosts(&mut self, folder: &mut Folder<Settings>) -> Result<NamedHosts, Error> {
        if let Some(hosts) = &self.paper.hosts {
            return Ok(hosts.clone());
        }
        let identities = &self.identities;
        if self.agents.is_none() {
            let agents =
                Agents::start(self.caller.program, identities, self.inequality, &folder.plan.found.hosts)?;
            folder.plan.found.hosts = agents.names();
            let remark = self.inequality.remark();
            if !folder.plan.found.hosts_remark.ends_with(&remark) {
                write!(folder.plan.found.hosts_remark, " After an interruption: {remark}")
                    .expect("writing to a string cannot fail");
            }
            folder.keep_plan()?;
            self.agents = Some(agents);
        }
        Ok(NamedHosts {
            names: folder.plan.found.hosts.clone(),
            ca: identities.authority(),
            chain: identities.chain("coordinator"),
            key: identities.key("coordinator"),
        })
    }

    /// The server for this part, in place of any other.
    fn server(&mut self, part: Part) -> Result<&Listening, Error> {
        let wanted = match part {
            Part::Scale | Part::OneHost | Part::SeveralHosts => Configuration::Plain,
            Part::Old => Configuration::Old,
            Part::New => Configuration::New,
        };
        if self.server.as_ref().is_none_or(|(running, ..)| *running != wanted) {
            // Agents do not stand in the way of what is measured next.
            if wanted != Configuration::Plain {
                self.agents = None;
            }
            // The next one takes its port, so that runs name one target; if somebody else was faster, any port.
            let port = self.server.take().map_or(0, |(_, server)| server.address.port());
            let start = |port| self.caller.program.serve(Launch::Here, &self.configuration(wanted, port)?);
            let mut server = match start(port) {
                Err(_) if port != 0 => start(0)?,
                started => started?,
            };
            if wanted != Configuration::Plain {
                server.limit(SERVER_SHARE, "a quota for the server")?;
            }
            self.server = Some((wanted, server));
        }
        let (_, server) = self.server.as_ref().expect("it was just started");
        Ok(server)
    }

    fn configuration(&self, wanted: Configuration, port: u16) -> Result<PathBuf, Error> {
        let (limit, metrics) = match wanted {
            Configuration::Plain | Configuration::Old => ("", ""),
            Configuration::New => (
                "rate-limit = { requests-per-second = 1000000, burst = 1000000 }\n",
                "[metrics]\nlisten = \"127.0.0.1:0\"\nspan-clients = [\"127.0.0.0/8\"]\n",
            ),
        };
        let file = self.folder.path().join("authentick.toml");
        let text = format!(
            "[server]\nlisten = [\"127.0.0.1:{port}\"]\nworkers = 1\nuser = \"root\"\n\
             reference = {{ stratum = 1, id = \"TEST\" }}\nstate-directory = {:?}\n{limit}\
             [nts]\nke-listen = [\"127.0.0.1:0\"]\nke-workers = 1\ncertificate-chain = {:?}\nprivate-key = {:?}\n\
             {metrics}",
            self.folder.path().join("state"),
            self.identities.chain("server"),
            self.identities.key("server"),
        );
        report_file::write(&file, text.as_bytes())?;
        Ok(file)
    }
}
