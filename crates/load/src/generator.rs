//! The generator of one host: its threads are prepared once, and then get an order for each step.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use authentick_crypto::Entropy;
use authentick_generator::schedule::Share;
use authentick_ke::client::Ask;
use authentick_ke::tls::{Roots, client_config};
use authentick_net::affinity;
use authentick_net::clock::monotonic_ns;
use authentick_wire::ke::AeadId;

use crate::agent::{CrewError, Fault};
use crate::engine::{Setup, Sockets};
use crate::host::{self, Counters, run_delay_ns};
use crate::judge;
use crate::plan::{Crew, Order, Part, Plan, Scheme, Watch};

/// Threads that simulate clients, each pinned to a processor of its own as far as there are any.
#[derive(Debug)]
pub struct Generator {
    threads: Vec<Thread>,
}

#[derive(Debug)]
struct Thread {
    /// Whether it is ready.
    prepared: Receiver<Result<(), String>>,
    orders: Sender<Command>,
    reports: Receiver<Part>,
    handle: JoinHandle<()>,
}

/// A step for a thread. The watch is shared for the duration of the step.
struct Command {
    order: Order,
    start_ns: u64,
    watch: Watch,
}

impl Generator {
    /// Opens sockets and gets the first keys; returns once all clients are ready. `roots` are trusted if the plan names
    /// no authorities of its own. `watch` can stop it.
    ///
    /// # Errors
    /// A sentence on what is missing, with the remedy.
    pub fn prepare(plan: &Plan, roots: Option<Roots>, watch: &Watch) -> Result<Self, String> {
        check(plan)?;
        let ask = plan.scheme.nature().exchanges_keys.then(|| ask(plan, roots.clone())).transpose()?;
        let guide =
            plan.scheme.nature().is_antp.then(|| judge::guide(plan, roots)).transpose()?.map(Arc::new);
        let cpus = affinity::allowed().unwrap_or_default();
        let shared = Arc::new(plan.clone());
        let mut threads = Vec::new();
        for index in 0..plan.workers {
            let entropy = Entropy::from_system().map_err(|error| format!("no randomness: {error}"))?;
            let share = Share { index, count: plan.workers };
            let setup =
                Setup { plan: Arc::clone(&shared), ask: ask.clone(), guide: guide.clone(), share, entropy };
            let cpu = processor(&cpus, index).filter(|_| plan.pinned && cpus.len() > 1);
            threads.push(Thread::start(setup, cpu, watch.clone())?);
        }
        for thread in &threads {
            thread.prepared.recv().map_err(|gone| failed(gone).message)??;
        }
        Ok(Generator { threads })
    }
}

impl Crew for Generator {
    fn step(&mut self, order: &Order, start: Instant, watch: &Watch) -> Result<Part, CrewError> {
        let ahead = start.saturating_duration_since(Instant::now());
        let start_ns = monotonic_ns() + ahead.as_nanos() as u64;
        for thread in &self.threads {
            let command = Command { order: *order, start_ns, watch: watch.clone() };
            thread.orders.send(command).map_err(failed)?;
        }
        let reports = self.threads.iter().map(|thread| thread.reports.recv().map_err(failed));
        Ok(merge(reports.collect::<Result<_, _>>()?))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        for Thread { orders, handle, .. } in self.threads.drain(..) {
            // Without orders it ends.
            drop(orders);
            let _ = handle.join();
        }
    }
}

/// The processor of a sending thread, of those that are `allowed`: the last ones, as a server on this host that is
/// pinned to some starts at the first.
pub(crate) fn processor(allowed: &[usize], index: u32) -> Option<usize> {
    let from_last = (index as usize).checked_rem(allowed.len())?;
    allowed.iter().rev().nth(from_last).copied()
}

/// A thread is gone.
fn failed<E>(_: E) -> CrewError {
    CrewError::of_run(Fault::Generator, "a sending thread failed")
}

impl Thread {
    fn start(setup: Setup, cpu: Option<usize>, watch: Watch) -> Result<Self, String> {
        let (orders, inbox) = channel::<Command>();
        let (outbox, reports) = channel();
        let (ready, prepared) = channel();
        let is_first = setup.share.index == 0;
        let body = move || {
            if let Some(cpu) = cpu {
                // An unpinned generator is less steady, which shows in its lateness.
                let _ = affinity::pin(cpu);
            }
            let made = Sockets::new(setup).and_then(|mut sockets| {
                sockets.prepare(&watch).map(|()| sockets).map_err(|unready| unready.to_string())
            });
            let mut sockets = match made {
                Ok(sockets) => sockets,
                Err(problem) => return drop(ready.send(Err(problem))),
            };
            if ready.send(Ok(())).is_err() {
                return;
            }
            drop(watch);
            while let Ok(Command { order, start_ns, watch }) = inbox.recv() {
                let part = observed(is_first, || sockets.step(&order, start_ns, &watch));
                if outbox.send(part).is_err() {
                    return;
                }
            }
        };
        let handle = std::thread::Builder::new()
            .name("load".to_owned())
            .spawn(body)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Thread { prepared, orders, reports, handle })
    }
}

/// Carries a step out on this thread, and adds to its report what the host did meanwhile. What is the host's alone is
/// in the report of one thread.
fn observed(is_first: bool, step: impl FnOnce() -> Part) -> Part {
    let host = is_first.then(Counters::read);
    let (begun_ns, delayed_ns) = (monotonic_ns(), run_delay_ns());
    let mut part = step();
    let lasted_ns = monotonic_ns().saturating_sub(begun_ns);
    if let Some(host) = host {
        part.evidence.merge(&host.until(&Counters::read()));
    }
    let delay_ns = delayed_ns.zip(run_delay_ns()).map(|(before, after)| after.saturating_sub(before));
    let share =
        delay_ns.filter(|_| lasted_ns > 0).map(|delay_ns| (delay_ns as f64 / lasted_ns as f64).min(1.0));
    part.evidence.preempted_share = share;
    part
}

/// Refuses plans that make no sense, whatever their origin.
fn check(plan: &Plan) -> Result<(), String> {
    match plan {
        _ if plan.workers == 0 || plan.workers > 256 => Err(format!("{} workers: 1 to 256", plan.workers)),
        _ if plan.clients < plan.workers && plan.scheme != Scheme::Ke => {
            Err(format!("{} clients for {} workers: each needs one", plan.clients, plan.workers))
        }
        _ if plan.timeout.is_zero() || plan.ke_timeout.is_zero() => Err("a timeout of zero".to_owned()),
        _ if plan.sources.iter().any(|source| source.is_ipv4() != plan.ntp.is_ipv4()) => {
            Err(format!("--sources and {} are of different families", plan.ntp.ip()))
        }
        _ => Ok(()),
    }
}

fn ask(plan: &Plan, roots: Option<Roots>) -> Result<Ask, String> {
    let (roots, server_name) = judge::trust(plan, roots)?;
    let aeads = plan.aeads.iter().map(|&id| AeadId(id)).collect();
    Ok(Ask { tls: client_config(roots), server_name, aeads })
}

/// All threads as one host.
fn merge(parts: Vec<Part>) -> Part {
    let whole = parts.into_iter().reduce(|mut whole, part| {
        whole.merge(part);
        whole
    });
    let mut part = whole.unwrap_or_default();
    part.why_invalid = part.why_invalid.or_else(|| host::why_invalid(&part.evidence.drops, &part.tally));
    part
}
