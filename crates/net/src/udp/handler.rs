//! The boundary between an engine, which moves datagrams, and whoever answers them.

use authentick_wire::datagram::Datagram;
use authentick_wire::time::NtpTime;

/// What an engine asks of whoever answers its datagrams.
pub trait Handler {
    /// The time of day.
    fn now(&mut self) -> NtpTime;
    /// Writes responses into a batch of 1 to [`super::BATCH_SIZE`] datagrams.
    fn respond(&mut self, batch: &mut [Datagram<'_>]);
    /// The batch's responses were sent between these times.
    fn sent(&mut self, from: NtpTime, to: NtpTime);
}
