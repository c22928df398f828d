//! `authentick load`: offers a server load, and says what it holds.
//!
//! - `agent`: taking part in runs of others, and ordering agents.
//! - `target`: who is loaded, whether that is allowed, and a first exchange that shows that it answers.
//! - `progress`: what is shown while a run goes on, and how it is stopped.
//! - `screen`: the live screen of `--tui`.
//! - `record`: what is kept of it.

mod agent;
mod progress;
mod record;
mod screen;
mod target;

use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_load::ending::Ending;
use authentick_load::runner::{Outcome, Run, Steps};
use authentick_load::search::{Settings, Windows};
use authentick_load::target::Target;
use authentick_load::{Antp, Arrivals, Crew, Generator, Plan, Processes, Scheme, SpanSource, Watch};
use authentick_load::{neighbours, rates, sources};
use authentick_report::load::{LoadRecord, Step, text};

use crate::args::{Agent, ArrivalsArgument, Load, LoadArguments, LoadScheme};
use crate::exit::{Exit, Failure};
use crate::output;

use self::progress::Display;
pub(crate) use self::progress::stop_on_signals;
use self::record::RunFiles;
pub(crate) use self::target::{Proof, UNKNOWN, find};

/// What nobody waits for cannot be answered.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);

pub(crate) fn run(load: &Load) -> Result<Exit, Failure> {
    let offer = match offer(load) {
        Ok(offer) => offer,
        Err(arguments) => return agent::run(arguments),
    };
    if offer.arguments.tui {
        screen::terminal::check()?;
    }
    let watch = Watch::default();
    let steps = steps(offer.scheme, offer.arguments)?;
    let mut files = RunFiles::open(offer.arguments)?;
    stop_on_signals(&watch);
    let record = offer.measure(steps, &watch, &mut files)?;
    finish(offer.arguments, &record, files)
}

/// Carries a run out for another command, which prints and keeps what it likes of it.
pub(crate) fn measure(load: &Load, watch: &Watch) -> Result<LoadRecord, Failure> {
    match offer(load) {
        Ok(offer) => offer.measure(steps(offer.scheme, offer.arguments)?, watch, &mut RunFiles::default()),
        Err(_) => Err(Exit::Internal.because("an agent measures nothing by itself")),
    }
}

/// What the command line offers; as an error, that it is to be an agent instead.
fn offer(load: &Load) -> Result<Offer<'_>, &Agent> {
    Ok(match &load.scheme {
        LoadScheme::Agent(arguments) => return Err(arguments),
        LoadScheme::Plain { load } => Offer::new(Scheme::Plain, load, Proof::None),
        LoadScheme::Mac { load, key } => Offer::new(Scheme::Mac, load, Proof::Key(key.into())),
        LoadScheme::Nts { load, nts, replay_cookie } => {
            Offer { replay: *replay_cookie, ..Offer::new(Scheme::Nts, load, Proof::Nts(nts)) }
        }
        LoadScheme::Ke { load, nts } => Offer::new(Scheme::Ke, load, Proof::Nts(nts)),
        LoadScheme::Mix { load, nts, transfers_per_exchange, same_cookie, background_transfers } => {
            let (transfers, same_cookie) = (*transfers_per_exchange, *same_cookie);
            let background_transfers = *background_transfers;
            Offer::new(Scheme::Mix { transfers, same_cookie, background_transfers }, load, Proof::Nts(nts))
        }
        LoadScheme::AntpNegotiate { load, antp, replay } => {
            Offer { replay: *replay, ..Offer::new(Scheme::AntpNegotiate, load, Proof::Antp(antp)) }
        }
        LoadScheme::AntpExchange { load, antp, replay } => {
            Offer { replay: *replay, ..Offer::new(Scheme::AntpExchange, load, Proof::Antp(antp)) }
        }
        LoadScheme::Antp { load, antp, replay, separate_tag } => {
            let offer = Offer::new(Scheme::Antp, load, Proof::Antp(antp));
            Offer { replay: *replay, separate_tag: *separate_tag, ..offer }
        }
        LoadScheme::AntpFull { load, antp, separate_tag } => {
            let offer = Offer::new(Scheme::AntpFull, load, Proof::Antp(antp));
            Offer { separate_tag: *separate_tag, ..offer }
        }
    })
}

/// What is to be offered, and to whom.
struct Offer<'a> {
    scheme: Scheme,
    arguments: &'a LoadArguments,
    proof: Proof<'a>,
    /// Send one cookie of each client again and again, or one request of ANTP.
    replay: bool,
    /// Under ANTP: ask for tags in packets of their own.
    separate_tag: bool,
}

impl<'a> Offer<'a> {
    fn new(scheme: Scheme, arguments: &'a LoadArguments, proof: Proof<'a>) -> Self {
        Offer { scheme, arguments, proof, replay: false, separate_tag: false }
    }

    /// Carries the run out; what is known while it goes on is kept in `files`.
    fn measure(&self, steps: Steps, watch: &Watch, files: &mut RunFiles) -> Result<LoadRecord, Failure> {
        let arguments = self.arguments;
        let Offer { scheme, proof, .. } = *self;
        let force = arguments.force_first;
        let target = find(scheme, &arguments.target, proof, &arguments.permission, arguments.timeout, force)?;
        let plan = self.plan(&target)?;
        let mut run = Run {
            warm_up: arguments.warm_up,
            stop_at_loss: arguments.stop_at_loss.or(arguments.geometric.is_some().then_some(COLLAPSE_LOSS)),
            background_rps: arguments.background.unwrap_or(0.0),
            server: process(&arguments.server_pid, plan.ntp.port())?,
            spans: spans(arguments, files)?,
            ..Run::new(steps, arguments.step_duration())
        };
        let mut record = record::begin(arguments, &plan, &run, &target);
        let crew = match arguments.coordination.agents.is_empty() {
            true => {
                neighbours::advise(&plan, &arguments.server_pid);
                prepare(&plan, &target, watch)
            }
            false => agent::coordinate(&arguments.coordination, &plan, watch),
        };
        let outcome = match crew {
            // Stopped while clients got their first keys: that is what there is to say.
            Err(_) if watch.is_stopped() => Outcome::stopped(),
            Err(failure) => return Err(failure),
            Ok(mut crew) => {
                let display = Display::start(arguments, &run, watch, &record)?;
                let mut journal = files.journal(&record);
                // The closed loop of a search has a result, and no rows.
                let is_kept = |step: &Step| !arguments.search || step.offered_rps.is_some();
                run.carry_out(crew.as_mut(), watch, |step| {
                    display.step(step, is_kept(step));
                    journal.iter_mut().filter(|_| is_kept(step)).for_each(|journal| journal.step(step));
                })
            }
        };
        outcome.conclude(&mut record, &run.steps);
        Ok(record)
    }

    fn plan(&self, target: &Target) -> Result<Plan, Failure> {
        let Offer { scheme, arguments, proof, replay, separate_tag } = *self;
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
        let antp = match proof {
            Proof::Antp(antp) => Some(Antp { suite: antp.kem.suite().0, separate_tag, replay }),
            Proof::None | Proof::Presence | Proof::Key(_) | Proof::Nts(_) => None,
        };
        let clients = arguments.clients.max(arguments.workers);
        let has_background = arguments.background.is_some() && scheme.has_background_clients();
        let background_clients = arguments.background_clients.unwrap_or(clients).max(arguments.workers);
        let wrong = |problem| Exit::Usage.because(problem);
        let own = arguments.sources.map(|prefix| sources::of_prefix(&prefix, clients)).transpose();
        let plan = Plan {
            antp,
            clients,
            background_clients: if has_background { background_clients } else { 0 },
            sources: own.map_err(wrong)?.unwrap_or_default(),
            background_sources: sources::listed(&arguments.background_sources).map_err(wrong)?,
            workers: arguments.workers,
            pinned: !arguments.unpinned,
            arrivals,
            seed,
            timeout: arguments.timeout.max(TIMEOUT_MIN),
            ke_timeout: target.plan.ke_timeout.max(TIMEOUT_MIN),
            replay_cookie: replay && antp.is_none(),
            joinable: arguments.server_metrics.is_some(),
            ..target.plan.clone()
        };
        plan.check_sources().map_err(wrong)?;
        Ok(plan)
    }
}

/// Keeps and prints the record, and says how the command ends.
fn finish(arguments: &LoadArguments, record: &LoadRecord, files: RunFiles) -> Result<Exit, Failure> {
    let kept = files.write(record);
    output::result(&match (arguments.json, arguments.tui) {
        (true, _) => record.to_json(),
        // The rows went away with the screen.
        (false, true) => text::summary(record),
        (false, false) => format!("\n{}", text::conclusion(record)),
    });
    kept?;
    verdict(&record.target, Ending::of(record, &arguments.fail_if))
}

/// How a command ends that has loaded `target`.
pub(crate) fn verdict(target: &str, ending: Ending) -> Result<Exit, Failure> {
    Err(match ending {
        Ending::Done => return Ok(Exit::Done),
        Ending::Fault(fault) => Exit::Unavailable.because(fault),
        Ending::Silence => Exit::Silence.because(format!("{target}: no answer")),
        Ending::Unauthenticated => {
            Exit::Authentication.because(format!("{target}: no answer passed every check"))
        }
        Ending::Invalid(why) => {
            Exit::Invalid.because(format!("{target}: this run says nothing about the server: {why}"))
        }
        Ending::Crossed(sentences) => Exit::Crossed.because(sentences.join("\n")),
    })
}

fn steps(scheme: Scheme, arguments: &LoadArguments) -> Result<Steps, Failure> {
    let wrong = |option: &str, error: rates::RatesError| Exit::Usage.because(format!("{option}: {error}"));
    if arguments.closed.is_some() {
        return Ok(Steps::Closed);
    }
    if arguments.search {
        let rate_max_rps = arguments.rate_max.unwrap_or(Settings::default().rate_max_rps);
        let first = if scheme.nature().measures_transfers { WINDOW_FIRST } else { 1 };
        let windows = Windows { first, largest: (IN_FLIGHT_MAX / arguments.workers).max(first) };
        return Ok(Steps::Search(Settings {
            start_rps: arguments.search_from.min(rate_max_rps),
            rate_max_rps,
            loss_max: arguments.loss_max,
            budget: arguments.budget,
            // A closed loop keeps to no rate.
            windows: arguments.rate_max.is_none().then_some(windows),
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
/// Requests in flight with which the closed loop of a search begins; key exchanges begin with one.
const WINDOW_FIRST: u32 = 8;
/// Operations in flight in a closed loop of a search, over all workers: as many as agents take by default.
const IN_FLIGHT_MAX: u32 = 4096;
/// Beyond this loss a server has collapsed, and higher rates in equal ratios show nothing new.
const COLLAPSE_LOSS: f64 = 0.5;

fn process(pids: &[u32], port: u16) -> Result<Option<Processes>, Failure> {
    let problem = |text: String| Exit::Usage.because(format!("--server-pid: {text}"));
    (!pids.is_empty()).then(|| Processes::new(pids, port)).transpose().map_err(problem)
}

fn spans(arguments: &LoadArguments, files: &mut RunFiles) -> Result<Option<SpanSource>, Failure> {
    let problem = |option| move |text: String| Exit::Unavailable.because(format!("{option}: {text}"));
    let address = arguments.server_metrics.as_deref();
    let mut spans = address.map(SpanSource::new).transpose().map_err(problem("--server-metrics"))?;
    if let (Some(spans), Some(file)) = (&mut spans, files.take_spans()) {
        spans.keep_rows(file).map_err(problem("--spans"))?;
    }
    Ok(spans)
}

fn prepare(plan: &Plan, target: &Target, watch: &Watch) -> Result<Box<dyn Crew>, Failure> {
    let client_count = u64::from(plan.clients) + u64::from(plan.background_clients);
    // Other schemes only open ports, which takes no time that is worth a bar.
    let provision = plan.scheme.nature().provision;
    let shown = provision.is_some().then(|| progress::preparation(client_count, watch)).transpose()?;
    let generator = Generator::prepare(plan, target.roots.clone(), watch);
    drop(shown);
    Ok(Box::new(generator.map_err(|problem| Exit::Unavailable.because(problem))?))
}
