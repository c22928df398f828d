//! Hours, their values, and the keys that follow from them: CFNTS's layout, without a disk, a server or a clock.
//!
//! ```text
//! authentick-cfnts-keys 1
//! seals 1763719200
//! value 1763719200 <hexadecimal digits>
//! ```
//!
//! What a server keeps on its disk: the hour whose key seals, and the octets that memcached had for each hour. An hour
//! is named by the Unix seconds at which it began. They are no keys without the master key, which is not in this file.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::RangeInclusive;
use std::path::Path;

use authentick_crypto::kdf::hmac_sha256;
use authentick_crypto::wipe;
use authentick_fleet::memcached;
use authentick_proto::keyset::{CookieKey, KeySet};
use zeroize::Zeroizing;

use super::super::emit_octets;
use super::super::error::StoreError;
use crate::config::Cfnts;
use crate::guarded::{self, Secrecy, without_mark};
use crate::symmetric::notes;

/// Hours whose values are in memcached, before and after the present one.
pub(super) const PAST: u64 = Cfnts::PAST as u64;
const AHEAD: u64 = 2;

/// Octets of a value. CFNTS's have 16, and its servers take any number.
pub(super) const VALUE_SIZES: RangeInclusive<usize> = 16..=256;
/// Octets of a value that is drawn here.
pub(super) const VALUE_SIZE: usize = 16;
/// Octets of a file of what is kept: two windows of the longest values take less than half of it.
pub(super) const FILE_SIZE_MAX: u64 = 64 << 10;

const MAGIC: &str = "authentick-cfnts-keys 1";
const SECONDS: u64 = Cfnts::PERIOD.as_secs();
const MASTER_SIZE_MIN: usize = 16;
const MASTER_SIZE_MAX: u64 = 1024;

/// An hour of the day's clock: how many there were since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hour(u64);

impl Hour {
    /// The one in which this instant is, in Unix seconds.
    pub(super) const fn of(seconds: u64) -> Self {
        Hour(seconds / SECONDS)
    }

    /// The one that begins at this instant, in Unix seconds; `None` if none does.
    const fn at(seconds: u64) -> Option<Self> {
        if seconds.is_multiple_of(SECONDS) { Some(Hour::of(seconds)) } else { None }
    }

    /// When it begins, in Unix seconds.
    pub(super) const fn epoch(self) -> u64 {
        self.0 * SECONDS
    }

    /// The identifier of its key. CFNTS takes the seconds of [`Hour::epoch`]; here the next key has the next number, so
    /// that cookies of hours ahead are told from those of strangers.
    pub(super) const fn id(self) -> u32 {
        self.0 as u32
    }

    pub(super) const fn later(self, count: u64) -> Self {
        Hour(self.0.saturating_add(count))
    }

    /// Those of which memcached is to have values in this one, the first first.
    pub(super) fn window(self) -> impl Iterator<Item = Hour> {
        (self.0.saturating_sub(PAST)..=self.later(AHEAD).0).map(Hour)
    }

    /// Whether another one is among those.
    pub(super) fn has(self, other: Self) -> bool {
        other <= self.later(AHEAD) && other.later(PAST) >= self
    }

    /// Where memcached has its value.
    pub(super) fn name(self) -> memcached::Name {
        memcached::Name::new(&format!("/nts/nts-keys/{}", self.epoch())).expect("a number is no long name")
    }
}

impl fmt::Display for Hour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&notes::time(self.epoch()))
    }
}

/// The secret that makes a key of a value.
#[derive(Clone)]
pub(crate) struct Master(Zeroizing<Vec<u8>>);

impl fmt::Debug for Master {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Master")
    }
}

impl Master {
    /// The octets of the file at `path`, all of them.
    ///
    /// # Errors
    /// If it cannot be read, is open to others, or is no such file by its size.
    pub(crate) fn read(path: &Path) -> Result<Self, StoreError> {
        let octets = guarded::read(path, Secrecy::GroupReads, MASTER_SIZE_MAX)
            .map_err(|error| StoreError::Master(path.to_owned(), error))?;
        match octets.len() {
            0..MASTER_SIZE_MIN => Err(StoreError::ShortMaster(path.to_owned(), octets.len())),
            _ => Ok(Master(octets)),
        }
    }

    fn key(&self, hour: Hour, value: &[u8]) -> CookieKey {
        let mut octets = hmac_sha256(&self.0, &[value]);
        let key = CookieKey::new(hour.id(), hour.epoch(), &octets);
        wipe(&mut octets);
        key
    }
}

/// The values that a server has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// The hour whose key seals, once there is one.
    pub(super) seals: Option<Hour>,
    pub(super) values: BTreeMap<Hour, Vec<u8>>,
}

impl Kept {
    /// The last hour up to `hour` whose key may seal: the one after it is there to open before it seals.
    pub(super) fn fit(&self, hour: Hour) -> Option<Hour> {
        self.values.keys().rev().skip(1).find(|kept| **kept <= hour).copied()
    }

    /// The last hour that has a value.
    pub(super) fn last(&self) -> Option<Hour> {
        self.values.keys().next_back().copied()
    }

    /// The same with another hour whose key seals, and without those that do not open any more.
    pub(super) fn sealing(&self, hour: Hour) -> Self {
        let mut values = self.values.clone();
        values.retain(|kept, _| kept.later(PAST) >= hour);
        Kept { seals: Some(hour), values }
    }

    /// The keys; `None` if none seals.
    pub(super) fn keys(&self, master: &Master) -> Option<KeySet> {
        let seals = self.seals?;
        let key = |hour: &Hour| master.key(*hour, &self.values[hour]);
        let mut later = self.values.range(seals.later(1)..).map(|(hour, _)| hour);
        let earlier = self.values.range(..seals).rev().map(|(hour, _)| hour);
        let next = later.next()?;
        let expect = "hours differ, and are no more than a set has room for";
        let set = KeySet::from_keys(
            key(next),
            key(self.values.get_key_value(&seals)?.0),
            earlier.take(PAST as usize).map(key),
            seals.epoch(),
        )
        .expect(expect);
        // All that is there opens, also for hosts whose clocks are ahead.
        let Some(second) = later.next() else { return Some(set) };
        let beside = KeySet::from_keys(key(second), key(next), later.map(key), 0).expect(expect);
        Some(set.opening(Some(&beside), []))
    }

    pub(super) fn emit(&self) -> String {
        let mut text = format!("{MAGIC}\n");
        let mut write = || -> fmt::Result {
            if let Some(hour) = self.seals {
                writeln!(text, "seals {}", hour.epoch())?;
            }
            self.values.iter().try_for_each(|(hour, value)| {
                write!(text, "value {} ", hour.epoch())?;
                emit_octets(&mut text, value)
            })
        };
        write().expect("writing to a string cannot fail");
        text
    }

    /// What a text says, which is at `place`.
    ///
    /// # Errors
    /// The first line that is wrong, and what with it.
    pub(super) fn parse(place: &str, text: &[u8]) -> Result<Self, StoreError> {
        let wrong = |line, problem| StoreError::Line(place.to_owned(), line, problem);
        let text = std::str::from_utf8(without_mark(text)).map_err(|_| wrong(0, "file is not text"))?;
        let mut kept = Kept::default();
        for (index, line) in text.lines().enumerate() {
            let wrong = |problem| wrong(index + 1, problem);
            let hour = |text: &str| text.parse().ok().and_then(Hour::at).ok_or_else(|| wrong("no hour"));
            let words: Vec<&str> = line.split(' ').collect();
            match (index, &words[..]) {
                (0, _) if line == MAGIC => {}
                (0, _) => return Err(wrong("the file does not begin with its kind and version")),
                (_, ["seals", at]) if kept.seals.is_none() => kept.seals = Some(hour(at)?),
                (_, ["value", at, digits]) => {
                    let value = value(digits).ok_or_else(|| wrong("no 16 to 256 octets"))?;
                    if kept.values.insert(hour(at)?, value).is_some() {
                        return Err(wrong("a second value of this hour"));
                    }
                }
                _ => return Err(wrong("neither a value nor the hour that seals")),
            }
        }
        let has_all = |hour: Hour| kept.values.contains_key(&hour) && kept.last() > Some(hour);
        match text.is_empty() || !kept.seals.is_none_or(has_all) || kept.values.len() > VALUE_COUNT_MAX {
            true => Err(wrong(text.lines().count(), "the file ends without what it needs")),
            false => Ok(kept),
        }
    }
}

/// Values that are kept, at most: those of two windows, of the hour that seals and of the one that is to.
const VALUE_COUNT_MAX: usize = 2 * (PAST + 1 + AHEAD) as usize;

fn value(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return None;
    }
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let value: Vec<u8> = digits.as_bytes().chunks_exact(2).map(octet).collect::<Option<_>>()?;
    VALUE_SIZES.contains(&value.len()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn master() -> Master {
        Master(Zeroizing::new(vec![
            0xb4, 0x54, 0x64, 0xbd, 0x94, 0x1a, 0xc2, 0x3e, 0xb5, 0x21, 0xca, 0xe9, 0xbc, 0xbd, 0xbf, 0x76,
        ]))
    }

    /// What is kept of these hours, as CFNTS's servers would have them.
    fn kept(hours: impl IntoIterator<Item = u64>, seals: u64) -> Kept {
        let values = hours.into_iter().map(|hour| (Hour(hour), vec![hour as u8; 16]));
        Kept { seals: Some(Hour(seals)), values: values.collect() }
    }

    /// The master key is that of CFNTS's own tests; the key is what Python's `hmac` and `hashlib` make of it.
    #[test]
    fn key_and_name_of_an_hour_are_those_of_cfnts() {
        let hour = Hour::of(1_699_999_200 + 3599);
        assert_eq!(hour.epoch(), 1_699_999_200);
        assert_eq!(hour.name().as_str(), "/nts/nts-keys/1699999200");
        let value: Vec<u8> = (0..16).collect();
        let key = master().key(hour, &value);
        let digits: String = key.key().expose().iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(digits, "64ad0ac12b9bd1a8174745a4d7a36b3917891aa0c643765a43b1d468923165b6");
        assert_eq!(key.created(), 1_699_999_200);
        assert_eq!((hour.later(1).id(), hour.window().count()), (key.id() + 1, 27));
        let ends = hour.window().map(Hour::epoch).collect::<Vec<_>>();
        assert_eq!((ends[0], ends[26]), (1_699_999_200 - 24 * 3600, 1_699_999_200 + 2 * 3600));
    }

    #[test]
    fn hour_seals_if_a_later_one_opens_and_all_that_is_kept_opens() {
        let all = kept(100..=126, 124);
        let set = all.keys(&master()).unwrap();
        assert_eq!((set.current().id(), set.rotated(), set.keys().count()), (124, 124 * 3600, 26));
        for hour in 0..200 {
            assert_eq!(set.find(hour).is_some(), (100..=126).contains(&hour), "{hour}");
        }
        assert_eq!(all.fit(Hour(124)), Some(Hour(124)));
        // The last one has none after it that would be there to open.
        assert_eq!((all.fit(Hour(126)), all.fit(Hour(999))), (Some(Hour(125)), Some(Hour(125))));
        assert_eq!(all.fit(Hour(99)), None);
        let gap = kept([100, 101, 104], 101);
        assert_eq!((gap.fit(Hour(103)), gap.fit(Hour(104))), (Some(Hour(101)), Some(Hour(101))));
        assert_eq!(gap.keys(&master()).unwrap().keys().nth(1).unwrap().1.id(), 104);
        assert!(kept([100], 100).keys(&master()).is_none());
        assert!(Kept { seals: None, ..all }.keys(&master()).is_none());
    }

    #[test]
    fn what_has_sealed_opens_for_a_day() {
        let mut kept = kept(100..=126, 124);
        for hour in 125..=130 {
            kept.values.insert(Hour(hour + 2), vec![1; 16]);
            kept = kept.sealing(Hour(hour));
            let set = kept.keys(&master()).unwrap();
            assert!(set.find(hour as u32 - 24).is_some() && set.find(hour as u32 - 25).is_none(), "{hour}");
        }
        assert_eq!(kept.values.len(), 27);
    }

    #[test]
    fn text_is_read_as_it_was_and_every_cut_is_told() {
        for kept in [kept(100..=126, 124), Kept::default(), Kept { seals: None, ..kept([5], 5) }] {
            assert_eq!(Kept::parse("place", kept.emit().as_bytes()).unwrap(), kept);
        }
        let good = kept(100..=126, 124).emit();
        for (bad, problem) in [
            (String::new(), "line 0: the file ends"),
            ("authentick-cookie-keys 1\n".to_owned(), "line 1: the file does not begin"),
            (good.replace("seals 446400", "seals 446401"), "line 2: no hour"),
            (good.replace("seals 446400", "seals 453600"), "the file ends without what it needs"),
            (good.replace("value 360000", "value 363600"), "line 4: a second value"),
            (good.replace("value 360000 6464", "value 360000 64"), "line 3: no 16 to 256 octets"),
            (good.replace("value 360000 64", "value 360000 6g"), "line 3: no 16 to 256 octets"),
            (format!("{good}hello\n"), "line 30: neither"),
            (kept(0..60, 10).emit(), "the file ends without"),
        ] {
            let error = Kept::parse("place", bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        assert!(Kept::parse("place", &[0xFF; 9]).unwrap_err().to_string().contains("not text"));
    }
}
