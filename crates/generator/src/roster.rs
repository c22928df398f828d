//! The clients of one worker, and whose turn it is.

use std::net::SocketAddr;
use std::ops::{Index, IndexMut};

use crate::client::Client;
use crate::limits::{BURST_SHARE, CLIENT_SCAN_MAX};

/// The clients of one worker: measured ones first, then those of the background.
#[derive(Debug)]
pub(crate) struct Roster {
    pub(crate) clients: Vec<Client>,
    measured_count: usize,
    /// Where the search for a client goes on, in each group.
    cursors: [usize; 2],
    /// Operations of each group that became due in the same turn, the last time.
    together: [usize; 2],
}

impl Roster {
    /// An empty one, whose first `measured_count` clients will be measured.
    pub(crate) fn new(measured_count: usize) -> Self {
        Roster { clients: Vec::new(), measured_count, cursors: [0; 2], together: [1; 2] }
    }

    /// Adds a client at this address.
    pub(crate) fn add(&mut self, local: SocketAddr) {
        let measured = self.clients.len() < self.measured_count;
        self.clients.push(Client::new(local, measured));
    }

    /// Notes how many operations of a group became due together: as many requests share one system call, if there are
    /// few clients.
    pub(crate) fn note_together(&mut self, measured: bool, count: usize) {
        self.together[usize::from(!measured)] = count;
    }

    /// The next client of a group, in turn, that `fits`.
    pub(crate) fn choose(&mut self, measured: bool, fits: impl FnMut(&Client, u32) -> bool) -> Option<u32> {
        let (_, count) = self.group(measured);
        // A client sends a burst only if so many requests are due at once that system calls would be the limit.
        let together = self.together[usize::from(!measured)];
        let stay = together.div_ceil(count.max(1)).max(together / BURST_SHARE).max(1);
        self.choose_staying(measured, stay, fits)
    }

    /// The same where a client has one operation at a time, however many are due together. A load asks for clients in
    /// one of both ways only.
    pub(crate) fn choose_idle(
        &mut self,
        measured: bool,
        fits: impl FnMut(&Client, u32) -> bool,
    ) -> Option<u32> {
        self.choose_staying(measured, 1, fits)
    }

    /// Where a group begins, and how many it has.
    fn group(&self, measured: bool) -> (usize, usize) {
        match measured {
            true => (0, self.measured_count),
            false => (self.measured_count, self.clients.len() - self.measured_count),
        }
    }

    /// `stay`: how often a client is chosen before the next one is.
    fn choose_staying(
        &mut self,
        measured: bool,
        stay: usize,
        mut fits: impl FnMut(&Client, u32) -> bool,
    ) -> Option<u32> {
        let group = usize::from(!measured);
        let (first, count) = self.group(measured);
        if count == 0 {
            return None;
        }
        for _ in 0..count.min(CLIENT_SCAN_MAX) {
            let index = first + (self.cursors[group] / stay) % count;
            if fits(&self.clients[index], index as u32) {
                self.cursors[group] += 1;
                return Some(index as u32);
            }
            self.cursors[group] = (self.cursors[group] / stay + 1) * stay;
        }
        None
    }
}

impl Index<u32> for Roster {
    type Output = Client;

    fn index(&self, index: u32) -> &Client {
        &self.clients[index as usize]
    }
}

impl IndexMut<u32> for Roster {
    fn index_mut(&mut self, index: u32) -> &mut Client {
        &mut self.clients[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place in the order of bursts is none in that of single operations: once many were due together, the next
    /// client was looked for among those that had begun long before, and were busy.
    #[test]
    fn idle_clients_are_found_in_turn_however_many_were_due_together() {
        let mut roster = Roster::new(0);
        (0..1000).for_each(|port| roster.add(([127, 0, 0, 1], port).into()));
        let mut busy = [false; 1000];
        for turn in 0..1000 {
            roster.note_together(false, if turn % 100 == 99 { 200 } else { 1 });
            let found = roster.choose_idle(false, |_, index| !busy[index as usize]);
            assert_eq!(found, Some(turn));
            busy[turn as usize] = true;
        }
        assert_eq!(roster.choose_idle(false, |_, index| !busy[index as usize]), None);
    }
}
