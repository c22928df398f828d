//! The generator of one host: its threads are prepared once, and then get an order for each step.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use authentick_crypto::Entropy;
use authentick_generator::schedule::Share;
use authentick_ke::client::Ask;
use authentick_ke::tls::{Roots, client_config};
use authentick_net::affinity;
use authentick_net::clock::monotonic_ns;
use authentick_report::load::Evidence;
use authentick_wire::ke::AeadId;

use crate::agent::{CrewError, Fault};
use crate::engine::{Setup, Sockets};
use crate::host::{self, Counters};
use crate::judge;
use crate::plan::{Crew, Order, Part, Plan, Scheme, Watch};

/// Threads that simulate clients, each pinned to a processor of its own as far as there are any.
#[derive(Debug)]
pub struct Generator {
    threads: Vec<Thread>,
    /// Their numbers in `/proc`.
    numbers: Vec<i32>,
}

#[derive(Debug)]
struct Thread {
    /// Whether it is ready; its number in `/proc`, if it is.
    prepared: Receiver<Result<i32, String>>,
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
        let ready = |thread: &Thread| thread.prepared.recv().map_err(|gone| failed(gone).message)?;
        let numbers = threads.iter().map(ready).collect::<Result<_, _>>()?;
        Ok(Generator { threads, numbers })
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
        // The host is looked at where the measured time begins and where it ends, by this thread: no other is late for
        // it, and neither a warm-up nor the wait for the last answers is in the figures.
        let mut first = None;
        let mut is_over = || {
            first = first.take().or_else(|| match self.threads.first()?.reports.try_recv() {
                Ok(part) => Some(Ok(part)),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(Err(failed(()))),
            });
            first.is_some() || watch.is_stopped()
        };
        if !order.warm_up.is_zero() {
            host::wait_until(start + order.warm_up, &mut is_over);
        }
        let before = Counters::read(&self.numbers);
        host::wait_until(start + order.warm_up + order.duration, &mut is_over);
        let mut during = before.until(&Counters::read(&self.numbers));
        let rest = self.threads.iter().skip(usize::from(first.is_some()));
        let rest = rest.map(|thread| thread.reports.recv().map_err(failed));
        let parts = first.into_iter().chain(rest).collect::<Result<_, _>>()?;
        // Who waits for a connection knocks again seconds later: all that began has ended by now.
        during.syn_repeats = before.syn_repeats_until(&Counters::read(&self.numbers));
        Ok(merge(parts, &during))
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
            if ready.send(Ok(affinity::thread_number())).is_err() {
                return;
            }
            drop(watch);
            while let Ok(Command { order, start_ns, watch }) = inbox.recv() {
                if outbox.send(sockets.step(&order, start_ns, &watch)).is_err() {
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

/// Refuses plans that make no sense, whatever their origin.
fn check(plan: &Plan) -> Result<(), String> {
    match plan {
        _ if plan.workers == 0 || plan.workers > 256 => Err(format!("{} workers: 1 to 256", plan.workers)),
        _ if plan.clients < plan.workers && plan.scheme != Scheme::Ke => {
            Err(format!("{} clients for {} workers: each needs one", plan.clients, plan.workers))
        }
        _ if plan.timeout.is_zero() || plan.ke_timeout.is_zero() => Err("a timeout of zero".to_owned()),
        _ => plan.check_sources(),
    }
}

fn ask(plan: &Plan, roots: Option<Roots>) -> Result<Ask, String> {
    let (roots, server_name) = judge::trust(plan, roots)?;
    let aeads = plan.aeads.iter().map(|&id| AeadId(id)).collect();
    Ok(Ask { tls: client_config(roots), server_name, aeads })
}

/// All threads as one host, of which that was seen meanwhile.
fn merge(parts: Vec<Part>, during: &Evidence) -> Part {
    let whole = parts.into_iter().reduce(|mut whole, part| {
        whole.merge(part);
        whole
    });
    let mut part = whole.unwrap_or_default();
    part.evidence.merge(during);
    part.why_invalid = part.why_invalid.or_else(|| host::why_invalid(&part.evidence.drops, &part.tally));
    part
}
