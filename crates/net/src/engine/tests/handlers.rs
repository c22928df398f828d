//! Handlers with which engines are tested.

use std::net::SocketAddr;

use authentick_wire::datagram::{Datagram, Early};
use authentick_wire::time::NtpTime;

use crate::clock;
use crate::engine::{Handler, ReplyPath};

/// Sends the first half of each odd datagram back at once, and the second half after `finish` has turned it round.
#[derive(Default)]
pub(crate) struct Halves(Vec<Early>);

impl Handler for Halves {
    fn now(&mut self) -> NtpTime {
        clock::now()
    }

    fn respond(&mut self, batch: &mut [Datagram<'_>], _: &[ReplyPath]) {
        self.0.clear();
        for (index, datagram) in batch.iter_mut().enumerate() {
            let size = datagram.request.len();
            datagram.response[..size].copy_from_slice(datagram.request);
            let is_odd = datagram.request[0] % 2 == 1;
            datagram.response_size = if is_odd { size / 2 } else { size };
            self.0.extend(is_odd.then_some(Early { index, size: size / 2 }));
        }
    }

    fn early(&self) -> &[Early] {
        &self.0
    }

    fn finish(&mut self, batch: &mut [Datagram<'_>]) {
        for early in &self.0 {
            let datagram = &mut batch[early.index];
            assert_eq!(datagram.response_size, early.size);
            datagram.response[early.size..][..datagram.response_size].reverse();
        }
    }

    fn sent(&mut self, _: NtpTime, _: NtpTime) {}
}

/// Answers nothing, and keeps the path back.
#[derive(Default)]
pub(crate) struct Later(pub(crate) Vec<(SocketAddr, ReplyPath)>);

impl Handler for Later {
    fn now(&mut self) -> NtpTime {
        clock::now()
    }

    fn respond(&mut self, batch: &mut [Datagram<'_>], paths: &[ReplyPath]) {
        self.0.extend(batch.iter().zip(paths).map(|(datagram, path)| (datagram.source, *path)));
    }

    fn sent(&mut self, _: NtpTime, _: NtpTime) {}
}
