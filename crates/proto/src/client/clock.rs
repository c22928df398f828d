//! The last checks of every scheme: by what a server says of its own clock, may a client follow it?

use authentick_wire::header::{Header, Leap};
use thiserror::Error;

use crate::limits::ROOT_DISTANCE_MAX_SECONDS;

/// Why a server's clock is not to be followed, by the server's own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unsound {
    /// It is not synchronised.
    #[error("leap indicator: the server's clock is not synchronised")]
    Leap,
    /// The stratum is not between 1 and 15.
    #[error("stratum: {0} is not between 1 and 15")]
    Stratum(u8),
    /// It may be 16 s or more from true time.
    #[error("root distance: the server is 16 s or more from true time")]
    RootDistance,
}

/// Looks at leap indicator, stratum and root distance.
pub(crate) fn check_clock(header: &Header) -> Result<(), Unsound> {
    //= rfc5905#9.2-11
    if header.leap == Leap::Unsynchronised {
        return Err(Unsound::Leap);
    }
    //= rfc5905#9.2-12
    if !(1..16).contains(&header.stratum) {
        return Err(Unsound::Stratum(header.stratum));
    }
    let root_distance_ns = header.root_delay.as_nanos() / 2 + header.root_dispersion.as_nanos();
    //= rfc5905#9.2-12
    if root_distance_ns >= ROOT_DISTANCE_MAX_SECONDS * 1_000_000_000 {
        return Err(Unsound::RootDistance);
    }
    Ok(())
}
