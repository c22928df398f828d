//! `[server]`: where and how time is served, and what vouches for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use authentick_net::engine::BATCH_SIZE;
use authentick_proto::prefix::PrefixSet;
use authentick_wire::header::ReferenceId;

use super::{Config, ConfigError, Endpoint, InvalidEndpoint, Resolver, raw};
use crate::keystore::StateDirectory;

const LISTEN: &str = "server.listen";
/// The longest `server.bind-patience`.
const BIND_PATIENCE_MAX: Duration = Duration::from_secs(600);
/// Where the time zone database has its list.
const LEAP_SECONDS: &str = "/usr/share/zoneinfo/leap-seconds.list";

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
    /// The kernel's clock state, and what it does not tell.
    Kernel {
        /// 1 to 15.
        stratum: u8,
        /// The source's name, or an address.
        id: ReferenceId,
    },
    /// A local daemon that keeps the clock, asked by NTP: `ADDRESS:PORT` or `NAME:PORT`.
    Upstream(Endpoint),
}

impl Reference {
    /// The kernel's clock state alone. It does not tell how far away its source is, and 10 is what chrony too gives a
    /// clock of unknown distance.
    pub const KERNEL: Reference = Reference::Kernel { stratum: 10, id: ReferenceId([127, 127, 1, 1]) };
}

/// Where leap seconds are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeapFile {
    /// A `leap-seconds.list`.
    pub path: PathBuf,
    /// Whether the configuration names it: then it must be there.
    pub is_named: bool,
}

impl Resolver<'_> {
    pub(super) fn resolve(&self, raw: raw::File) -> Result<Config, ConfigError> {
        let server = &raw.server;
        let engines = [("auto", EngineKind::Udp), ("udp", EngineKind::Udp)];
        let engine = self.word("server.engine", server.engine.as_deref(), "engine", &engines)?;
        let refusals = [("silence", false), ("kiss", true)];
        let kiss = self.word("server.refusal", server.refusal.as_deref(), "refusal", &refusals)?;
        let containments = [("auto", true), ("off", false)];
        let contain = server.containment.as_deref();
        let contain = self.word("server.containment", contain, "containment", &containments)?;
        let state_directory = server.state_directory.as_deref().unwrap_or("/var/lib/authentick");
        let state_directory = self.absolute("server.state-directory", state_directory)?;
        let everyone = || ["0.0.0.0/0", "::/0"].map(str::to_owned).into();
        let rate_limit = &server.rate_limit;
        let per_second = rate_limit.requests_per_second.unwrap_or(0.0);
        let listen = self.addresses(LISTEN, server.listen.clone(), ["0.0.0.0:123", "[::]:123"])?;
        if listen.is_empty() {
            self.no_time(&raw)?;
        }
        let idle_bursts = idle_bursts(&raw);
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
        let reference = server.reference.as_ref().map_or(Ok(Reference::KERNEL), |raw| self.reference(raw))?;
        let allowed = self.prefixes("server.allow", &server.allow.clone().unwrap_or_else(everyone))?;
        let denied = self.prefixes("server.deny", server.deny.as_deref().unwrap_or_default())?;
        let patience = server.bind_patience.as_deref().unwrap_or("30s");
        Ok(Config {
            listen,
            bind_patience: self.duration(
                "server.bind-patience",
                patience,
                Duration::ZERO..=BIND_PATIENCE_MAX,
            )?,
            workers: self.thread_count("server.workers", server.workers.unwrap_or(0))?,
            batch_size: self.number(
                "server.batch-size",
                server.batch_size.unwrap_or(BATCH_SIZE as i64),
                1..=BATCH_SIZE as i64,
            )?,
            engine,
            leap_seconds: self.leap_seconds(server.leap_seconds.as_deref(), &reference)?,
            reference,
            reference_name: server.reference.as_ref().and_then(named),
            state: StateDirectory::of(&state_directory),
            state_directory,
            user: server.user.clone().unwrap_or_else(|| "authentick".to_owned()),
            // A sanitizer opens files and traces threads of its process. No build that is shipped has one.
            contain: contain && !cfg!(authentick_sanitizer),
            allow: PrefixSet::new(allowed.clone()).without(&PrefixSet::new(denied.clone())),
            allowed,
            denied,
            idle_bursts,
            kiss,
            interleaved: server.interleaved.unwrap_or(true),
            rate: self.rate(rate_limit, "server.rate-limit.requests-per-second", per_second)?,
            nts,
            symmetric: raw.symmetric.map(|symmetric| self.symmetric(&symmetric)).transpose()?,
            antp,
            fleet,
            metrics: raw.metrics.map(|metrics| self.metrics(&metrics)).transpose()?,
            health: raw.health.map(|health| self.address("health.listen", &health.listen)).transpose()?,
            skipped: Vec::new(),
            file: self.file.to_owned(),
            origins: Arc::default(),
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

    fn reference(&self, raw: &raw::Reference) -> Result<Reference, ConfigError> {
        let table = match raw {
            raw::Reference::Name(name) if name == "kernel" => return Ok(Reference::KERNEL),
            raw::Reference::Name(name) => {
                let remedy = "write \"kernel\", { kernel = true, stratum = 2 }, { stratum = 1, id = \"GPS\" } or \
                              { upstream = \"ADDRESS:PORT\" }";
                return Err(self.wrong("server.reference", name, "unknown reference", remedy));
            }
            raw::Reference::Table(table) => table,
        };
        let raw::ReferenceTable { stratum, id, kernel, upstream } = table;
        if let Some(upstream) = upstream {
            let given = [
                ("server.reference.kernel", kernel.is_some()),
                ("server.reference.stratum", stratum.is_some()),
                ("server.reference.id", id.is_some()),
            ];
            let problem = "without effect beside upstream, which has its own";
            self.refuse_given(&given, problem, "remove it, or remove upstream")?;
            return self.upstream(upstream);
        }
        let stratum =
            stratum.map(|number| self.number("server.reference.stratum", number, 1..=15)).transpose()?;
        let id = id.as_deref().map(|text| self.reference_id(text)).transpose()?;
        let missing = |key: &str, remedy: &str| Err(self.wrong(key, "", "missing", remedy));
        match (kernel, stratum, id) {
            (Some(true), stratum, id) => {
                let Reference::Kernel { stratum: unknown, id: local } = Reference::KERNEL else {
                    unreachable!()
                };
                Ok(Reference::Kernel { stratum: stratum.unwrap_or(unknown), id: id.unwrap_or(local) })
            }
            (Some(false), ..) => {
                let remedy =
                    "write kernel = true, or remove it to assert the clock's stratum and id yourself";
                Err(self.wrong("server.reference.kernel", false, "no source of time is left", remedy))
            }
            (None, Some(stratum), Some(id)) => Ok(Reference::Asserted { stratum, id }),
            (None, Some(_), None) => {
                missing("server.reference.id", "add the name of the clock's source, as in id = \"GPS\"")
            }
            (None, None, _) => missing(
                "server.reference.stratum",
                "write { stratum = 1, id = \"GPS\" }, { upstream = \"127.0.0.1:11123\" } or \"kernel\"",
            ),
        }
    }

    fn upstream(&self, text: &str) -> Result<Reference, ConfigError> {
        text.parse().map(Reference::Upstream).map_err(|error: InvalidEndpoint| {
            let remedy = "write ADDRESS:PORT or NAME:PORT, as in \"127.0.0.1:11123\" or \"localhost:11123\"";
            self.wrong("server.reference.upstream", text, error, remedy)
        })
    }

    /// Leap seconds are announced by a list where neither kernel nor upstream knows when they come.
    fn leap_seconds(
        &self,
        named: Option<&str>,
        reference: &Reference,
    ) -> Result<Option<LeapFile>, ConfigError> {
        const KEY: &str = "server.leap-seconds";
        let is_asserted = matches!(reference, Reference::Asserted { .. });
        match named {
            Some(text) if !is_asserted => {
                let problem = "without effect: the kernel or the upstream says when a leap second comes";
                Err(self.wrong(
                    KEY,
                    text,
                    problem,
                    "remove it, or assert the clock in server.reference: { stratum = 1, id = \"GPS\" }",
                ))
            }
            Some(text) => Ok(Some(LeapFile { path: self.absolute(KEY, text)?, is_named: true })),
            None => Ok(is_asserted.then(|| LeapFile { path: LEAP_SECONDS.into(), is_named: false })),
        }
    }

    fn reference_id(&self, text: &str) -> Result<ReferenceId, ConfigError> {
        if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
            return Ok(ReferenceId(address.octets()));
        }
        let printable = text.bytes().all(|octet| octet.is_ascii_graphic());
        if text.is_empty() || text.len() > 4 || !printable {
            let remedy = "write one to four ASCII characters, as in \"GPS\", or an IPv4 address";
            return Err(self.wrong("server.reference.id", text, "invalid reference identifier", remedy));
        }
        let mut id = [0; 4];
        id[..text.len()].copy_from_slice(text.as_bytes());
        Ok(ReferenceId(id))
    }
}

/// Bursts that are set, where the rate that they belong to sets no limit. One that repeats the default beside a rate
/// that is 0 in so many words is how a file shows the defaults.
fn idle_bursts(raw: &raw::File) -> Vec<(&'static str, i64)> {
    let limit = &raw.server.rate_limit;
    let has_antp = raw.antp.as_ref().is_some_and(|antp| antp.enable);
    let is_idle = |burst: &i64, rate: Option<f64>, default: i64| match rate {
        None => true,
        Some(rate) => rate == 0.0 && *burst != default,
    };
    let has_rate = limit.requests_per_second.is_some_and(|rate| rate != 0.0);
    let mut idle = Vec::new();
    // ANTP's rates have the same burst.
    if let Some(burst) =
        limit.burst.filter(|burst| !has_rate && !has_antp && is_idle(burst, limit.requests_per_second, 16))
    {
        idle.push(("server.rate-limit.burst", burst));
    }
    let Some(limits) = raw.nts.as_ref().and_then(|nts| nts.ke_limits.as_ref()) else { return idle };
    for (key, burst, rate) in [
        ("nts.ke-limits.per-prefix-burst", limits.per_prefix_burst, limits.per_prefix_rate),
        ("nts.ke-limits.per-network-burst", limits.per_network_burst, limits.per_network_rate),
    ] {
        idle.extend(burst.filter(|_| rate == Some(0.0)).map(|burst| (key, burst)));
    }
    idle
}

/// The reference identifier, if it is written in letters.
fn named(reference: &raw::Reference) -> Option<String> {
    match reference {
        raw::Reference::Table(raw::ReferenceTable { id: Some(id), .. })
            if id.parse::<std::net::Ipv4Addr>().is_err() =>
        {
            Some(id.clone())
        }
        raw::Reference::Table(_) | raw::Reference::Name(_) => None,
    }
}
