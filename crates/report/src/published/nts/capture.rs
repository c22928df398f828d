//! What the authors' capture of three key exchanges with three transfers each shows of the network, in nanoseconds.
//!
//! It was taken at the client: results/One KE Three NTP.pcapng of the data. Medians of an even number of values are the
//! mean of the two in the middle.

/// From a query of the name server to its answer: before each key exchange, and before each transfer.
pub const LOOK_UPS_NS: [f64; 12] = [
    429_081.0, 379_942.0, 353_200.0, 332_260.0, 445_353.0, 343_841.0, 314_360.0, 365_738.0, 452_923.0,
    404_037.0, 306_372.0, 317_363.0,
];

/// From an authenticated request to its answer, with the server's time in it.
pub const TRANSFERS_NS: [f64; 9] =
    [2_849_389.0, 213_729.0, 185_830.0, 254_817.0, 1_183_374.0, 213_895.0, 228_254.0, 186_066.0, 181_885.0];

/// From the SYN to the server's answer, which its kernel gives: a round trip of the path.
pub const ROUND_TRIPS_NS: [f64; 3] = [120_220.0, 121_393.0, 114_255.0];

/// Round trips of a key exchange: one of TCP, one of TLS, one of request and response.
pub const EXCHANGE_ROUND_TRIP_COUNT: u32 = 3;

/// Octets of the TLS record that the response fills, without its header.
pub const RESPONSE_RECORD_SIZE: u32 = 871;

/// Octets that TLS 1.3 adds to what such a record holds: the type, and the tag of the AEAD.
const RECORD_OVERHEAD: u32 = 1 + 16;

/// Octets of the response itself.
pub const RESPONSE_SIZE: u32 = RESPONSE_RECORD_SIZE - RECORD_OVERHEAD;

/// Octets of the response of their program with so many cookies of so many octets: next protocol and AEAD with two
/// octets each, the cookies, a port, the end of the message; each record has a header of four octets.
#[must_use]
pub const fn response_size(cookie_count: u32, cookie_size: u32) -> u32 {
    2 * (4 + 2) + cookie_count * (4 + cookie_size) + (4 + 2) + 4
}

/// The middle of these values, in milliseconds.
#[must_use]
pub fn median_ms(values_ns: &[f64]) -> f64 {
    let mut values = values_ns.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (at((values.len().max(1) - 1) / 2) + at(values.len() / 2)) / 2.0 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_in_the_middle() {
        assert_eq!(median_ms(&[3e6, 1e6, 2e6]), 2.0);
        assert_eq!(median_ms(&[4e6, 1e6, 3e6, 2e6]), 2.5);
        assert_eq!(median_ms(&[7e6]), 7.0);
        assert!(median_ms(&[]).is_nan());
    }

    #[test]
    fn response_has_room_for_eight_cookies_of_a_hundred_octets_and_no_more() {
        assert_eq!(RESPONSE_SIZE, response_size(8, 100));
        // Nor do other counts of cookies of whole words fit.
        for cookie_count in (1..16).filter(|&count| count != 8) {
            assert!((64..200).step_by(4).all(|size| response_size(cookie_count, size) != RESPONSE_SIZE));
        }
    }
}
