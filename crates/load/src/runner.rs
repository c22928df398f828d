//! A whole run: its steps one after the other, or a search, and a record step for each.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use authentick_client::HostPort;
use authentick_net::addresses::resolve;
use authentick_report::load::{HostPart, Interruption, Limit, ServerUse, Step, Tally, Traffic, Verdict};

use crate::limit;
use crate::plan::{Crew, Order, Part, Watch};
use crate::search::{self, ClosedTrial, Found, Trial};
use crate::server_use::{Processes, Seen, Watching};
use crate::spans::SpanSource;

/// From an order to its first request: time for every thread to be ready.
const HEAD_START: Duration = Duration::from_millis(20);
/// Time for the look-up of an agent, to which a connection was made before.
const LOOK_UP_MAX: Duration = Duration::from_secs(1);

/// What a run does.
#[derive(Debug)]
pub struct Run {
    /// At which rates.
    pub steps: Steps,
    /// How long each step lasts.
    pub duration: Duration,
    /// How long it goes on before that at the same rate, and counts nowhere.
    pub warm_up: Duration,
    /// Rates end with two steps in a row that lose more than this share.
    pub stop_at_loss: Option<f64>,
    /// Operations a second of clients that are not measured.
    pub background_rps: f64,
    /// The server's processes on this host, if they are to be watched.
    pub server: Option<Processes>,
    /// Where the server's own times come from, if they are to be joined.
    pub spans: Option<SpanSource>,
}

/// The rates of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Steps {
    /// These, requests a second.
    Open(Vec<f64>),
    /// A closed loop, which has no rate: one step.
    Closed,
    /// Whatever the search asks for.
    Search(search::Settings),
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// What the search found.
    pub found: Option<Found>,
    /// Why it ended early.
    pub interrupted: Option<Interruption>,
    /// How packets were sent and received.
    pub engine: &'static str,
    /// Whether it ended before its last rate, as too much was lost.
    pub collapsed: bool,
}

impl Outcome {
    /// Of a run that its user stopped before the first step.
    #[must_use]
    pub fn stopped() -> Self {
        Outcome { interrupted: Some(Interruption::ByUser), engine: "sockets", ..Outcome::default() }
    }
}

/// Requests that leave late may be lost for that. A step that lost at most this share shows that the server answers
/// what it did, however late requests were; a step that lost more says nothing of losses, unless these are placed.
const LOSS_MAX: f64 = 0.01;

/// Steps in a row that lose too much before a run ends.
const COLLAPSE_COUNT: usize = 2;

impl Run {
    /// These steps of that length, and nothing else.
    #[must_use]
    pub const fn new(steps: Steps, duration: Duration) -> Self {
        Run {
            steps,
            duration,
            warm_up: Duration::ZERO,
            stop_at_loss: None,
            background_rps: 0.0,
            server: None,
            spans: None,
        }
    }

    /// Whether the last steps lost too much to go on.
    fn has_collapsed(&self, steps: &[Step]) -> bool {
        let last = &steps[steps.len().saturating_sub(COLLAPSE_COUNT)..];
        let too_much = |step: &Step, share| step.tally.loss_ratio() > share;
        self.stop_at_loss.is_some_and(|share| {
            last.len() == COLLAPSE_COUNT && last.iter().all(|step| too_much(step, share))
        })
    }

    /// Carries out the run; `each` sees every step as it ends. Measured steps are kept, whatever ends the run.
    pub fn carry_out(&mut self, crew: &mut dyn Crew, watch: &Watch, mut each: impl FnMut(&Step)) -> Outcome {
        let mut outcome = Outcome::default();
        let mut search = match &self.steps {
            Steps::Search(settings) => Some(search::Search::new(*settings)),
            Steps::Open(_) | Steps::Closed => None,
        };
        for index in 0.. {
            let began = Instant::now();
            let own = Order {
                background_rps: self.background_rps,
                duration: self.duration,
                warm_up: self.warm_up,
                number: index as u64,
                ..Order::default()
            };
            let next = match (&self.steps, search.as_ref().and_then(search::Search::next)) {
                (Steps::Open(rates), _) => {
                    rates.get(index).map(|&rate| Order { rate_rps: Some(rate), ..own })
                }
                (Steps::Closed, _) => (index == 0).then_some(own),
                (Steps::Search(_), offer) => offer.map(|offer| offer.order(own)),
            };
            let Some(order) = next else { break };
            if self.has_collapsed(&outcome.steps) {
                outcome.collapsed = true;
                break;
            }
            watch.pause(search.as_ref().map_or(Duration::ZERO, |search| search.pause(self.duration)));
            match self.step(&order, crew, watch) {
                Ok(step) => {
                    each(&step);
                    match &mut search {
                        // The record has its result, and no step without a rate among those of open trials.
                        Some(search) if order.window.is_some() => {
                            search.take_closed(ClosedTrial::from(&step), began.elapsed());
                        }
                        Some(search) => {
                            search.take(Trial::from(&step), began.elapsed());
                            outcome.steps.push(step);
                        }
                        None => outcome.steps.push(step),
                    }
                }
                Err(problem) => {
                    outcome.interrupted = Some(Interruption::Fault(problem));
                    break;
                }
            }
            if watch.is_stopped() {
                outcome.interrupted = Some(Interruption::ByUser);
                break;
            }
        }
        outcome.engine = watch.engine();
        outcome.found = search.map(|search| search.found());
        outcome
    }

    fn step(&mut self, order: &Order, crew: &mut dyn Crew, watch: &Watch) -> Result<Step, String> {
        let unread = self.spans.as_mut().and_then(|spans| spans.begin().err());
        let start = Instant::now() + HEAD_START + order.lead();
        let (counted, has_warm_up) = (start + order.warm_up, !order.warm_up.is_zero());
        let watching = self.server.as_ref().map(|server| server.watch(counted, order.duration, has_warm_up));
        let part = crew.step(order, start, watch).map_err(|error| error.to_string())?;
        let mut step = step_of(&part, order.rate_rps, crew.hosts().to_vec());
        match watching.map(|watching| watching.and_then(Watching::end)).transpose() {
            Ok(seen) => {
                step.server = seen.map(|seen| used(&seen, &step, part.joined));
                step.limit = Some(limit::judge(&step));
                let is_late_only = part.why_invalid.is_none() && part.why_late.is_some();
                step.loss_valid |= is_late_only && limit::places_losses(&step);
            }
            Err(problem) => {
                step.remarks.push(format!("What the server used is missing: {problem}."));
                step.why_invalid.get_or_insert_with(|| "the server's process ended".to_owned());
                (step.valid, step.loss_valid) = (false, false);
                step.limit = Some(Verdict { by: Limit::Server, why: vec![format!("it ended: {problem}")] });
            }
        }
        if let Some(spans) = &mut self.spans {
            let (joined, remarks) = spans.join(order, &part.joinables, part.joinables_left_out);
            step.spans = Some(joined);
            step.remarks.extend(unread.map(|why| format!("Spans of the server are missing: {why}.")));
            step.remarks.extend(remarks);
        }
        Ok(step)
    }
}

/// A generator's part as a step of a record.
fn step_of(part: &Part, offered_rps: Option<f64>, hosts: Vec<HostPart>) -> Step {
    let why_invalid = part.why_invalid.clone().or_else(|| why_unsent(&part.tally));
    let is_late_only = why_invalid.is_none() && part.why_late.is_some();
    let why_invalid = why_invalid.or_else(|| part.why_late.clone());
    Step {
        offered_rps,
        seconds: part.seconds,
        tally: part.tally.clone(),
        accompanying: part.accompanying.clone(),
        background: part.background.as_ref().map(Tally::without_histograms),
        background_accompanying: part.background_accompanying.as_ref().map(Tally::without_histograms),
        valid: why_invalid.is_none(),
        loss_valid: is_late_only && part.tally.loss_ratio() <= LOSS_MAX,
        why_invalid,
        remarks: Vec::new(),
        limit: None,
        evidence: Some(part.evidence.clone()),
        series: part.series.clone(),
        generator_busy_share: part.busy_share,
        lateness_us: part.lateness_ns.percentiles(1000.0),
        request_size: part.request_size,
        response_size: part.response_size,
        server: None,
        antp: part.antp.clone(),
        spans: None,
        hosts,
    }
}

/// Why nothing was sent, if nothing was: such a step measures nothing.
fn why_unsent(tally: &Tally) -> Option<String> {
    let why = match (tally.sent, tally.scheduled) {
        (0, 0) => "no request was due: raise the rate, or make steps longer",
        (0, scheduled) => return Some(format!("none of {scheduled} requests was sent: see its causes")),
        (_, _) => return None,
    };
    Some(why.to_owned())
}

/// What was seen of the server's processes, as a record has it; `joined` requests left in one message with another.
fn used(seen: &Seen, step: &Step, joined: u64) -> ServerUse {
    let cpu_seconds = seen.cpu.as_secs_f64();
    let others = [&step.accompanying, &step.background, &step.background_accompanying];
    let sum = |of: fn(&Tally) -> u64| -> u64 {
        std::iter::once(&step.tally).chain(others.into_iter().flatten()).map(of).sum()
    };
    let answered = sum(|tally| tally.answered);
    // Counting began that much off the first operation, and with operations of the warm-up on their way.
    let way_s = step.tally.latency_us.map_or(0.0, |latency| latency.p99 / 1e6);
    let off_s = seen.begun_off.map_or(0.0, |off| off.as_secs_f64() + way_s);
    let uncertain = (step.per_second(sum(|tally| tally.sent)) * off_s).ceil() as u64;
    let traffic = seen.traffic.map(|traffic| Traffic { uncertain, ..traffic });
    ServerUse {
        cpu_seconds,
        cpu_us_per_request: (answered > 0).then(|| cpu_seconds * 1e6 / answered as f64),
        resident_size: seen.resident_size,
        busiest_thread_share: seen.running_share,
        waiting_share: seen.waiting_share,
        throttled_share: seen.throttled_share,
        stopped_share: seen.stopped_share,
        traffic: match seen.is_shared.then(|| is_here(&step.hosts)) {
            None | Some(Some(false)) => traffic,
            Some(Some(true)) => traffic.and_then(|traffic| limit::without_own(traffic, step, joined)),
            Some(None) => None,
        },
    }
}

/// Whether the hosts that sent are this one; `None` if only some are. No rows: this host alone.
fn is_here(hosts: &[HostPart]) -> Option<bool> {
    let own = |address: &SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
    let is_own = |host: &HostPart| match host.name.parse() {
        Ok(HostPort { host, port }) => {
            resolve(&host, port.unwrap_or(0), LOOK_UP_MAX).is_ok_and(|found| found.all().any(|at| own(&at)))
        }
        Err(_) => false,
    };
    match hosts.iter().filter(|host| is_own(host)).count() {
        number if number == hosts.len() => Some(true),
        0 => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{CrewError, Fault};
    use crate::ending::Ending;

    fn part(order: &Order, capacity_rps: f64) -> Part {
        let rate_rps = order.rate_rps.unwrap_or(0.0);
        let scheduled = (rate_rps * order.duration.as_secs_f64()) as u64;
        let answered = scheduled.min((capacity_rps * order.duration.as_secs_f64()) as u64);
        let lost = scheduled - answered;
        let causes = [(authentick_report::load::Cause::Timeout, lost)].into();
        let tally = Tally { scheduled, sent: scheduled, answered, lost, causes, ..Tally::default() };
        Part { tally, seconds: order.duration.as_secs_f64(), ..Part::default() }
    }

    fn run(steps: Steps) -> Run {
        Run::new(steps, Duration::from_secs(2))
    }

    /// A crew whose steps are made up.
    struct Made<F>(F);

    impl<F: FnMut(&Order, &Watch) -> Result<Part, CrewError> + Send> Crew for Made<F> {
        fn step(&mut self, order: &Order, _: Instant, watch: &Watch) -> Result<Part, CrewError> {
            self.0(order, watch)
        }
    }

    #[test]
    fn search_reports_every_trial_and_the_capacity() {
        let settings = search::Settings::default();
        let mut seen = 0;
        let mut crew = Made(|order: &Order, _: &Watch| Ok(part(order, 12_345.0)));
        let outcome = run(Steps::Search(settings)).carry_out(&mut crew, &Watch::default(), |step| {
            assert!(step.adds_up());
            seen += 1;
        });
        assert_eq!(seen, outcome.steps.len());
        let found = outcome.found.unwrap();
        let (at_least, below) = (found.at_least_rps().unwrap(), found.below_rps().unwrap());
        assert!(12_000.0 < at_least && at_least < 12_500.0 && below < 12_900.0, "{at_least} {below}");
    }

    #[test]
    fn lateness_alone_leaves_what_was_answered_and_little_loss_valid() {
        let late = || Some("late".to_owned());
        let step = |capacity_rps, why_invalid: Option<String>| {
            let made = move |order: &Order, _: &Watch| {
                Ok(Part { why_late: late(), why_invalid: why_invalid.clone(), ..part(order, capacity_rps) })
            };
            let steps = Steps::Open(vec![1000.0]);
            run(steps).carry_out(&mut Made(made), &Watch::default(), |_| {}).steps.swap_remove(0)
        };
        let kept = |step: &Step| (step.valid, step.loss_valid, step.why_invalid.clone());
        assert_eq!(kept(&step(1000.0, None)), (false, true, late()));
        assert_eq!(kept(&step(500.0, None)), (false, false, late()), "they may be lost for being late");
        let ports = Some("no ports".to_owned());
        assert_eq!(kept(&step(1000.0, ports.clone())), (false, false, ports));
    }

    #[test]
    fn error_keeps_the_steps_before_it() {
        let mut calls = 0;
        let mut crew = Made(|order: &Order, _: &Watch| {
            calls += 1;
            match calls {
                2 => Err(CrewError::new("B", Fault::Lost, "gone")),
                _ => Ok(part(order, 1e9)),
            }
        });
        let mut run = run(Steps::Open(vec![10.0, 20.0, 30.0]));
        let outcome = run.carry_out(&mut crew, &Watch::default(), |_| {});
        assert_eq!(outcome.steps.len(), 1);
        assert_eq!(outcome.interrupted.as_deref(), Some("agent B: gone"));
    }

    #[test]
    fn engine_is_what_the_sending_threads_found_possible() {
        for (joins, engine) in [(false, "sockets"), (true, "sockets, UDP_SEGMENT")] {
            let mut crew = Made(|order: &Order, watch: &Watch| {
                if joins {
                    watch.note_joins();
                }
                Ok(part(order, 1e9))
            });
            let outcome = run(Steps::Open(vec![10.0])).carry_out(&mut crew, &Watch::default(), |_| {});
            assert_eq!(outcome.engine, engine);
        }
    }

    #[test]
    fn stop_ends_the_run_after_the_step() {
        let mut crew = Made(|order: &Order, watch: &Watch| {
            watch.stop();
            Ok(part(order, 1e9))
        });
        let mut run = run(Steps::Open(vec![10.0, 20.0]));
        let outcome = run.carry_out(&mut crew, &Watch::default(), |_| {});
        assert_eq!((outcome.steps.len(), outcome.interrupted.is_some()), (1, true));
    }

    /// A crew that carries 1,000 a second and loses what is beyond.
    fn overload(stop_at_loss: Option<f64>, rates: &[f64]) -> Outcome {
        let mut crew = Made(|order: &Order, _: &Watch| Ok(part(order, 1000.0)));
        let mut run = Run { stop_at_loss, ..run(Steps::Open(rates.to_vec())) };
        run.carry_out(&mut crew, &Watch::default(), |_| {})
    }

    #[test]
    fn two_steps_in_a_row_that_lose_too_much_end_the_run() {
        let rates = [500.0, 4000.0, 1000.0, 4000.0, 8000.0, 16_000.0, 32_000.0];
        let outcome = overload(Some(0.5), &rates);
        assert_eq!((outcome.steps.len(), outcome.collapsed), (5, true));
        assert_eq!(outcome.interrupted, None, "nobody interrupted it");
        assert_eq!(overload(None, &rates).steps.len(), rates.len());
        let last = overload(Some(0.5), &rates[..5]);
        assert_eq!((last.steps.len(), last.collapsed), (5, false), "there was no further step");
    }

    /// An endpoint of spans that answers once, and is gone.
    fn spans_once() -> SpanSource {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            use std::io::{Read as _, Write as _};
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let body = r#"{"next":{"ntp":0,"ke":0},"ntp":[],"ke":[]}"#;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close", body.len());
            stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
        });
        let source = SpanSource::new(&address).unwrap();
        server.join().unwrap();
        source
    }

    #[test]
    fn step_that_sent_nothing_is_not_valid() {
        let mut crew = Made(|order: &Order, _: &Watch| Ok(part(order, 1e9)));
        let outcome = run(Steps::Open(vec![0.01, 10.0])).carry_out(&mut crew, &Watch::default(), |_| {});
        let [unsent, sent] = &outcome.steps[..] else { panic!("{:?}", outcome.steps) };
        assert!(unsent.why_invalid.as_ref().is_some_and(|why| why.starts_with("no request was due: raise")));
        assert!((unsent.valid, sent.valid) == (false, true), "{:?}", sent.why_invalid);
        assert_eq!(Ending::of_steps(&outcome.steps), Ending::Done);
        assert!(matches!(Ending::of_steps(&outcome.steps[..1]), Ending::Invalid(_)));
    }

    #[test]
    fn step_is_kept_though_the_spans_of_the_server_are_gone() {
        let mut crew = Made(|order: &Order, _: &Watch| Ok(part(order, 1e9)));
        let mut run = Run { spans: Some(spans_once()), ..run(Steps::Open(vec![10.0, 20.0])) };
        let outcome = run.carry_out(&mut crew, &Watch::default(), |_| {});
        assert_eq!((outcome.steps.len(), outcome.interrupted), (2, None));
        for step in &outcome.steps {
            assert!(step.valid && step.tally.answered > 0);
            assert!(
                step.remarks[0].starts_with("Spans of the server are missing: http://"),
                "{:?}",
                step.remarks
            );
        }
    }

    #[test]
    fn step_is_kept_though_the_process_of_the_server_is_gone() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let server = Some(Processes::new(&[child.id()], 123).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        let mut crew = Made(|order: &Order, _: &Watch| Ok(part(order, 1e9)));
        let mut run = Run { server, ..run(Steps::Open(vec![10.0, 20.0])) };
        let outcome = run.carry_out(&mut crew, &Watch::default(), |_| {});
        assert_eq!((outcome.steps.len(), outcome.interrupted), (2, None));
        for step in &outcome.steps {
            assert!(!step.valid && step.tally.answered > 0 && step.server.is_none());
            assert!(step.remarks[0].starts_with("What the server used is missing: process "));
        }
    }
}
