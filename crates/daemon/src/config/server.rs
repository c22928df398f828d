//! `[server]`: where and how time is served, and what vouches for it.

use std::net::SocketAddr;

use authentick_net::engine::BATCH_SIZE;
use authentick_wire::header::ReferenceId;

use super::{Config, ConfigError, Resolver, raw};

const LISTEN: &str = "server.listen";

/// What moves the datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// The kernel's UDP sockets.
    Udp,
}

/// What vouches for the time that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The operator: the clock is good, as `local stratum` of chrony says.
    Asserted {
        /// 1 to 15.
        stratum: u8,
        /// The source's name, or an address.
        id: ReferenceId,
    },
    /// The kernel's clock state.
    Kernel,
    /// A local daemon that keeps the clock, asked by NTP.
    Upstream(SocketAddr),
}

impl Resolver<'_> {
    pub(super) fn resolve(&self, raw: raw::File) -> Result<Config, ConfigError> {
        let server = &raw.server;
        let engines = [("auto", EngineKind::Udp), ("udp", EngineKind::Udp)];
        let engine =
            self.word("server.engine", server.engine.as_deref(), "engine in this version", &engines)?;
        let refusals = [("silence", false), ("kiss", true)];
        let kiss = self.word("server.refusal", server.refusal.as_deref(), "refusal", &refusals)?;
        let containments = [("auto", true), ("off", false)];
        let contain = server.containment.as_deref();
        let contain = self.word("server.containment", contain, "containment", &containments)?;
        let state_directory = server.state_directory.as_deref().unwrap_or("/var/lib/authentick");
        let everyone = || ["0.0.0.0/0", "::/0"].map(str::to_owned).into();
        let (rate_limit, per_second) = (&server.rate_limit, server.rate_limit.requests_per_second);
        let listen = self.addresses(LISTEN, server.listen.clone(), ["0.0.0.0:123", "[::]:123"])?;
        if listen.is_empty() {
            self.no_time(&raw)?;
        }
        let nts = raw.nts.map(|nts| self.nts(nts, &listen)).transpose()?;
        if listen.is_empty() && nts.as_ref().is_none_or(|nts| nts.exchange.is_none()) {
            let problem = "nothing to listen on: no keys are exchanged here either";
            return Err(self.wrong(LISTEN, "[]", problem, "name at least one ADDRESS:PORT, or add [nts]"));
        }
        let antp = raw.antp.map(|antp| self.antp(&antp, rate_limit)).transpose()?.flatten();
        let cookie_keys = nts.as_ref().map(|nts| &nts.keys);
        let fleet =
            self.fleet(cookie_keys.into_iter().chain(antp.as_ref().map(|antp| &antp.keys)), raw.fleet)?;
        if let Some(nts) = &nts {
            self.check_members(nts, fleet.as_ref())?;
        }
        let allowed = self.prefixes("server.allow", &server.allow.clone().unwrap_or_else(everyone))?;
        let denied = self.prefixes("server.deny", server.deny.as_deref().unwrap_or_default())?;
        Ok(Config {
            listen,
            workers: self.thread_count("server.workers", server.workers.unwrap_or(0))?,
            batch_size: self.batch_size(server.batch_size.unwrap_or(BATCH_SIZE))?,
            engine,
            reference: server.reference.as_ref().map_or(Ok(Reference::Kernel), |raw| self.reference(raw))?,
            state_directory: self.absolute("server.state-directory", state_directory)?,
            user: server.user.clone().unwrap_or_else(|| "authentick".to_owned()),
            // A sanitizer opens files and traces threads of its process. No build that is shipped has one.
            contain: contain && !cfg!(authentick_sanitizer),
            allow: allowed.without(&denied),
            kiss,
            interleaved: server.interleaved.unwrap_or(true),
            rate: self.rate(rate_limit, "server.rate-limit.requests-per-second", per_second)?,
            nts,
            symmetric: raw.symmetric.map(|symmetric| self.symmetric(&symmetric)).transpose()?,
            antp,
            fleet,
            metrics: raw.metrics.map(|metrics| self.metrics(&metrics)).transpose()?,
            file: self.file.to_owned(),
        })
    }

    /// Refuses what says how time is served, where it is not.
    fn no_time(&self, raw: &raw::File) -> Result<(), ConfigError> {
        let server = &raw.server;
        let given = [
            ("server.workers", server.workers.is_some()),
            ("server.batch-size", server.batch_size.is_some()),
            ("server.engine", server.engine.is_some()),
            ("server.refusal", server.refusal.is_some()),
            ("server.interleaved", server.interleaved.is_some()),
            ("server.rate-limit", server.rate_limit != raw::RateLimit::default()),
            ("symmetric", raw.symmetric.is_some()),
            ("antp.enable", raw.antp.as_ref().is_some_and(|antp| antp.enable)),
        ];
        let problem = format!("without effect, as no time is served here: {LISTEN} is empty");
        let remedy = format!("remove it, or name an ADDRESS:PORT in {LISTEN}");
        self.refuse_given(&given, &problem, &remedy)
    }

    fn batch_size(&self, size: usize) -> Result<usize, ConfigError> {
        match size {
            1..=BATCH_SIZE => Ok(size),
            _ => {
                let remedy = format!("write 1 to {BATCH_SIZE}, or leave it out");
                Err(self.wrong("server.batch-size", size, "no such batch", &remedy))
            }
        }
    }

    fn reference(&self, raw: &raw::Reference) -> Result<Reference, ConfigError> {
        match raw {
            raw::Reference::Name(name) if name == "kernel" => Ok(Reference::Kernel),
            raw::Reference::Name(name) => {
                let remedy =
                    "write \"kernel\", { stratum = 1, id = \"GPS\" } or { upstream = \"ADDRESS:PORT\" }";
                Err(self.wrong("server.reference", name, "no such reference", remedy))
            }
            raw::Reference::Asserted(asserted) => Ok(Reference::Asserted {
                stratum: self.number("server.reference.stratum", asserted.stratum, 1..=15)?,
                id: self.reference_id(&asserted.id)?,
            }),
            raw::Reference::Upstream(upstream) => {
                Ok(Reference::Upstream(self.address("server.reference.upstream", &upstream.upstream)?))
            }
        }
    }

    fn reference_id(&self, text: &str) -> Result<ReferenceId, ConfigError> {
        if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
            return Ok(ReferenceId(address.octets()));
        }
        let printable = text.bytes().all(|octet| octet.is_ascii_graphic());
        if text.is_empty() || text.len() > 4 || !printable {
            let remedy = "write one to four ASCII characters, as in \"GPS\", or an IPv4 address";
            return Err(self.wrong("server.reference.id", text, "no reference identifier", remedy));
        }
        let mut id = [0; 4];
        id[..text.len()].copy_from_slice(text.as_bytes());
        Ok(ReferenceId(id))
    }
}
