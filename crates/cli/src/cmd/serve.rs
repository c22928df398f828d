//! `authentick serve`: runs a node until a signal stops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use authentick_daemon::Config;
use authentick_daemon::containment::ThreadKind;
use authentick_daemon::node::{self, Ended};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::Signals;

use crate::args::Serve;
use crate::exit::{Exit, Failure};
use crate::{input, output};

/// How often the node's threads are looked at.
const TICK: Duration = Duration::from_secs(1);

/// What the node is told.
enum Event {
    Signal(i32),
    /// Standard input has ended.
    Eof,
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
    let node = node::start_alone(&config)?;
    is_starting.store(false, Ordering::Relaxed);
    for address in node.ntp_addresses() {
        log::info!("serving time on {address}");
    }
    for address in node.ke_addresses() {
        log::info!("exchanging keys on {address}");
    }
    if let Some(address) = node.metrics_address() {
        log::info!("showing metrics on http://{address}/metrics");
    }
    let (caught, inbox) = mpsc::channel();
    if arguments.until_eof {
        let caught = caught.clone();
        let containment = node.containment();
        input::at_end(move || containment.enter(ThreadKind::Control), move || drop(caught.send(Event::Eof)))?;
    }
    let containment = node.containment();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        containment.enter(ThreadKind::Control);
        for signal in signals.forever() {
            if caught.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    node.containment().enter(ThreadKind::Control);
    loop {
        match inbox.recv_timeout(TICK) {
            Ok(Event::Signal(SIGHUP)) => node.reload(),
            Ok(event) => {
                match event {
                    Event::Signal(signal) => log::info!("stopping on signal {signal}"),
                    Event::Eof => log::info!("stopping as standard input has ended"),
                }
                return match node.end() {
                    Ended::Cleanly => Ok(Exit::Done),
                    Ended::Failed => {
                        Err(Exit::Internal.because("a thread had failed before the server was stopped"))
                    }
                    Ended::Hanging(work) => Err(Exit::Internal.because(format!(
                        "stopped without waiting any longer: {work} hangs; see whether the disk answers"
                    ))),
                };
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) if node.is_sound() => {}
            Err(_) => {
                node.stop();
                return Err(Exit::Internal.because("a thread failed; the log says why"));
            }
        }
    }
}
