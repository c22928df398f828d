//! The boundary between an engine, which moves datagrams, and whoever answers them.

use authentick_wire::datagram::{Datagram, Early};
use authentick_wire::time::NtpTime;

use super::reply::Way;

/// What an engine asks of whoever answers its datagrams.
pub trait Handler {
    /// The time of day.
    fn now(&mut self) -> NtpTime;
    /// Writes responses into a batch of 1 to [`super::BATCH_SIZE`] datagrams. `ways` has for each of them the way back,
    /// for an answer that somebody else sends later.
    fn respond(&mut self, batch: &mut [Datagram<'_>], ways: &[Way]);
    /// Packets of the batch that leave before the responses behind which they lie. They leave before
    /// [`Handler::finish`] is called.
    fn early(&self) -> &[Early] {
        &[]
    }
    /// Completes the responses of those datagrams that have early packets. Called for a batch that has any.
    fn finish(&mut self, _batch: &mut [Datagram<'_>]) {}
    /// The batch's responses were sent between these times.
    fn sent(&mut self, from: NtpTime, to: NtpTime);
}
