//! Offset and delay from the four timestamps of an exchange. RFC 5905 section 8.

use authentick_wire::header::Header;
use authentick_wire::time::{NtpSpan, NtpTime};

/// One measurement of a server's clock against ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How far the server's clock is ahead of ours.
    pub offset: NtpSpan,
    /// Time on the way, both directions, without the server's own.
    pub delay: NtpSpan,
    /// From the request's departure to the response's arrival.
    pub round_trip: NtpSpan,
    /// How far the server may be from true time, by its own account: half its root delay, and its root dispersion.
    pub root_distance: NtpSpan,
}

impl Sample {
    /// Whether the server claims more time for itself than the exchange took, so that the offset means nothing.
    #[must_use]
    pub fn has_negative_delay(&self) -> bool {
        self.delay < NtpSpan::default()
    }

    /// `sent` (T1) and `arrived` (T4) are by our clock; the header carries T2 and T3.
    //= rfc5905#8-3, rfc5905#8-4
    #[must_use]
    pub fn new(header: &Header, sent: NtpTime, arrived: NtpTime) -> Self {
        let round_trip = arrived.since(sent);
        let root_distance = header.root_delay.as_nanos() / 2 + header.root_dispersion.as_nanos();
        Sample {
            offset: header.receive.since(sent).mean(header.transmit.since(arrived)),
            delay: round_trip - header.transmit.since(header.receive),
            round_trip,
            root_distance: NtpSpan::from_nanos(i64::try_from(root_distance).unwrap_or(i64::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc5905#8-3, rfc5905#8-4
    #[test]
    fn offset_and_delay_of_a_skewed_server() {
        // The server is 5 s ahead; the way there takes 10 ms, the way back 30 ms, the server 1 ms.
        let at = |milliseconds: i64| {
            NtpTime::from_unix(1_700_000_000, 0) + NtpSpan::from_nanos(milliseconds * 1_000_000)
        };
        let mut header = Header::minimal_request(NtpTime::ZERO);
        header.receive = at(5_010);
        header.transmit = at(5_011);
        let sample = Sample::new(&header, at(0), at(41));
        let ms = |span: NtpSpan| (span.as_nanos() as f64 / 1e6).round() as i64;
        assert_eq!((ms(sample.offset), ms(sample.delay), ms(sample.round_trip)), (4_990, 40, 41));
    }
}
