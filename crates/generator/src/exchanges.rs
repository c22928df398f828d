//! Key exchanges: events from outside. The core says which client wants one, and is told how it ended.

use std::collections::VecDeque;

/// A key exchange that the driver must carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The client that uses the keys, if any does.
    pub client: Option<u32>,
    /// Whether it is measured.
    pub measured: bool,
    /// Whether it is the scheme's own operation, rather than one that requests for time need.
    pub principal: bool,
    /// When it was due, monotonic.
    pub intended_ns: u64,
}

/// Key exchanges of one worker.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    wanted: VecDeque<Exchange>,
    /// Wanted, or begun and not ended.
    pub(crate) open_count: usize,
}

impl Exchanges {
    /// One is to begin.
    pub(crate) fn want(&mut self, exchange: Exchange) {
        self.wanted.push_back(exchange);
        self.open_count += 1;
    }

    /// The next one to begin.
    pub(crate) fn next(&mut self) -> Option<Exchange> {
        self.wanted.pop_front()
    }

    /// One has ended, or could not begin.
    pub(crate) fn ended(&mut self) {
        self.open_count = self.open_count.saturating_sub(1);
    }
}
