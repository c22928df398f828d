//! A simulated client: what it keeps between requests.

use std::net::SocketAddr;

use authentick_proto::client::{CookieJar, NtsSession};

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
    /// The number of its keys, the present ones or the next.
    epoch: u32,
    /// Requests with the present keys that have not ended.
    waiting_count: u32,
    /// Earlier keys, each as long as a request with them has not ended.
    earlier: Vec<Earlier>,
    /// Requests that may still be answered.
    pub(crate) outstanding: u32,
    /// A key exchange is under way.
    pub(crate) exchanging: bool,
    /// Transfers that must still follow its key exchange.
    pub(crate) transfers_left: u32,
    /// The earliest time for the next key exchange, and the length of the pause before it.
    retry_at_ns: u64,
    retry_pause_ns: u64,
}

/// Keys that a client has given up.
#[derive(Debug)]
struct Earlier {
    /// Their number.
    epoch: u32,
    /// Requests with them that have not ended: never 0.
    waiting_count: u32,
    /// Its jar is empty.
    session: NtsSession,
}

impl Client {
    /// A client at this address that has nothing yet.
    pub(crate) fn new(local: SocketAddr, measured: bool) -> Self {
        Client {
            local,
            measured,
            session: None,
            antp: State::default(),
            epoch: 0,
            waiting_count: 0,
            earlier: Vec::new(),
            outstanding: 0,
            exchanging: false,
            transfers_left: 0,
            retry_at_ns: 0,
            retry_pause_ns: RETRY_MIN_NS,
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

    /// It has new keys. The previous ones are kept as long as a request with them waits for its answer.
    //= rfc8915#5.7-26
    pub(crate) fn established(&mut self, session: NtsSession) {
        self.retire();
        self.session = Some(session);
        self.prepared();
    }

    /// A request with the keys of this number showed that they are useless; `false` if the client has given them up
    /// already.
    pub(crate) fn forget_keys(&mut self, epoch: u32) -> bool {
        let is_present = epoch == self.epoch && self.session.is_some();
        if is_present {
            self.retire();
        }
        is_present
    }

    fn retire(&mut self) {
        let Some(mut session) = self.session.take() else { return };
        session.jar = CookieJar::default();
        let (epoch, waiting_count) = (self.epoch, self.waiting_count);
        if waiting_count > 0 {
            self.earlier.push(Earlier { epoch, waiting_count, session });
        }
        // Requests with keys of 2^32 numbers before have ended.
        (self.epoch, self.waiting_count) = (epoch.wrapping_add(1), 0);
    }

    /// The number of its keys. Requests are made with the present ones.
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// A request was made with the present keys, if there are any. Each is told of once when it ends.
    pub(crate) const fn request_made(&mut self) {
        self.waiting_count += 1;
    }

    /// A request with the keys of this number has ended: no answer to it will be looked at.
    pub(crate) fn request_ended(&mut self, epoch: u32) {
        if epoch == self.epoch {
            self.waiting_count = self.waiting_count.saturating_sub(1);
        } else if let Some(index) = self.earlier.iter().position(|earlier| earlier.epoch == epoch) {
            self.earlier[index].waiting_count -= 1;
            if self.earlier[index].waiting_count == 0 {
                self.earlier.swap_remove(index);
            }
        }
    }

    /// The keys of this number.
    pub(crate) fn session_of(&self, epoch: u32) -> Option<&NtsSession> {
        let present = self.session.as_ref().filter(|_| epoch == self.epoch);
        let mut earlier = self.earlier.iter();
        present.or_else(|| earlier.find(|earlier| earlier.epoch == epoch).map(|earlier| &earlier.session))
    }

    /// The same, to put cookies into their jar.
    pub(crate) fn session_of_mut(&mut self, epoch: u32) -> Option<&mut NtsSession> {
        let present = self.session.as_mut().filter(|_| epoch == self.epoch);
        let mut earlier = self.earlier.iter_mut();
        present.or_else(|| earlier.find(|earlier| earlier.epoch == epoch).map(|earlier| &mut earlier.session))
    }

    /// Its key exchange failed: there is a pause before the next one.
    //= rfc8915#4.2-1
    pub(crate) fn not_established(&mut self, now_ns: u64) {
        self.exchanging = false;
        self.retry_at_ns = now_ns.saturating_add(self.retry_pause_ns);
        self.retry_pause_ns = (2 * self.retry_pause_ns).min(RETRY_MAX_NS);
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

    /// A session whose keys tell it apart.
    fn session(number: u8) -> NtsSession {
        let key = || Key::new(Algorithm::SivCmac256, &[number; 32]).unwrap();
        NtsSession::new(SessionKeys::new(&key(), &key()).unwrap(), None)
    }

    /// Which keys these are.
    fn number(client: &Client, epoch: u32) -> Option<u8> {
        client.session_of(epoch).map(|session| session.keys().expose()[0])
    }

    /// Gives a client keys, with which it makes a request.
    fn establish(client: &mut Client, number: u8) -> u32 {
        client.established(session(number));
        client.request_made();
        client.epoch()
    }

    //= rfc8915#5.7-26
    #[test]
    fn answers_are_checked_with_the_keys_of_their_requests() {
        let mut client = client();
        assert!(client.session_of(client.epoch()).is_none());
        let first = establish(&mut client, 1);
        let second = establish(&mut client, 2);
        assert!(client.forget_keys(second) && !client.forget_keys(second) && !client.forget_keys(first));
        assert_eq!([first, second].map(|epoch| number(&client, epoch)), [Some(1), Some(2)]);
        assert_eq!(number(&client, client.epoch()), None);
        let third = establish(&mut client, 3);
        assert_eq!([first, second, third].map(|epoch| number(&client, epoch)), [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn earlier_keys_are_kept_as_long_as_a_request_with_them_waits() {
        let mut client = client();
        let first = establish(&mut client, 1);
        client.request_made();
        let second = establish(&mut client, 2);
        client.request_ended(second);
        let third = establish(&mut client, 3);
        assert_eq!([first, second, third].map(|epoch| number(&client, epoch)), [Some(1), None, Some(3)]);
        client.request_ended(first);
        assert_eq!(number(&client, first), Some(1), "another one waits");
        client.request_ended(first);
        assert_eq!((number(&client, first), client.earlier.len()), (None, 0));
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
