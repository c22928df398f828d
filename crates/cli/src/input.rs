//! The end of standard input, when the process at the other end of the pipe has gone away.

use std::io::{self, Read};

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
