//! SIGINT and SIGTERM: one mechanism for all commands, so that each ends with what it has. A process that is the first
//! of its PID namespace, as in a container, ends by no signal unless it handles it.
//!
//! A command says what a signal does by [`on_signal`]; until then, and where it says nothing, it ends at once with exit
//! code 130 or 143. Only a running `serve` has more signals, in `cmd::serve::signals`.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::{Exit, Failure};
use crate::output;

/// How the command ends because of a signal; `None`: it ends by itself, or was asked to.
pub(crate) type Ending = Option<Result<Exit, Failure>>;

type Action = Box<dyn FnMut(Exit) -> Ending + Send>;

/// What a signal does; `None`: it ends the process.
static ACTION: Mutex<Option<Action>> = Mutex::new(None);

/// From now on SIGINT and SIGTERM have effect in the first process of a PID namespace too.
pub(crate) fn start() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let wait = move || {
        for signal in signals.forever() {
            let exit = if signal == SIGTERM { Exit::Terminated } else { Exit::Interrupted };
            let ending = match ACTION.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                Some(action) => action(exit),
                None => Some(Err(quit(exit))),
            };
            if let Some(result) = ending {
                std::process::exit(crate::end(result) as i32);
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
}

/// Has `action` called at each signal from now on, with the code of an end at once.
pub(crate) fn on_signal(action: impl FnMut(Exit) -> Ending + Send + 'static) {
    *ACTION.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
}

/// A cell that takes the code of the first signal, so that the command can end with it.
pub(crate) fn once() -> Arc<OnceLock<Exit>> {
    let cell = Arc::new(OnceLock::new());
    let set = Arc::clone(&cell);
    on_signal(move |exit| {
        set.get_or_init(|| exit);
        None
    });
    cell
}

/// From now on a signal ends the process at once, as at the start.
pub(crate) fn at_once() {
    *ACTION.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// A flag that the first signal sets, so that the command ends with what it has; a second one ends it at once.
pub(crate) fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&flag);
    on_signal(move |exit| {
        if stop.swap(true, Ordering::Relaxed) {
            return Some(Err(quit(exit)));
        }
        output::error("stopping (again: quit at once)");
        None
    });
    flag
}

/// The end by a signal at once.
pub(crate) fn quit(exit: Exit) -> Failure {
    let name = if exit == Exit::Terminated { "SIGTERM" } else { "SIGINT" };
    exit.because(format!("ended by {name}"))
}
