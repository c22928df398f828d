//! What ends a command from outside: signals, and the end of standard input, when whoever holds the other end of the
//! pipe has gone away.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};

/// From now on SIGINT and SIGTERM set `stop`.
pub(crate) fn stop_by_signal(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(stop))?;
    }
    Ok(())
}

/// Calls `then` once, on a thread of its own, when standard input has ended; `first` when that thread starts.
pub(crate) fn at_end(
    first: impl FnOnce() + Send + 'static,
    then: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let wait = move || {
        first();
        let mut octets = [0; 64];
        // An input that cannot be read has ended too.
        while matches!(io::stdin().read(&mut octets), Ok(1..)) {}
        then();
    };
    std::thread::Builder::new().name("input".to_owned()).spawn(wait).map(drop)
}
