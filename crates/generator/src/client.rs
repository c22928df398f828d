//! A simulated client: what it keeps between requests, and why its requests stay unanswered.

use std::net::SocketAddr;

use authentick_proto::client::{CookieJar, NtsSession};
use authentick_report::load::Cause;

use crate::scheme::State;

/// First pause after a key exchange that failed; it doubles up to the last one.
const RETRY_MIN_NS: u64 = 1_000_000_000;
const RETRY_MAX_NS: u64 = 16_000_000_000;

/// One simulated client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) local: SocketAddr,
    /// It is measured.
    pub(crate) measured: bool,
    pub(crate) session: Option<NtsSession>,
    /// What it keeps of ANTP.
    pub(crate) antp: State,
    /// When the session began.
    established_ns: u64,
    /// Earlier sessions of requests that are still in flight: when each began and ended. Their jars are empty.
    earlier: Vec<(u64, u64, NtsSession)>,
    /// Requests that may still be answered.
    pub(crate) outstanding: u32,
    /// A key exchange is under way.
    pub(crate) exchanging: bool,
    /// Transfers that must still follow its key exchange.
    pub(crate) transfers_left: u32,
    /// The earliest time for the next key exchange, and the length of the pause before it.
    retry_at_ns: u64,
    retry_pause_ns: u64,
    /// When the network last said that its requests do not arrive, and how.
    obstacle: Option<(u64, Cause)>,
    /// Stray datagrams that were not attributed to a request yet.
    strangers: [u32; 2],
    /// Origins of the latest answers: tells duplicates from answers to something else.
    recent: [u64; 4],
    recent_index: usize,
}

impl Client {
    /// A client at this address that has nothing yet.
    pub(crate) fn new(local: SocketAddr, measured: bool) -> Self {
        Client {
            local,
            measured,
            session: None,
            antp: State::default(),
            established_ns: 0,
            earlier: Vec::new(),
            outstanding: 0,
            exchanging: false,
            transfers_left: 0,
            retry_at_ns: 0,
            retry_pause_ns: RETRY_MIN_NS,
            obstacle: None,
            strangers: [0; 2],
            recent: [0; 4],
            recent_index: 0,
        }
    }

    /// Whether it has a cookie to send.
    pub(crate) fn has_cookie(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.jar.count() > 0)
    }

    /// Whether it should exchange keys: it has no cookie and expects none.
    //= rfc8915#5.7-6
    pub(crate) fn wants_keys(&self, now_ns: u64) -> bool {
        let hopeless = self.session.is_none() || self.outstanding == 0;
        !self.has_cookie() && hopeless && self.may_prepare(now_ns)
    }

    /// Whether it may fetch keys, or sealed state of ANTP, now.
    pub(crate) fn may_prepare(&self, now_ns: u64) -> bool {
        !self.exchanging && now_ns >= self.retry_at_ns
    }

    /// It has received what it fetched.
    pub(crate) fn prepared(&mut self) {
        self.exchanging = false;
        self.retry_pause_ns = RETRY_MIN_NS;
    }

    /// It has new keys. The previous ones are kept for `memory_ns`, as long as answers under them may come.
    //= rfc8915#5.7-26
    pub(crate) fn established(&mut self, session: NtsSession, now_ns: u64, memory_ns: u64) {
        self.retire(now_ns);
        self.earlier.retain(|&(_, ended_ns, _)| now_ns.saturating_sub(ended_ns) <= memory_ns);
        self.session = Some(session);
        self.established_ns = now_ns;
        self.prepared();
    }

    /// A request that was sent at `sent_ns` showed at `now_ns` that its keys are useless; `false` if the client has
    /// newer ones.
    pub(crate) fn forget_keys(&mut self, sent_ns: u64, now_ns: u64) -> bool {
        let current = sent_ns >= self.established_ns;
        if current {
            self.retire(now_ns);
        }
        current
    }

    fn retire(&mut self, now_ns: u64) {
        if let Some(mut session) = self.session.take() {
            session.jar = CookieJar::default();
            self.earlier.push((self.established_ns, now_ns, session));
        }
    }

    /// The session of a request that was made or sent at `sent_ns`.
    pub(crate) fn session_of(&self, sent_ns: u64) -> Option<&NtsSession> {
        let current = self.session.as_ref().filter(|_| sent_ns >= self.established_ns);
        let mut earlier = self.earlier.iter().rev();
        current.or_else(|| earlier.find(|(since_ns, ..)| sent_ns >= *since_ns).map(|(.., session)| session))
    }

    /// The same, to put cookies into its jar.
    pub(crate) fn session_of_mut(&mut self, sent_ns: u64) -> Option<&mut NtsSession> {
        let current = self.session.as_mut().filter(|_| sent_ns >= self.established_ns);
        let mut earlier = self.earlier.iter_mut().rev();
        current.or_else(|| earlier.find(|(since_ns, ..)| sent_ns >= *since_ns).map(|(.., session)| session))
    }

    /// Its key exchange failed: there is a pause before the next one.
    //= rfc8915#4.2-1
    pub(crate) fn not_established(&mut self, now_ns: u64) {
        self.exchanging = false;
        self.retry_at_ns = now_ns.saturating_add(self.retry_pause_ns);
        self.retry_pause_ns = (2 * self.retry_pause_ns).min(RETRY_MAX_NS);
    }

    /// The network says that requests of this client do not arrive.
    pub(crate) fn obstructed(&mut self, now_ns: u64, cause: Cause) {
        self.obstacle = Some((now_ns, cause));
    }

    /// A request was answered.
    pub(crate) fn answered(&mut self, transmit: u64) {
        self.recent[self.recent_index] = transmit;
        self.recent_index = (self.recent_index + 1) % self.recent.len();
    }

    /// A datagram came that answers no request in flight; `origin` is absent if it is no NTP packet. `true`: it is a
    /// second answer; otherwise it is kept for a request that stays without one.
    pub(crate) fn is_surplus(&mut self, origin: Option<u64>) -> bool {
        if origin.is_some_and(|origin| self.recent.contains(&origin)) {
            return true;
        }
        self.strangers[usize::from(origin.is_none())] += 1;
        false
    }

    /// Why a request that was sent at `sent_ns` stayed unanswered.
    pub(crate) fn why_unanswered(&mut self, sent_ns: u64) -> Cause {
        for (count, cause) in self.strangers.iter_mut().zip([Cause::BadOrigin, Cause::Malformed]) {
            if *count > 0 {
                *count -= 1;
                return cause;
            }
        }
        match self.obstacle {
            Some((at_ns, cause)) if at_ns >= sent_ns => cause,
            _ => Cause::Timeout,
        }
    }

    /// Stray datagrams that could not be attributed to an unanswered request.
    pub(crate) fn take_strangers(&mut self) -> u64 {
        self.strangers.iter_mut().map(|count| u64::from(std::mem::take(count))).sum()
    }
}

#[cfg(test)]
mod tests {
    use authentick_crypto::{Algorithm, Key};
    use authentick_proto::cookie::SessionKeys;

    use super::*;

    fn client() -> Client {
        Client::new("127.0.0.1:9".parse().unwrap(), true)
    }

    #[test]
    fn strangers_are_laid_to_one_request_each() {
        let mut client = client();
        client.answered(5);
        assert!(client.is_surplus(Some(5)));
        assert!(!client.is_surplus(Some(6)) && !client.is_surplus(None));
        let causes = [0; 3].map(|sent| client.why_unanswered(sent));
        assert_eq!(causes, [Cause::BadOrigin, Cause::Malformed, Cause::Timeout]);
        assert!(!client.is_surplus(Some(7)));
        assert_eq!((client.take_strangers(), client.take_strangers()), (1, 0));
    }

    /// A session whose keys tell it apart.
    fn session(number: u8) -> NtsSession {
        let key = || Key::new(Algorithm::SivCmac256, &[number; 32]).unwrap();
        NtsSession::new(SessionKeys::new(&key(), &key()).unwrap(), None)
    }

    //= rfc8915#5.7-26
    #[test]
    fn answers_are_checked_with_the_keys_of_their_requests() {
        let mut client = client();
        assert!(client.session_of(0).is_none());
        client.established(session(1), 100, 50);
        client.established(session(2), 200, 50);
        assert!(client.forget_keys(210, 220) && !client.forget_keys(190, 220));
        let number = |client: &mut Client, sent_ns| {
            client.session_of(sent_ns).map(|session| session.keys().expose()[0])
        };
        assert_eq!([150, 200, 230].map(|sent_ns| number(&mut client, sent_ns)), [Some(1), Some(2), Some(2)]);
        client.established(session(3), 251, 50);
        assert_eq!([150, 210, 260].map(|sent_ns| number(&mut client, sent_ns)), [None, Some(2), Some(3)]);
    }

    #[test]
    fn obstacle_explains_requests_that_were_sent_before_it() {
        let mut client = client();
        client.obstructed(100, Cause::Refused);
        assert_eq!(client.why_unanswered(90), Cause::Refused);
        assert_eq!(client.why_unanswered(110), Cause::Timeout);
    }

    //= rfc8915#4.2-1, rfc8915#5.7-6
    #[test]
    fn failed_key_exchanges_are_repeated_at_growing_distances() {
        let mut client = client();
        assert!(client.wants_keys(0));
        let mut now_ns = 0;
        for pause_s in [1, 2, 4, 8, 16, 16] {
            client.not_established(now_ns);
            let next_ns = now_ns + pause_s * 1_000_000_000;
            assert!(!client.wants_keys(next_ns - 1) && client.wants_keys(next_ns), "{pause_s}");
            now_ns = next_ns;
        }
    }
}
