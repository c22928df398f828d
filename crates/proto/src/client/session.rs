//! What an NTS client keeps between exchanges: keys, and a jar of cookies of which none is used twice.

use authentick_crypto::Algorithm;
use authentick_wire::limits::{COOKIE_COUNT, COOKIE_SIZE_MAX};

use crate::cookie::SessionKeys;

/// Cookies, used in the order in which they came. RFC 8915 section 5.7.
#[derive(Clone, Debug, Default)]
pub struct CookieJar {
    cookies: std::collections::VecDeque<Vec<u8>>,
}

impl CookieJar {
    /// Adds a cookie; `false` if it was thrown away: the jar is full, or the size is none that a field can carry.
    pub fn add(&mut self, cookie: &[u8]) -> bool {
        //= rfc8915#4.1.6-1, rfc8915#5.7-8
        // A client keeps no more than eight.
        let fits = self.cookies.len() < COOKIE_COUNT
            && !cookie.is_empty()
            && cookie.len() <= COOKIE_SIZE_MAX
            && cookie.len().is_multiple_of(4);
        if fits {
            self.cookies.push_back(cookie.to_vec());
        }
        fits
    }

    /// The oldest cookie, which is not in the jar any more.
    //= rfc8915#5.7-4, rfc8915#5.7-5
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.cookies.pop_front()
    }

    /// The oldest cookie, which stays in the jar.
    #[must_use]
    pub fn oldest(&self) -> Option<&[u8]> {
        self.cookies.front().map(Vec::as_slice)
    }

    /// Throws all cookies but the oldest away.
    pub fn keep_oldest(&mut self) {
        self.cookies.truncate(1);
    }

    /// Cookies left.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cookies.len()
    }
}

/// The outcome of a key exchange, and the cookies since.
#[derive(Clone, Debug)]
pub struct NtsSession {
    keys: SessionKeys,
    /// Keys exported the other way, if the server may have done so (AES-128-GCM-SIV without record 1024).
    alternative: Option<SessionKeys>,
    /// Unused cookies.
    pub jar: CookieJar,
}

impl NtsSession {
    /// A session with no cookies yet. `alternative` are the keys to turn to if the server accepts nothing under `keys`.
    #[must_use]
    pub fn new(keys: SessionKeys, alternative: Option<SessionKeys>) -> Self {
        NtsSession { keys, alternative, jar: CookieJar::default() }
    }

    /// The keys in use.
    #[must_use]
    pub const fn keys(&self) -> &SessionKeys {
        &self.keys
    }

    /// The algorithm of the keys.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.keys.algorithm()
    }

    /// Turns to the alternative keys; `false` if there are none left.
    pub fn switch_keys(&mut self) -> bool {
        match self.alternative.take() {
            Some(keys) => {
                self.keys = keys;
                true
            }
            None => false,
        }
    }
}
