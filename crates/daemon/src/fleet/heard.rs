//! When members were heard of last, and which keys they said to open.
//!
//! A member says anew what it has every fifteen seconds, or thirty with keys of two kinds, with another time in it. So
//! what has not changed for a minute was said by somebody who is gone, or whom this node cannot hear. Members' clocks
//! do not count for that: only when this node saw a change, by its own clock that nobody sets.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use authentick_fleet::{Acknowledgement, Name};

use super::status::sum;

/// How long what a member said counts.
pub(crate) const FRESH: Duration = Duration::from_secs(60);

/// What was heard of members.
#[derive(Debug)]
pub(crate) struct Heard {
    /// What lies in each server, by member, and since when this node has seen it there. Each server counts for itself:
    /// one that is not written any more would otherwise look like news beside another.
    words: Mutex<BTreeMap<(usize, Name), (Acknowledgement, Instant)>>,
    /// Members who were not heard of count as present for a while from here on.
    since: Instant,
}

impl Heard {
    pub(super) fn from(since: Instant) -> Self {
        Heard { words: Mutex::default(), since }
    }

    /// A server was read at `now`.
    pub(super) fn note(&self, server: usize, said: &BTreeMap<Name, Acknowledgement>, now: Instant) {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, said) in said {
            let place = (server, name.clone());
            if words.get(&place).is_none_or(|(known, _)| known != said) {
                words.insert(place, (said.clone(), now));
            }
        }
    }

    /// How many requests the member answered in the minute before it was heard of last, if it counts them.
    pub(super) fn last_minute(&self, member: &Name) -> Option<u64> {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let said = words.iter().filter(|((_, name), _)| name == member).map(|(_, word)| word);
        let (said, _) = said.max_by_key(|(_, since)| *since)?;
        sum(said.counts.iter().map(|count| count.last_minute))
    }

    /// How long the member has said nothing new at `now`; since it was expected, if it was never heard of.
    pub(crate) fn silence(&self, member: &Name, now: Instant) -> Duration {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = words.iter().filter(|((_, name), _)| name == member).map(|(_, (_, since))| *since);
        now.saturating_duration_since(heard.max().unwrap_or(self.since))
    }

    /// Whether the member opens what is sealed with `key`, as far as is known at `now`.
    pub(crate) fn opens(&self, member: &Name, key: u32, now: Instant) -> bool {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let mut said = words.iter().filter(|((_, name), _)| name == member).map(|(_, word)| word).peekable();
        let is_fresh = |since: Instant| now.saturating_duration_since(since) <= FRESH;
        if said.peek().is_none() {
            return is_fresh(self.since);
        }
        said.any(|(said, since)| is_fresh(*since) && said.opens.contains(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Name {
        Name::new(name).unwrap()
    }

    fn said(time: u64, opens: &[u32]) -> BTreeMap<Name, Acknowledgement> {
        let said = Acknowledgement {
            fleet: name("fleet"),
            node: name("b"),
            time,
            document: None,
            lineage: None,
            since: None,
            claim: None,
            nonce: None,
            is_doubled: false,
            seals: None,
            opens: opens.to_vec(),
            dropped: vec![],
            counts: vec![],
            symmetric: vec![],
        };
        [(name("b"), said)].into()
    }

    #[test]
    fn member_counts_while_it_says_something_new_and_opens_the_key() {
        let start = Instant::now();
        let at = |second: u64| start + Duration::from_secs(second);
        let heard = Heard::from(start);
        let opens = |key: u32, second: u64| heard.opens(&name("b"), key, at(second));
        assert!(opens(1, 60) && !opens(1, 61), "nobody was heard of yet");
        heard.note(0, &said(5, &[1, 2]), at(70));
        assert!(opens(1, 70) && opens(2, 130) && !opens(3, 70) && !opens(2, 131));
        // The same again is no news, whatever it says of the time.
        heard.note(0, &said(5, &[1, 2]), at(131));
        assert!(!opens(1, 131));
        heard.note(0, &said(4, &[2, 3]), at(140));
        assert!(opens(3, 140) && !opens(1, 140));
    }

    #[test]
    fn member_is_silent_since_any_server_had_a_new_word_of_it() {
        let start = Instant::now();
        let at = |second: u64| start + Duration::from_secs(second);
        let heard = Heard::from(start);
        let silence = |second: u64| heard.silence(&name("b"), at(second)).as_secs();
        assert_eq!((silence(0), silence(50)), (0, 50), "it was never heard of");
        heard.note(0, &said(1, &[1]), at(50));
        heard.note(1, &said(1, &[1]), at(60));
        assert_eq!((silence(60), silence(100)), (0, 40));
        // The same again, there or elsewhere, is nothing new.
        heard.note(0, &said(1, &[1]), at(100));
        assert_eq!(silence(100), 40);
        heard.note(0, &said(2, &[1]), at(130));
        assert_eq!((silence(130), heard.silence(&name("c"), at(130)).as_secs()), (0, 130));
    }

    #[test]
    fn server_with_an_old_word_beside_one_with_a_new_one_makes_no_news() {
        let start = Instant::now();
        let at = |second: u64| start + Duration::from_secs(second);
        let heard = Heard::from(start);
        for second in 0..200 {
            heard.note(0, &said(1, &[1]), at(second));
            heard.note(1, &said(2, &[1]), at(second));
        }
        assert!(!heard.opens(&name("b"), 1, at(200)));
        heard.note(1, &said(3, &[1]), at(200));
        assert!(heard.opens(&name("b"), 1, at(200)), "one server is enough");
    }
}
