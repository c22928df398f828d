//! The memory of one datagram in a batch.

use authentick_wire::limits::DATAGRAM_SIZE_MAX;

/// Octets of a cache line, on every processor that this is likely to run on.
const LINE_SIZE: usize = 64;

/// Room for a datagram, and a distance to the next one.
///
/// A batch has its datagrams side by side and goes over the first few hundred octets of each several times. At a
/// distance of 2,048 all of them would fall on two places of a first-level cache, which has 64 of them, and none would
/// stay there. An odd number of lines between them spreads them over all.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Buffer {
    pub(super) octets: [u8; DATAGRAM_SIZE_MAX],
    gap: [u8; LINE_SIZE],
}

impl Buffer {
    pub(super) const ZERO: Self = Buffer { octets: [0; DATAGRAM_SIZE_MAX], gap: [0; LINE_SIZE] };
}

const _: () = assert!((size_of::<Buffer>() / LINE_SIZE) % 2 == 1, "buffers are an odd number of lines apart");
