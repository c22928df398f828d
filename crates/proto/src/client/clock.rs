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
    #[error("stratum: {number} is not between 1 and 15{}", meaning(*.0), number = .0)]
    Stratum(u8),
    /// It may be 16 s or more from true time.
    #[error("root distance: the server is 16 s or more from true time")]
    RootDistance,
}

/// What a stratum says that has a meaning beside its number. RFC 5905 figure 11.
const fn meaning(stratum: u8) -> &'static str {
    match stratum {
        16 => ": the server's clock is not synchronised",
        _ => "",
    }
}

/// Looks at stratum, leap indicator and root distance. The stratum comes first, as most servers that are not
/// synchronised say so by both, and who counts bad strata counts them all; the leap indicator speaks where it alone
/// does.
pub(crate) fn check_clock(header: &Header) -> Result<(), Unsound> {
    //= rfc5905#9.2-12
    if !(1..16).contains(&header.stratum) {
        return Err(Unsound::Stratum(header.stratum));
    }
    //= rfc5905#9.2-11
    if header.leap == Leap::Unsynchronised {
        return Err(Unsound::Leap);
    }
    let root_distance_ns = header.root_delay.as_nanos() / 2 + header.root_dispersion.as_nanos();
    //= rfc5905#9.2-12
    if root_distance_ns >= ROOT_DISTANCE_MAX_SECONDS * 1_000_000_000 {
        return Err(Unsound::RootDistance);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use authentick_wire::time::{NtpShort, NtpTime};

    use super::*;

    #[test]
    fn stratum_speaks_before_the_leap_indicator_and_both_before_the_distance() {
        for stratum in 0..=u8::MAX {
            for leap in [Leap::None, Leap::Unsynchronised] {
                for root_dispersion in [NtpShort::ZERO, NtpShort::MAX] {
                    let minimal = Header::minimal_request(NtpTime::from_bits(1));
                    let header = Header { leap, stratum, root_dispersion, ..minimal };
                    let expected = match (stratum, leap) {
                        (0 | 16.., _) => Err(Unsound::Stratum(stratum)),
                        (_, Leap::Unsynchronised) => Err(Unsound::Leap),
                        _ if root_dispersion == NtpShort::MAX => Err(Unsound::RootDistance),
                        _ => Ok(()),
                    };
                    assert_eq!(check_clock(&header), expected, "{stratum} {leap:?}");
                }
            }
        }
        let words = Unsound::Stratum(16).to_string();
        assert_eq!(words, "stratum: 16 is not between 1 and 15: the server's clock is not synchronised");
    }
}
