//! A store that nobody can trust: it has values with tokens, as memcached does, and by its mood loses, delays, repeats,
//! swaps and damages them, is silent or full.

use std::collections::BTreeMap;
use std::rc::Rc;

use authentick_crypto::Entropy;

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Honest,
    /// It forgets values, some of them before it has shown them to anybody.
    Losing,
    /// It shows what lay in the same place before.
    Repeating,
    /// It shows what lies or lay in another place.
    Swapping,
    /// It flips bits.
    Damaging,
    /// It does not answer. What it was told to store, it stores at once, later or never.
    Silent,
    /// It takes no values.
    Full,
    /// Any of the above, each time anew.
    Wild,
}

const MOODS: [Mood; 9] = [
    Mood::Honest,
    Mood::Honest,
    Mood::Losing,
    Mood::Repeating,
    Mood::Swapping,
    Mood::Damaging,
    Mood::Silent,
    Mood::Full,
    Mood::Wild,
];

/// What tells a value from the one that lay there before. A store that starts counts from 1 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    start: u64,
    number: u64,
}

/// A value as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) octets: Rc<[u8]>,
    pub(crate) token: Token,
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        &self.octets
    }
}

/// What became of a value that was to be stored, as far as the store says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Stored,
    Lost,
    Refused,
    Silence,
}

/// A store; see the module's documentation.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) mood: Mood,
    values: BTreeMap<String, Value>,
    /// Everything that was ever stored, by place.
    history: BTreeMap<String, Vec<Rc<[u8]>>>,
    /// What is stored later, and when.
    delayed: Vec<(u64, String, Rc<[u8]>)>,
    start: u64,
    number: u64,
    entropy: Entropy,
}

impl Store {
    pub(crate) fn new(seed: u64) -> Self {
        Store {
            mood: Mood::Honest,
            values: BTreeMap::new(),
            history: BTreeMap::new(),
            delayed: Vec::new(),
            start: 1,
            number: 0,
            entropy: Entropy::from_seed(seed),
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        (self.entropy.u64() % below as u64) as usize
    }

    /// Another mood, drawn.
    pub(crate) fn change_mood(&mut self) {
        let mood = self.draw(MOODS.len());
        self.mood = MOODS[mood];
    }

    /// It loses everything, and its tokens begin anew.
    pub(crate) fn restart(&mut self) {
        self.values.clear();
        self.start += 1;
        self.number = 0;
    }

    /// Time passes: what is late is stored, whatever lies there by now.
    pub(crate) fn pass(&mut self, now: u64) {
        let (due, later) = std::mem::take(&mut self.delayed).into_iter().partition(|(when, ..)| *when <= now);
        self.delayed = later;
        let due: Vec<(u64, String, Rc<[u8]>)> = due;
        due.into_iter().for_each(|(_, name, octets)| self.keep(&name, octets));
    }

    /// From now on it does what it should, and nothing is on its way any more.
    pub(crate) fn repent(&mut self) {
        self.mood = Mood::Honest;
        self.delayed.clear();
    }

    fn keep(&mut self, name: &str, octets: Rc<[u8]>) {
        self.number += 1;
        let token = Token { start: self.start, number: self.number };
        self.values.insert(name.to_owned(), Value { octets, token });
    }

    /// The mood for one deed.
    fn mood_now(&mut self) -> Mood {
        let drawn = self.draw(MOODS.len() - 1);
        if self.mood == Mood::Wild { MOODS[drawn] } else { self.mood }
    }

    /// The values in these places; `None` is silence.
    pub(crate) fn get<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Option<Vec<Option<Value>>> {
        if self.mood == Mood::Silent || self.mood == Mood::Wild && self.draw(4) == 0 {
            return None;
        }
        Some(names.map(|name| self.value(name)).collect())
    }

    fn value(&mut self, name: &str) -> Option<Value> {
        let is_good = self.draw(2) == 0;
        let mood = if is_good { Mood::Honest } else { self.mood_now() };
        let true_one = self.values.get(name).cloned();
        let shown = match mood {
            Mood::Honest | Mood::Silent | Mood::Full | Mood::Wild => return true_one,
            Mood::Losing => None,
            Mood::Repeating => self.earlier(name),
            Mood::Swapping => {
                let other = self.draw(self.history.len().max(1));
                let other = self.history.keys().nth(other).cloned();
                other.and_then(|other| self.earlier(&other))
            }
            Mood::Damaging => true_one.as_ref().map(|value| {
                let (mut octets, bit) = (value.octets.to_vec(), self.entropy.u64() as usize);
                let index = bit / 8 % octets.len();
                octets[index] ^= 1 << (bit % 8);
                octets.into()
            }),
        };
        // Now and then it stays so.
        if self.draw(3) == 0 {
            match shown {
                None => self.values.remove(name),
                Some(octets) => {
                    self.keep(name, octets);
                    None
                }
            };
            return self.values.get(name).cloned();
        }
        let token = true_one.map_or(Token { start: self.start, number: 0 }, |value| value.token);
        shown.map(|octets| Value { octets, token })
    }

    /// Something that lay there before.
    fn earlier(&mut self, name: &str) -> Option<Rc<[u8]>> {
        let count = self.history.get(name)?.len();
        // Old things are as likely as those of a moment ago.
        let number = if self.draw(2) == 0 { self.draw(count) } else { count - 1 - self.draw(count.min(4)) };
        Some(Rc::clone(&self.history[name][number]))
    }

    /// Stores a value where none lies, or in place of the one with this token.
    pub(crate) fn put(&mut self, name: &str, octets: &Rc<[u8]>, token: Option<Token>, now: u64) -> Put {
        let mood = self.mood_now();
        // Who sees what is sent has it, whatever becomes of it.
        self.history.entry(name.to_owned()).or_default().push(Rc::clone(octets));
        match mood {
            Mood::Full => return Put::Refused,
            Mood::Silent => {
                match self.draw(3) {
                    0 => self.keep(name, Rc::clone(octets)),
                    1 => {
                        let when = now + 1 + self.draw(40) as u64;
                        self.delayed.push((when, name.to_owned(), Rc::clone(octets)));
                    }
                    _ => {}
                }
                return Put::Silence;
            }
            Mood::Losing if self.draw(3) == 0 => return Put::Stored,
            Mood::Honest | Mood::Losing | Mood::Repeating | Mood::Swapping | Mood::Damaging | Mood::Wild => {}
        }
        if self.values.get(name).map(|value| value.token) != token {
            return Put::Lost;
        }
        self.keep(name, Rc::clone(octets));
        Put::Stored
    }
}
