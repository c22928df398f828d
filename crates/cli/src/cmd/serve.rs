//! `authentick serve`: runs a node until a signal stops it, and tells the service manager how it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use authentick_daemon::Config;
use authentick_daemon::containment::ThreadKind;
use authentick_daemon::manager::Manager;
use authentick_daemon::node::{self, Ended, Running};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::Signals;

use crate::args::Serve;
use crate::exit::{Exit, Failure};
use crate::{input, journal, output};

/// How often the node's threads are looked at, at least.
const TICK: Duration = Duration::from_secs(1);
/// How often the service manager is told what the node has done.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

/// What the node is told.
enum Event {
    Signal(i32),
    /// Standard input has ended.
    Eof,
    /// Files were read again.
    Reloaded,
}

pub(crate) fn run(arguments: &Serve) -> Result<Exit, Failure> {
    let config = Config::load(&arguments.config)?;
    if arguments.check {
        node::check(&config)?;
        output::result(&format!("{}: good\n", arguments.config.display()));
        return Ok(Exit::Done);
    }
    // Before any thread is started, so that none of them is hit by a signal.
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    // A start that hangs, for want of a lock or of a disk, can be ended as ever.
    let is_starting = Arc::new(AtomicBool::new(true));
    for signal in [SIGINT, SIGTERM] {
        register_conditional_default(signal, Arc::clone(&is_starting))?;
    }
    let mut manager = Manager::find();
    let node = node::start_alone(&config, &mut manager)?;
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
            Ok(Event::Signal(SIGHUP)) => {
                manager.reloading();
                let caught = caught.clone();
                node.reload(move || drop(caught.send(Event::Reloaded)));
            }
            Ok(Event::Reloaded) => manager.ready(&node.status()),
            Ok(Event::Signal(signal)) => {
                log::info!("stopping on signal {signal}");
                return stop(&manager, node);
            }
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
    for address in node.ke_addresses() {
        log::info!("exchanging keys on {address}");
    }
    if let Some(address) = node.metrics_address() {
        log::info!("showing metrics on http://{address}/metrics");
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
