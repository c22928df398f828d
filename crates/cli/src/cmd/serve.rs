//! `authentick serve`: runs a node until a signal stops it, and tells the service manager how it does.

mod signals;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::args::Serve;
use crate::exit::{Exit, Failure};
use crate::{input, journal, output};
use authentick_daemon::Config;
use authentick_daemon::containment::ThreadKind;
use authentick_daemon::log_queue::LOG;
use authentick_daemon::manager::Manager;
use authentick_daemon::names::NameLookups;
use authentick_daemon::node::{self, Ended, Running};

use self::signals::Meaning;

/// How often the node's threads are looked at, at least.
const TICK: Duration = Duration::from_secs(1);
/// How often the service manager is told what the node has done.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

/// The least time from the start of a process to an end that a service manager answers by another start. What may pass
/// is waited for here: restarts in quick succession would only fill a log.
const LEAST: Duration = Duration::from_secs(10);

/// What the node is told.
enum Event {
    Signal(i32),
    /// Standard input has ended.
    Eof,
    /// Files were read again.
    Reloaded,
}

pub(crate) fn run(arguments: &Serve) -> Result<Exit, Failure> {
    if arguments.check {
        node::check(&Config::load(&arguments.config)?)?;
        output::result(&format!("{}: good\n", arguments.config.display()));
        return Ok(Exit::Done);
    }
    let begun = Instant::now();
    let is_starting = Arc::new(AtomicBool::new(true));
    let mut signals = signals::receive(&is_starting).map_err(|error| linger(begun, LEAST, error))?;
    let config = Config::load(&arguments.config).map_err(|error| linger(begun, LEAST, error))?;
    // Before any thread is started, as it forks.
    let names = NameLookups::by_process(&config);
    let mut manager = Manager::find();
    LOG.start(config.contain);
    let node = node::start_alone(&config, &mut manager, names)
        .map_err(|error| linger(begun, LEAST.min(config.bind_patience), error))?;
    LOG.contain(node.containment());
    is_starting.store(false, Ordering::Relaxed);
    tell_addresses(&node);
    let (caught, inbox) = mpsc::channel();
    if arguments.until_eof {
        let caught = caught.clone();
        let containment = node.containment();
        input::at_end(move || containment.enter(ThreadKind::Control), move || drop(caught.send(Event::Eof)))?;
    }
    let containment = node.containment();
    let of_signals = caught.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        containment.enter(ThreadKind::Control);
        for signal in signals.forever() {
            if of_signals.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    node.containment().enter(ThreadKind::Control);
    manager.ready(&node.status());
    // In time for whoever waits for half as long.
    let tick = manager.watchdog().map_or(TICK, |watchdog| TICK.min(watchdog / 2));
    let (mut is_well, mut status_due) = (true, Instant::now() + STATUS_INTERVAL);
    loop {
        match inbox.recv_timeout(tick) {
            Ok(Event::Signal(signal)) => match Meaning::of(signal) {
                Meaning::Reload => {
                    manager.reloading();
                    let caught = caught.clone();
                    node.reload(move || drop(caught.send(Event::Reloaded)));
                }
                Meaning::Stop => {
                    log::info!("stopping on {}", signals::name(signal));
                    return stop(&manager, node);
                }
                Meaning::Ignore => {
                    let name = signals::name(signal);
                    log::warn!(
                        "{name} ignored: it has no meaning here; `authentick serve --help` lists signals"
                    );
                }
            },
            Ok(Event::Reloaded) => manager.ready(&node.status()),
            Ok(Event::Eof) => {
                log::info!("stopping as standard input has ended");
                return stop(&manager, node);
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) if node.is_sound() => {}
            Err(_) => {
                node.stop();
                return Err(Exit::Internal.because("a thread failed; the log says why"));
            }
        }
        is_well = tell_health(&manager, &node, is_well);
        if Instant::now() >= status_due {
            manager.status(&node.status());
            journal::tell_overdue();
            status_due = Instant::now() + STATUS_INTERVAL;
        }
    }
}

/// The failure of a start, after so long that a service manager does not start the server again and again at once.
fn linger(begun: Instant, least: Duration, error: impl Into<Failure>) -> Failure {
    let failure = error.into();
    let rest = least.saturating_sub(begun.elapsed());
    if failure.exit.is_for_restart() && !rest.is_zero() {
        log::warn!("the start failed, and ends in {:.0} s: {}", rest.as_secs_f64(), failure.message);
        std::thread::sleep(rest);
    }
    failure
}

fn stop(manager: &Manager, node: Running) -> Result<Exit, Failure> {
    manager.stopping();
    let ended = node.end();
    journal::tell_rest();
    match ended {
        Ended::Cleanly => Ok(Exit::Done),
        Ended::Failed => Err(Exit::Internal.because("a thread had failed before the server was stopped")),
        Ended::Hanging(work) => Err(Exit::Internal.because(format!(
            "stopped without waiting any longer: {work} hangs; see whether the disk answers"
        ))),
    }
}

fn tell_addresses(node: &Running) {
    for address in node.ntp_addresses() {
        log::info!("serving time on {address}");
    }
    let when = if node.has_cookie_keys() { "" } else { "once there are cookie keys: " };
    for address in node.ke_addresses() {
        log::info!("{when}exchanging keys on {address}");
    }
    if let Some(address) = node.metrics_address() {
        log::info!("showing metrics on http://{address}/metrics");
    }
    if let Some(address) = node.health_address() {
        log::info!("answering probes on http://{address}/healthz");
    }
}

/// Tells the service manager that the node is well, if it is; the log, if that has changed. Whether it is.
fn tell_health(manager: &Manager, node: &Running, was_well: bool) -> bool {
    let ailments = node.ailments();
    if ailments.is_empty() {
        manager.is_well();
        if !was_well {
            log::info!("all threads turn again");
        }
    } else if was_well {
        log::error!("not well: {}", ailments.join("; "));
    }
    ailments.is_empty()
}
