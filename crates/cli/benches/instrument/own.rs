//! Our generator as a library, in a process of its own: no first exchange, so that it can be aimed at a silent socket.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use authentick_load::runner::{Run, Steps};
use authentick_load::search::Settings;
use authentick_load::{Generator, Plan, Processes, Scheme, Watch};
use authentick_report::load::Step;

use super::Error;

/// How long an answer is waited for: short, as a silent socket would fill the memory of a generator that waits.
const TIMEOUT: Duration = Duration::from_millis(200);

/// What is offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Model {
    /// One rate.
    Rate(f64),
    /// The highest rate at which the generator keeps to its schedule, answered or not.
    Search { from: f64, most: f64 },
    /// Rates in steps of a half more; the most that was answered in any.
    Flood { from: f64, most: f64 },
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Model::Rate(rate) => write!(f, "rate:{rate}"),
            Model::Search { from, most } => write!(f, "search:{from}:{most}"),
            Model::Flood { from, most } => write!(f, "flood:{from}:{most}"),
        }
    }
}

impl FromStr for Model {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split(':').collect::<Vec<_>>()[..] {
            ["rate", rate] => Ok(Model::Rate(rate.parse()?)),
            ["search", from, most] => Ok(Model::Search { from: from.parse()?, most: most.parse()? }),
            ["flood", from, most] => Ok(Model::Flood { from: from.parse()?, most: most.parse()? }),
            _ => Err(format!("no model {text}").into()),
        }
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// The highest rate at which the generator kept to its schedule.
    pub(crate) offered_rps: f64,
    /// The most that was sent.
    pub(crate) sent_rps: f64,
    /// The most that was answered, every answer checked.
    pub(crate) answered_rps: f64,
    /// Lateness of the last step.
    pub(crate) late_p99_us: f64,
    /// Median latency of the last step.
    pub(crate) latency_p50_us: f64,
    /// Memory of the process at the end.
    pub(crate) resident_size: u64,
}

impl Measured {
    /// The same, if anything answered.
    pub(crate) fn answering(self) -> Result<Self, Error> {
        if self.answered_rps > 0.0 { Ok(self) } else { Err("our server gave no good answer".into()) }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { offered_rps, sent_rps, answered_rps, late_p99_us, latency_p50_us, resident_size } =
            self;
        write!(f, "{offered_rps} {sent_rps} {answered_rps} {late_p99_us} {latency_p50_us} {resident_size}")
    }
}

impl FromStr for Measured {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            [offered, sent, answered, late, latency, resident] => Ok(Measured {
                offered_rps: offered.parse()?,
                sent_rps: sent.parse()?,
                answered_rps: answered.parse()?,
                late_p99_us: late.parse()?,
                latency_p50_us: latency.parse()?,
                resident_size: resident.parse()?,
            }),
            _ => Err("no measurement".into()),
        }
    }
}

/// Measures as the arguments say: scheme, server, port of the key exchange, authority, clients, model, milliseconds.
pub(crate) fn run(arguments: &[&str]) -> Result<Measured, Error> {
    let [scheme, ntp, ke_port, ca, clients, model, milliseconds] = *arguments else {
        return Err("seven arguments".into());
    };
    let ntp: SocketAddr = ntp.parse()?;
    let model: Model = model.parse()?;
    let _ = authentick_net::descriptors::raise_limit();
    let plan = Plan {
        scheme: if scheme == "plain" { Scheme::Plain } else { Scheme::Nts },
        ke: SocketAddr::new(ntp.ip(), ke_port.parse()?),
        server_name: "ntp.test".to_owned(),
        authorities_pem: Some(std::fs::read_to_string(ca)?),
        aeads: vec![if scheme == "nts30" { 30 } else { 15 }],
        clients: clients.parse()?,
        // The process has one processor as it is.
        pinned: false,
        seed: 1,
        timeout: TIMEOUT,
        ..Plan::plain(ntp)
    };
    let watch = Watch::default();
    let mut generator = Generator::prepare(&plan, None, &watch)?;
    let steps = match model {
        Model::Rate(rate) => Steps::Open(vec![rate]),
        // Whatever is lost is no matter: only whether the generator kept to its schedule.
        Model::Search { from, most } => Steps::Search(Settings {
            start_rps: from,
            rate_max_rps: most,
            loss_max: 1.0,
            ..Settings::default()
        }),
        Model::Flood { from, most } => Steps::Open(
            std::iter::successors(Some(from), |rate| Some(rate * 1.5))
                .take_while(|&rate| rate <= most)
                .collect(),
        ),
    };
    let duration = Duration::from_millis(milliseconds.parse()?);
    let mut run = Run::new(steps, duration);
    let outcome = run.carry_out(&mut generator, &watch, |_| {});
    if let Some(problem) = outcome.interrupted {
        return Err(problem.to_string().into());
    }
    let most = |rate: fn(&Step) -> f64| outcome.steps.iter().map(rate).fold(0.0, f64::max);
    let late = outcome.steps.last().and_then(|step| step.lateness_us);
    let latency = outcome.steps.last().and_then(|step| step.tally.latency_us);
    Ok(Measured {
        offered_rps: outcome.found.and_then(|found| found.at_least_rps()).unwrap_or(0.0),
        sent_rps: most(Step::sent_rps),
        answered_rps: most(Step::answered_rps),
        late_p99_us: late.map_or(0.0, |late| late.p99),
        latency_p50_us: latency.map_or(0.0, |latency| latency.p50),
        resident_size: Processes::new(&[std::process::id()], 0)?.usage()?.resident_size,
    })
}
