//! m6: what a request can have, and everything of its answer but headers and tag.

use authentick_wire::antp::{C2_SIZE, EARLY_SIZE, Early, Suite, TAG_SIZE, TimeResponse};
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::{NoRoom, Writer};

/// Octets of an early packet.
pub(crate) const EARLY_PACKET_SIZE: usize = HEADER_SIZE + Early::FIELD_SIZE;

/// What a time request is to get beside time. What it cannot have for lack of room in its request, it does without:
/// the fresh C2 first, then the early packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extras {
    /// A fresh C2.
    pub(crate) fresh: bool,
    /// The time first, and the tag in a packet of its own.
    pub(crate) early: bool,
}

impl Extras {
    /// Those of them that a request of `request_size` octets, in IP and UDP headers of `overhead` octets, has room for.
    //= antp#carrier-6
    pub(crate) const fn that_fit(self, request_size: usize, overhead: usize) -> Self {
        let room = request_size + overhead;
        let early = self.early && Extras { fresh: false, early: true }.cost(overhead) <= room;
        let fresh = self.fresh && Extras { fresh: true, early }.cost(overhead) <= room;
        Extras { fresh, early }
    }

    /// Octets on the way back with all headers of IP and UDP.
    const fn cost(self, overhead: usize) -> usize {
        let response = HEADER_SIZE + TimeResponse::field_size(self.fresh) + overhead;
        if self.early { response + Early::FIELD_SIZE + EARLY_PACKET_SIZE + overhead } else { response }
    }
}

/// Writes the fields of m6, with zeros for the tag, to `out`, whose size is that of the request; headers are left free.
/// With `early`, that is the early packet, and m6 behind it. Returns the size of m6.
//= antp#separate-1
pub(crate) fn lay_out(
    suite: Suite,
    fresh: Option<&[u8; C2_SIZE]>,
    early: Option<&[u8; EARLY_SIZE]>,
    out: &mut [u8],
) -> Result<usize, NoRoom> {
    let mut out = Writer::new(out);
    let mut start = 0;
    if let Some(random) = early {
        out.reserve(HEADER_SIZE)?;
        Early { suite, random }.emit(&mut out)?;
        start = out.offset();
    }
    out.reserve(HEADER_SIZE)?;
    if let Some(random) = early {
        Early { suite, random }.emit(&mut out)?;
    }
    TimeResponse { suite, fresh, tag: &[0; TAG_SIZE] }.emit(&mut out)?;
    Ok(out.offset() - start)
}
