//! `authentick load`: offers a server load, and says what it holds.
//!
//! - `agent`: taking part in runs of others, and ordering agents.
//! - `target`: who is loaded, whether that is allowed, and a first exchange that shows that it answers.
//! - `antp`: that first exchange of ANTP.
//! - `progress`: what is shown while a run goes on, and how it is stopped.
//! - `screen`: the live screen of `--tui`.
//! - `record`: what is kept of it.

mod agent;
mod antp;
mod progress;
mod record;
mod screen;
mod target;

use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_load::runner::{Run, Steps};
use authentick_load::search::Settings;
use authentick_load::{
    Antp, Arrivals, Crew, Generator, Plan, Process, Scheme, SharedKey, SpanSource, Watch, rates,
};
use authentick_report::load::{Interruption, LoadRecord, text};

use crate::args::{Agent, AntpLoad, ArrivalsArgument, Load, LoadArguments, LoadScheme, Trust};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::symmetric::KeyName;

use self::progress::Display;
pub(crate) use self::progress::stop_on_signals;
pub(crate) use self::target::{Permission, Target, Wanted};

/// Addresses of a prefix that are tried as sources.
const SOURCE_COUNT_MAX: usize = 65_536;

pub(crate) fn run(load: &Load) -> Result<Exit, Failure> {
    let offer = match offer(load) {
        Ok(offer) => offer,
        Err(arguments) => return agent::run(arguments),
    };
    if offer.arguments.tui {
        screen::terminal::check()?;
    }
    let watch = Watch::default();
    let record = offer.measure(&watch, stop_on_signals)?;
    finish(offer.arguments, &record)
}

/// Carries a run out for another command, which prints and keeps what it likes of it.
pub(crate) fn measure(load: &Load, watch: &Watch) -> Result<LoadRecord, Failure> {
    match offer(load) {
        Ok(offer) => offer.measure(watch, |_| Ok(())),
        Err(_) => Err(Exit::Internal.because("an agent measures nothing by itself")),
    }
}

/// What the command line offers; as an error, that it is to be an agent instead.
fn offer(load: &Load) -> Result<Offer<'_>, &Agent> {
    Ok(match &load.scheme {
        LoadScheme::Agent(arguments) => return Err(arguments),
        LoadScheme::Plain { load } => Offer { arguments: load, ..Offer::new(Scheme::Plain, load) },
        LoadScheme::Mac { load, key } => Offer { key: Some(key.into()), ..Offer::new(Scheme::Mac, load) },
        LoadScheme::Nts { load, trust, replay_cookie } => {
            Offer { trust: Some(trust), replay: *replay_cookie, ..Offer::new(Scheme::Nts, load) }
        }
        LoadScheme::Ke { load, trust } => Offer { trust: Some(trust), ..Offer::new(Scheme::Ke, load) },
        LoadScheme::Mix { load, trust, transfers_per_exchange, same_cookie } => {
            let scheme = Scheme::Mix { transfers: *transfers_per_exchange, same_cookie: *same_cookie };
            Offer { trust: Some(trust), ..Offer::new(scheme, load) }
        }
        LoadScheme::AntpNegotiate { load, antp, replay } => {
            Offer::antp(Scheme::AntpNegotiate, load, antp, *replay, false)
        }
        LoadScheme::AntpExchange { load, antp, replay } => {
            Offer::antp(Scheme::AntpExchange, load, antp, *replay, false)
        }
        LoadScheme::Antp { load, antp, replay, separate_tag } => {
            Offer::antp(Scheme::Antp, load, antp, *replay, *separate_tag)
        }
        LoadScheme::AntpFull { load, antp, separate_tag } => {
            Offer::antp(Scheme::AntpFull, load, antp, false, *separate_tag)
        }
    })
}

/// What is to be offered, and to whom.
struct Offer<'a> {
    scheme: Scheme,
    arguments: &'a LoadArguments,
    /// How the server proves who it is in key exchanges; absent where there are none.
    trust: Option<&'a Trust>,
    /// The key that clients share with the server, if they do.
    key: Option<KeyName<'a>>,
    /// Send one cookie of each client again and again, or one request of ANTP.
    replay: bool,
    /// How ANTP is spoken, and whom clients trust.
    antp: Option<&'a AntpLoad>,
    /// Ask for tags in packets of their own.
    separate_tag: bool,
}

impl<'a> Offer<'a> {
    fn new(scheme: Scheme, arguments: &'a LoadArguments) -> Self {
        let (trust, key, antp) = (None, None, None);
        Offer { scheme, arguments, trust, key, replay: false, antp, separate_tag: false }
    }

    fn antp(
        scheme: Scheme,
        arguments: &'a LoadArguments,
        antp: &'a AntpLoad,
        replay: bool,
        separate_tag: bool,
    ) -> Self {
        Offer { replay, antp: Some(antp), separate_tag, ..Offer::new(scheme, arguments) }
    }

    /// Carries the run out. `ready` is called once the arguments are known to make sense, before anything is sent.
    fn measure(
        &self,
        watch: &Watch,
        ready: impl FnOnce(&Watch) -> Result<(), Failure>,
    ) -> Result<LoadRecord, Failure> {
        let arguments = self.arguments;
        let steps = steps(arguments)?;
        record::check_writable(arguments)?;
        ready(watch)?;
        let target = self.target()?;
        let plan = self.plan(&target)?;
        let mut run = Run {
            steps,
            duration: arguments.step_seconds,
            background_rps: arguments.background.unwrap_or(0.0),
            server: process(arguments.server_pid)?,
            spans: spans(arguments.server_metrics.as_deref())?,
        };
        let mut crew = match arguments.coordination.agents.is_empty() {
            true => prepare(&plan, target.roots.clone(), watch)?,
            false => agent::coordinate(&arguments.coordination, &plan, watch)?,
        };
        let mut record = record::begin(arguments, &plan, &target, self.antp);
        let display = Display::start(arguments, &run, watch, &record)?;
        let outcome = run.carry_out(crew.as_mut(), watch, |step| display.step(step));
        drop(display);
        record::conclude(&mut record, outcome, &run);
        Ok(record)
    }
}

/// Keeps and prints the record, and says how the command ends.
fn finish(arguments: &LoadArguments, record: &LoadRecord) -> Result<Exit, Failure> {
    let kept = record::keep(arguments, record);
    output::result(&match (arguments.json, arguments.tui) {
        (true, _) => record.to_json(),
        // The rows went away with the screen.
        (false, true) => text::summary(record),
        (false, false) => format!("\n{}", text::conclusion(record)),
    });
    kept?;
    let answered: u64 = record.steps.iter().map(|step| step.tally.answered).sum();
    let invalid: u64 = record.steps.iter().map(|step| step.tally.invalid).sum();
    match &record.interrupted {
        Some(Interruption::Fault(fault)) => Err(Exit::Unavailable.because(fault.clone())),
        _ if answered > 0 || record.steps.is_empty() => Ok(Exit::Done),
        _ if invalid > 0 => {
            Err(Exit::Authentication.because(format!("{}: no answer passed every check", record.target)))
        }
        _ => Err(Exit::Silence.because(format!("{}: no answer", record.target))),
    }
}

fn steps(arguments: &LoadArguments) -> Result<Steps, Failure> {
    let wrong = |option: &str, error: rates::RatesError| Exit::Usage.because(format!("{option}: {error}"));
    if arguments.closed.is_some() {
        return Ok(Steps::Closed);
    }
    if arguments.search {
        return Ok(Steps::Search(Settings {
            start_rps: arguments.search_from.min(arguments.rate_max),
            rate_max_rps: arguments.rate_max,
            loss_max: arguments.loss_max,
            ..Settings::default()
        }));
    }
    let rates = match (&arguments.ramp, &arguments.geometric) {
        (Some(text), _) => rates::ramp(text).map_err(|error| wrong("--ramp", error))?,
        (_, Some(text)) => rates::geometric(text).map_err(|error| wrong("--geometric", error))?,
        (None, None) => vec![arguments.rate.unwrap_or(DEFAULT_RATE_RPS)],
    };
    Ok(Steps::Open(rates))
}

const DEFAULT_RATE_RPS: f64 = 1000.0;

impl Offer<'_> {
    fn target(&self) -> Result<Target, Failure> {
        let Offer { scheme, arguments, trust, key, antp, .. } = *self;
        let permission = Permission::new(&arguments.permission)?;
        let wanted = Wanted { scheme, text: &arguments.target, trust, key, antp, timeout: arguments.timeout };
        Target::find(&wanted, &permission)
    }

    fn plan(&self, target: &Target) -> Result<Plan, Failure> {
        let Offer { scheme, arguments, trust, replay, antp, separate_tag, .. } = *self;
        let _ = authentick_net::descriptors::raise_limit();
        let arrivals = match (arguments.closed, arguments.arrivals) {
            (Some(window), _) => Arrivals::Closed { window },
            (None, ArrivalsArgument::Constant) => Arrivals::Constant,
            (None, ArrivalsArgument::Exponential) => Arrivals::Exponential,
        };
        let seed = match arguments.seed {
            Some(seed) => seed,
            None => Entropy::from_system()?.u64() >> 11,
        };
        let background = arguments.background.is_some() && scheme != Scheme::Ke;
        Ok(Plan {
            scheme,
            ntp: target.ntp,
            ke: target.ke,
            server_name: target.server_name.clone(),
            authorities_pem: target.authorities_pem.clone(),
            shared_key: target.key.as_ref().map(SharedKey::from),
            antp: antp.map(|antp| Antp { suite: antp.kem.suite().0, separate_tag, replay }),
            aeads: target.aeads.iter().map(|aead| aead.0).collect(),
            alternative_keys: target.alternative_keys,
            clients: arguments.clients.max(arguments.workers),
            background_clients: if background { arguments.clients.max(arguments.workers) } else { 0 },
            sources: sources(arguments)?,
            workers: arguments.workers,
            pinned: !arguments.unpinned,
            arrivals,
            seed,
            timeout: arguments.timeout.max(Duration::from_millis(1)),
            ke_timeout: trust
                .map_or(Duration::from_secs(10), |trust| trust.ke_timeout)
                .max(Duration::from_millis(1)),
            replay_cookie: replay && antp.is_none(),
            joinable: arguments.server_metrics.is_some(),
        })
    }
}

/// The addresses of the prefix that this host can send from.
fn sources(arguments: &LoadArguments) -> Result<Vec<std::net::IpAddr>, Failure> {
    let Some(prefix) = arguments.sources else { return Ok(Vec::new()) };
    let wanted = SOURCE_COUNT_MAX.min(arguments.clients.max(1) as usize);
    let owned = |address: &std::net::IpAddr| std::net::UdpSocket::bind((*address, 0)).is_ok();
    let sources: Vec<_> = prefix.addresses().take(SOURCE_COUNT_MAX).filter(owned).take(wanted).collect();
    match sources.is_empty() {
        true => {
            let message = format!(
                "--sources {prefix}: this host has none of these addresses; add them, for example with ip address add, \
                 or ip route add local {prefix} dev lo"
            );
            Err(Exit::Usage.because(message))
        }
        false => Ok(sources),
    }
}

fn process(pid: Option<u32>) -> Result<Option<Process>, Failure> {
    let problem = |text: String| Exit::Usage.because(format!("--server-pid: {text}"));
    pid.map(Process::new).transpose().map_err(problem)
}

fn spans(address: Option<&str>) -> Result<Option<SpanSource>, Failure> {
    let problem = |text: String| Exit::Unavailable.because(format!("--server-metrics: {text}"));
    address.map(SpanSource::new).transpose().map_err(problem)
}

fn prepare(
    plan: &Plan,
    roots: Option<authentick_ke::tls::Roots>,
    watch: &Watch,
) -> Result<Box<dyn Crew>, Failure> {
    let client_count = u64::from(plan.clients) + u64::from(plan.background_clients);
    // Other schemes only open ports, which takes no time that is worth a bar.
    let shown = plan.scheme.nature().provision.is_some().then(|| progress::preparation(client_count, watch));
    let generator = Generator::prepare(plan, roots, watch);
    drop(shown);
    match generator {
        Ok(generator) => Ok(Box::new(generator)),
        Err(problem) => Err(Exit::Unavailable.because(problem)),
    }
}
