//! The side that gives orders: connects to all agents, compares clocks, starts each step everywhere at one instant, and
//! combines the reports.
//!
//! A step begins once every report of the previous one has arrived. If an agent is lost, or reports what cannot be
//! true, the run ends: the others are told to stop, and the rest is not summed up.

use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use authentick_report::load::HostPart;

use super::clock::{Monotonic, Ping, Reading, Span, best, micros, theirs};
use super::dial::{Connected, Event, connect, out_of_turn};
use super::error::{CrewError, Fault};
use super::identity::Identity;
use super::limits::{AGENT_COUNT_MAX, DURATION_MAX, LEAD, PING_COUNT, PING_MAX, READY_MAX, REPORT_MAX};
use super::link::LinkError;
use super::message::{About, FromAgent, ToAgent, shown};
use super::share::{check, merge, split, split_plan};
use crate::lock;
use crate::plan::{Crew, Order, Part, Plan, Scheme, Watch};

/// How often the watch is checked.
const TICK: Duration = Duration::from_millis(10);

/// Messages of all agents that are queued; an agent that sends more has to wait.
const EVENT_COUNT_MAX: usize = 256;

/// A run over several hosts.
pub struct Coordinator {
    agents: Vec<Connected>,
    events: mpsc::Receiver<Event>,
    /// Keeps `events` open when every reader has ended.
    _events_open: SyncSender<Event>,
    clock: Monotonic,
    /// How long a step may take beyond its duration.
    tail: Duration,
    step: u64,
    pings: u64,
    hosts: Vec<HostPart>,
    failed: Option<CrewError>,
}

/// An agent's report of a step.
struct Report {
    started_ns: Option<u64>,
    part: Part,
    at: Instant,
}

impl Coordinator {
    /// Connects to all `agents`, each `HOST:PORT`, whose certificate must be for HOST, and gives each its share of the
    /// plan: clients are divided, each has a seed of its own. Returns once all have created their generators, or
    /// `watch` is stopped.
    ///
    /// # Errors
    /// Of the first agent that cannot be used, or what is wrong with the list or the plan.
    pub fn connect(
        agents: &[String],
        identity: &Identity,
        plan: &Plan,
        watch: &Watch,
    ) -> Result<Self, CrewError> {
        let usage = |message: String| CrewError::of_run(Fault::Usage, message);
        if agents.is_empty() || agents.len() > AGENT_COUNT_MAX {
            return Err(usage(format!("{} agents; name 1 to {AGENT_COUNT_MAX}", agents.len())));
        }
        if let Some(twice) = agents.iter().enumerate().find(|(at, agent)| agents[..*at].contains(agent)) {
            return Err(CrewError::new(twice.1, Fault::Usage, "it is named twice"));
        }
        let plans = split_plan(plan, agents.len()).map_err(usage)?;
        let tls = identity.client_config();
        let (events_open, events) = mpsc::sync_channel(EVENT_COUNT_MAX);
        let mut connected = Vec::with_capacity(agents.len());
        for (index, name) in agents.iter().enumerate() {
            if watch.is_stopped() {
                return Err(CrewError::of_run(Fault::Stopped, "stopped before the run began"));
            }
            connected.push(connect(index, name, &tls, &events_open)?);
        }
        let mut coordinator = Coordinator {
            agents: connected,
            events,
            _events_open: events_open,
            clock: Monotonic::start(),
            tail: tail(plan),
            step: 0,
            pings: 0,
            hosts: Vec::new(),
            failed: None,
        };
        for (index, plan) in plans.into_iter().enumerate() {
            coordinator.send(index, &ToAgent::Prepare(Box::new(plan)))?;
        }
        coordinator.collect(Instant::now() + READY_MAX, "generator", Some(watch), |message, _| {
            matches!(message, FromAgent::Ready).then_some(())
        })?;
        Ok(coordinator)
    }

    fn try_step(&mut self, order: &Order, start: Instant, watch: &Watch) -> Result<Part, CrewError> {
        let rates = [order.rate_rps.unwrap_or(0.0), order.background_rps];
        if rates.iter().any(|rate| !rate.is_finite() || *rate < 0.0) || order.duration > DURATION_MAX {
            let message = "a rate is negative or no number, or a step is longer than a day";
            return Err(CrewError::of_run(Fault::Usage, message));
        }
        let orders = split(order, self.agents.len());
        let before = self.read_clocks()?;
        self.step += 1;
        let slowest = before.iter().map(|reading| reading.error).max().unwrap_or(0);
        // Two round trips: one for the order, one for a packet that is lost and sent again.
        let way = Duration::from_nanos(u64::try_from(4 * slowest).unwrap_or(0));
        let start = start.max(Instant::now() + LEAD + way);
        let told = self.order(&orders, &before, start)?;
        let (reports, stopped) = self.await_reports(start + order.duration, start, watch)?;
        let after = self.read_clocks()?;
        let mut parts = Vec::with_capacity(reports.len());
        for (index, report) in reports.into_iter().enumerate() {
            let name = &self.agents[index].name;
            let lie = |message: String| CrewError::new(name, Fault::Clock, message);
            let span = Span::new(before[index], after[index])
                .map_err(|error| lie(format!("over the step, {error}")))?;
            let at = StepInstants {
                start: self.clock.at(start),
                theirs: told[index],
                done: self.clock.at(report.at),
            };
            let skew = skew(report.started_ns, &span, &at, stopped).map_err(lie)?;
            parts.push(row(&self.agents[index], orders[index].rate_rps, report.part, skew));
        }
        let (part, hosts) = merge(parts).ok_or_else(|| {
            let message = "agents count different operations; run one version everywhere";
            CrewError::of_run(Fault::Protocol, message)
        })?;
        self.hosts = hosts;
        Ok(part)
    }

    /// Sends each agent its order. The starts, by the agents' own clocks.
    fn order(&mut self, orders: &[Order], before: &[Reading], start: Instant) -> Result<Vec<u64>, CrewError> {
        let number = self.step;
        let mut told = Vec::with_capacity(orders.len());
        for (index, (order, reading)) in orders.iter().zip(before).enumerate() {
            let Some(start_ns) = theirs(reading, self.clock.at(start)) else {
                let message =
                    format!("its clock is off by {} us, which no clock can be", micros(reading.offset));
                return Err(CrewError::new(&self.agents[index].name, Fault::Clock, message));
            };
            self.agents[index].told = [0; 3];
            self.send(index, &ToAgent::Step { number, order: *order, start_ns })?;
            told.push(start_ns);
        }
        Ok(told)
    }

    /// Waits for all reports of the step, reports progress to the watch, and passes a stop on to the agents. The second
    /// value says whether there was a stop.
    fn await_reports(
        &mut self,
        end: Instant,
        start: Instant,
        watch: &Watch,
    ) -> Result<(Vec<Report>, bool), CrewError> {
        let number = self.step;
        let mut reports: Vec<Option<Report>> = self.agents.iter().map(|_| None).collect();
        let mut deadline = end + self.tail;
        let mut stopped = false;
        while let Some(missing) = reports.iter().position(Option::is_none) {
            if watch.is_stopped() && !stopped {
                stopped = true;
                deadline = deadline.min(Instant::now() + self.tail);
                for index in 0..self.agents.len() {
                    self.send(index, &ToAgent::Stop)?;
                }
            }
            let now = Instant::now();
            if now >= deadline {
                let waited = deadline.saturating_duration_since(end.min(deadline));
                return Err(CrewError::late(&self.agents[missing].name, "report after the step", waited));
            }
            if let Some((index, message, at)) = self.next(deadline.min(now + TICK))? {
                let name = &self.agents[index].name;
                match message {
                    FromAgent::Done { step, started_ns, counts, part }
                        if step == number && reports[index].is_none() =>
                    {
                        check(&part).map_err(|error| CrewError::new(name, Fault::Protocol, error))?;
                        if at < start && !stopped {
                            let early = micros((start - at).as_nanos() as i128);
                            let message = format!("it reported the step {early} us before it was to begin");
                            return Err(CrewError::new(name, Fault::Clock, message));
                        }
                        watch.tell(&mut self.agents[index].told, counts);
                        reports[index] = Some(Report { started_ns, part: *part, at });
                    }
                    _ => return Err(out_of_turn(name)),
                }
            }
            for agent in &mut self.agents {
                let (step, counts) = *lock(&agent.beat);
                if step == number {
                    watch.tell(&mut agent.told, counts);
                }
            }
        }
        Ok((reports.into_iter().flatten().collect(), stopped))
    }

    /// Compares all clocks with ours by several pings each; the fastest ones' readings.
    fn read_clocks(&mut self) -> Result<Vec<Reading>, CrewError> {
        let mut readings: Vec<Vec<Reading>> = vec![Vec::new(); self.agents.len()];
        for _ in 0..PING_COUNT {
            self.pings += 1;
            let number = self.pings;
            let mut sent = Vec::with_capacity(self.agents.len());
            for index in 0..self.agents.len() {
                sent.push(self.clock.now());
                self.send(index, &ToAgent::Ping { number })?;
            }
            let clock = self.clock;
            let pongs = self.collect(
                Instant::now() + PING_MAX,
                "answer to a ping",
                None,
                |message, at| match message {
                    FromAgent::Pong { number: of, received_ns, sent_ns } if of == number => {
                        Some((received_ns, sent_ns, clock.at(at)))
                    }
                    _ => None,
                },
            )?;
            for (index, (t2, t3, t4)) in pongs.into_iter().enumerate() {
                let reading = Reading::of(&Ping { t1: sent[index], t2, t3, t4 });
                readings[index].push(reading.map_err(|lie| self.lie(index, &lie))?);
            }
        }
        let best = readings.iter().enumerate().map(|(index, readings)| {
            best(readings).map(|best| best.expect("there was a ping")).map_err(|lie| self.lie(index, &lie))
        });
        best.collect()
    }

    fn lie(&self, index: usize, lie: &super::clock::Lie) -> CrewError {
        CrewError::new(&self.agents[index].name, Fault::Clock, lie.to_string())
    }

    /// One answer of each agent, as `take` converts it; any other message is out of turn.
    fn collect<T>(
        &mut self,
        deadline: Instant,
        what: &str,
        watch: Option<&Watch>,
        take: impl Fn(FromAgent, Instant) -> Option<T>,
    ) -> Result<Vec<T>, CrewError> {
        let asked = Instant::now();
        let mut answers: Vec<Option<T>> = self.agents.iter().map(|_| None).collect();
        while let Some(missing) = answers.iter().position(Option::is_none) {
            if watch.is_some_and(Watch::is_stopped) {
                return Err(CrewError::of_run(Fault::Stopped, "stopped before the run began"));
            }
            if Instant::now() >= deadline {
                return Err(CrewError::late(&self.agents[missing].name, what, deadline - asked));
            }
            if let Some((index, message, at)) = self.next(deadline.min(Instant::now() + TICK))? {
                match take(message, at) {
                    Some(answer) if answers[index].is_none() => answers[index] = Some(answer),
                    _ => return Err(out_of_turn(&self.agents[index].name)),
                }
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// The next message of any agent; `None` if there is none until then. Refusals and losses are errors.
    fn next(&mut self, until: Instant) -> Result<Option<(usize, FromAgent, Instant)>, CrewError> {
        let wait = until.saturating_duration_since(Instant::now());
        let (index, event) = match self.events.recv_timeout(wait) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(None),
        };
        let name = &self.agents[index].name;
        match event {
            Ok((FromAgent::Refused { why }, _)) => Err(CrewError::refused(name, &why)),
            Ok((FromAgent::Failed { why, .. }, _)) => {
                Err(CrewError::new(name, Fault::Generator, format!("its generator failed: {}", shown(&why))))
            }
            Ok((message, at)) => Ok(Some((index, message, at))),
            Err(error) => Err(CrewError::lost(name, &error, self.step)),
        }
    }

    fn send(&self, index: usize, message: &ToAgent) -> Result<(), CrewError> {
        let agent = &self.agents[index];
        match agent.sender.send(message) {
            Ok(()) => Ok(()),
            Err(LinkError::Message(error)) => {
                let message = format!("the plan is too large: {error}; name fewer authorities");
                Err(CrewError::of_run(Fault::Usage, message))
            }
            Err(error) => Err(self.said_last(index, &error)),
        }
    }

    /// Why a connection cannot be written to: what the agent said before it closed, if it did.
    fn said_last(&self, index: usize, error: &LinkError) -> CrewError {
        let name = &self.agents[index].name;
        for _ in 0..=EVENT_COUNT_MAX {
            let Ok((of, event)) = self.events.recv_timeout(10 * TICK) else { break };
            if of != index {
                continue;
            }
            match event {
                Ok((FromAgent::Refused { why }, _)) => return CrewError::refused(name, &why),
                Ok(_) => {}
                Err(error) => return CrewError::lost(name, &error, self.step),
            }
        }
        CrewError::lost(name, error, self.step)
    }

    /// Ends the run: the agent at fault first, then all others.
    fn abandon(&mut self, error: &CrewError) {
        self.failed = Some(error.clone());
        let is_at_fault = |agent: &&Connected| error.agent.as_ref() == Some(&agent.name);
        self.agents.iter().filter(is_at_fault).for_each(|agent| agent.sender.close());
        for agent in self.agents.iter().filter(|agent| !is_at_fault(agent)) {
            let _ = agent.sender.send(&ToAgent::Stop);
        }
        self.agents.clear();
        self.hosts.clear();
    }
}

impl Crew for Coordinator {
    /// Begins at `start`, or later if the order needs longer to reach the slowest agent. An error is that of the first
    /// agent that is lost, fails, or reports what cannot be true. The others are told to stop, and every later step
    /// fails likewise.
    fn step(&mut self, order: &Order, start: Instant, watch: &Watch) -> Result<Part, CrewError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.try_step(order, start, watch).inspect_err(|error| self.abandon(error))
    }

    fn hosts(&self) -> &[HostPart] {
        &self.hosts
    }
}

/// How long a step may go on after its last operation began: each may wait for its key exchange and its answers twice.
fn tail(plan: &Plan) -> Duration {
    let transfers = match plan.scheme {
        Scheme::Plain | Scheme::Mac | Scheme::Nts | Scheme::Ke => 1,
        Scheme::Antp | Scheme::AntpExchange => 1,
        // The longest chain takes ten requests, and two phases follow.
        Scheme::AntpNegotiate | Scheme::AntpFull => 12,
        // None begins later than a timeout after the step.
        Scheme::Mix { .. } => 2,
    };
    let waits = plan.timeout.saturating_mul(transfers).saturating_add(plan.ke_timeout).saturating_mul(2);
    waits.min(Duration::from_secs(3600)) + REPORT_MAX
}

/// When a step began and was reported, in nanoseconds.
struct StepInstants {
    /// The start by our clock.
    start: u64,
    /// The start by its clock.
    theirs: u64,
    /// The report's arrival by our clock.
    done: u64,
}

/// How long after the common start an agent began, and how far off that may be, in nanoseconds; `None` if the step was
/// stopped before. An error says why that cannot be true.
fn skew(
    started_ns: Option<u64>,
    span: &Span,
    told: &StepInstants,
    stopped: bool,
) -> Result<Option<(i128, i128)>, String> {
    let Some(started_ns) = started_ns else {
        return match stopped {
            true => Ok(None),
            false => Err("it says that it never began, and nobody stopped it".to_owned()),
        };
    };
    if started_ns < told.theirs {
        let early = micros(i128::from(told.theirs - started_ns));
        return Err(format!("it says that it began {early} us before the start that it was told"));
    }
    let (ours, error) = span.ours(started_ns);
    let after_report = ours - i128::from(told.done);
    if after_report > error {
        return Err(format!(
            "it says that it began {} us after its report was here, give or take {} us",
            micros(after_report),
            micros(error)
        ));
    }
    Ok(Some((ours - i128::from(told.start), error)))
}

/// A host's row beside its part.
fn row(
    agent: &Connected,
    offered_rps: Option<f64>,
    mut part: Part,
    skew: Option<(i128, i128)>,
) -> (HostPart, Part) {
    let unstarted = skew.is_none().then(|| "it was stopped before it began".to_owned());
    part.why_invalid = part.why_invalid.as_deref().map(shown).or(unstarted);
    part.why_late = part.why_late.as_deref().map(shown);
    part.tally.summarise();
    let (late, error) = skew.unwrap_or((0, 0));
    let About { version, cpu, cpu_count, online_cpu_count, cpu_quota_millicpus, kernel } = &agent.about;
    let row = HostPart {
        name: agent.name.clone(),
        offered_rps,
        tally: part.tally.without_histograms(),
        valid: part.why().is_none(),
        why_invalid: part.why().cloned(),
        start_skew_us: late as f64 / 1000.0,
        start_skew_error_us: error as f64 / 1000.0,
        busy_share: part.busy_share,
        cpu: Some(shown(cpu)),
        cpu_count: Some(*cpu_count),
        online_cpu_count: *online_cpu_count,
        cpu_quota_millicpus: *cpu_quota_millicpus,
        kernel: Some(shown(kernel)),
        version: Some(shown(version)),
    };
    (row, part)
}
