//! What became of a datagram: exactly one outcome each, and a counter per outcome.

use std::ops::AddAssign;

crate::outcomes! {
    /// The end of one datagram. Received datagrams equal the sum of all outcomes.
    pub enum Outcome {
        /// Time was given without authentication.
        Plain = "plain",
        /// Time was given under NTS.
        Nts = "nts",
        /// Time was given under a symmetric key.
        Mac = "mac",
        /// ANTP: time was given under a session key.
        AntpTime = "antp_time",
        /// ANTP: the same, with the tag in a packet of its own behind the time.
        AntpSeparateTag = "antp_separate_tag",
        /// ANTP: a choice of suite, C1 and a part of the certificate chain were given.
        AntpNegotiated = "antp_negotiated",
        /// ANTP: a key exchange went to the public-key threads, which answer it and count how.
        AntpKeyExchange = "antp_key_exchange",
        /// ANTP error 1: the version is not served.
        AntpVersion = "antp_version",
        /// ANTP error 2: there is no common suite.
        AntpNoSuite = "antp_no_suite",
        /// ANTP error 3: C1 or C2 does not open, has expired, or is for another suite or address.
        AntpExpired = "antp_expired",
        /// ANTP error 4: the client's prefix asks for this phase more often than allowed.
        AntpRate = "antp_rate",
        /// ANTP error 4: all prefixes together ask for more key exchanges than allowed.
        AntpBusy = "antp_busy",
        /// ANTP error 4: the queue of the public-key threads is full.
        AntpQueueFull = "antp_queue_full",
        /// NTSN: the cookie names a key that is not, or no longer, in the set. RFC 8915 section 5.7.
        NakUnknownKey = "nts_nak_unknown_key",
        /// NTSN: the cookie does not open under the key that it names.
        NakCookie = "nts_nak_cookie",
        /// NTSN: the cookie opens, the request's own tag is wrong.
        NakTag = "nts_nak_tag",
        /// Crypto-NAK: the MAC names a key that is not known here. RFC 5905 section 9.2.
        MacNakUnknownKey = "mac_nak_unknown_key",
        /// Crypto-NAK: the MAC's key is known, and its algorithm is not allowed.
        MacNakNotAllowed = "mac_nak_not_allowed",
        /// Crypto-NAK: the MAC is wrong, or lacks the nonce that its key needs.
        MacNakTag = "mac_nak_tag",
        /// RATE: the client asks more often than allowed.
        KissRate = "kiss_rate",
        /// DENY: the client may not ask here.
        KissDeny = "kiss_deny",
        /// Silence: the client asks more often than allowed.
        RateLimited = "rate_limited",
        /// Silence: the client may not ask here.
        Denied = "denied",
        /// Silence: a response, a broadcast, a control or private message, or the like.
        NotARequest = "not_a_request",
        /// Silence: sent to a broadcast or multicast address, where each socket of each host would answer.
        NotUnicast = "not_unicast",
        /// Silence: not an NTP packet.
        Malformed = "malformed",
        /// Silence: an NTP packet whose NTS fields break a rule.
        NtsMalformed = "nts_malformed",
        /// Silence: the cookie names a key that others have already, and that is on its way here.
        NtsKeyAhead = "nts_key_ahead",
        /// Silence: an NTP packet whose ANTP fields break a rule.
        AntpMalformed = "antp_malformed",
        /// Silence: C1 or C2 names a key that others have already, and that is on its way here.
        AntpKeyAhead = "antp_key_ahead",
        /// Silence: a kiss to a request without a transmit timestamp, for which there is no time to give: the server is
        /// not synchronised, or the request's proof is wrong.
        KissUnstamped = "kiss_unstamped",
        /// Silence: a version of NTP that is not served.
        Version = "unsupported_version",
        /// Silence: a request to be signed for a machine of a Windows domain (MS-SNTP).
        MsSntp = "ms_sntp",
        /// Silence: a response would have been larger than the request.
        NoRoom = "no_room",
    }
}

/// How many outcomes there are.
pub const OUTCOME_COUNT: usize = Outcome::ALL.len();

impl Outcome {
    /// Whether something was sent back at once.
    #[must_use]
    pub const fn is_answered(self) -> bool {
        match self {
            Outcome::Plain
            | Outcome::Nts
            | Outcome::Mac
            | Outcome::AntpTime
            | Outcome::AntpSeparateTag
            | Outcome::AntpNegotiated
            | Outcome::AntpVersion
            | Outcome::AntpNoSuite
            | Outcome::AntpExpired
            | Outcome::AntpRate
            | Outcome::AntpBusy
            | Outcome::AntpQueueFull
            | Outcome::NakUnknownKey
            | Outcome::NakCookie
            | Outcome::NakTag
            | Outcome::MacNakUnknownKey
            | Outcome::MacNakNotAllowed
            | Outcome::MacNakTag
            | Outcome::KissRate
            | Outcome::KissDeny => true,
            Outcome::AntpKeyExchange
            | Outcome::RateLimited
            | Outcome::Denied
            | Outcome::NotARequest
            | Outcome::NotUnicast
            | Outcome::Malformed
            | Outcome::NtsMalformed
            | Outcome::NtsKeyAhead
            | Outcome::AntpMalformed
            | Outcome::AntpKeyAhead
            | Outcome::KissUnstamped
            | Outcome::Version
            | Outcome::MsSntp
            | Outcome::NoRoom => false,
        }
    }
}

/// A counter per outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcomes([u64; OUTCOME_COUNT]);

impl Default for Outcomes {
    /// Nothing has happened yet.
    fn default() -> Self {
        Outcomes([0; OUTCOME_COUNT])
    }
}

impl Outcomes {
    /// Counts one.
    #[inline]
    pub fn count(&mut self, outcome: Outcome) {
        self.0[outcome as usize] += 1;
    }

    /// How often `outcome` happened.
    #[must_use]
    pub const fn of(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize]
    }

    /// All outcomes together: as many datagrams were received.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The counters in the order of [`Outcome::ALL`].
    #[must_use]
    pub const fn counters(&self) -> &[u64; OUTCOME_COUNT] {
        &self.0
    }
}

impl AddAssign for Outcomes {
    fn add_assign(&mut self, other: Outcomes) {
        for (mine, others) in self.0.iter_mut().zip(other.0) {
            *mine += others;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_distinct_and_counters_line_up() {
        let mut outcomes = Outcomes::default();
        for (index, &outcome) in Outcome::ALL.iter().enumerate() {
            assert_eq!(outcome as usize, index);
            assert!(Outcome::ALL.iter().all(|&other| other == outcome || other.label() != outcome.label()));
            outcomes.count(outcome);
            assert_eq!(outcomes.of(outcome), 1);
        }
        assert_eq!(outcomes.total(), OUTCOME_COUNT as u64);
    }
}
