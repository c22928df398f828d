//! Leap seconds, from the list of the IERS that the time zone database comes with: `leap-seconds.list`.
//!
//! Where an operator vouches for the clock, nobody else says when a leap second comes. The list does, half a year
//! ahead, and says until when it holds. A second is announced throughout the day before it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use authentick_crypto::kdf::sha1;
use authentick_net::clock::unix_seconds;
use authentick_wire::header::Leap;
use thiserror::Error;

use crate::config::{Config, ConfigError, LeapFile};
use crate::guarded::{self, Secrecy, Unreadable};
use crate::validity::date;

/// Octets of a list; that of 2026 has 5 thousand.
const SIZE_MAX: u64 = 1 << 20;
/// From 1900, which the list counts from, to 1970.
const UNIX_EPOCH_SECONDS: u64 = 2_208_988_800;
const DAY_SECONDS: u64 = 86_400;
/// How long before its end a list should have been replaced: the next is published five months before that.
const WARNING_SECONDS: u64 = 30 * DAY_SECONDS;

/// What is wrong with a list.
#[derive(Debug, Error)]
pub(crate) enum LeapError {
    /// It cannot be read.
    #[error("cannot read it: {0}")]
    Io(#[from] Unreadable),
    /// A line, counted from 1, is none of a list.
    #[error("line {0}: no line of a list of leap seconds")]
    Line(usize),
    /// Leap seconds are not in their order, or are longer than a second.
    #[error("line {0}: it is no leap second after the one before it")]
    Order(usize),
    /// It does not say until when it holds, or has no checksum.
    #[error("it has no line that begins with {0:?}")]
    Missing(&'static str),
    /// It is not the text that its checksum was made of.
    #[error("it is damaged: its checksum is of another text")]
    Damaged,
}

/// A list; the default is one without leap seconds, which never ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeapSeconds {
    /// The end of its validity, in Unix seconds.
    end: Option<u64>,
    /// The first second after each leap second, in Unix seconds, and whether one was inserted.
    leaps: Vec<(u64, bool)>,
}

impl LeapSeconds {
    /// Reads a list.
    ///
    /// # Errors
    /// If it cannot be read, is longer than a mebioctet, or is not whole.
    pub(crate) fn read(path: &Path) -> Result<Self, LeapError> {
        let octets = guarded::read(path, Secrecy::Public, SIZE_MAX)?;
        // Comments may be in any encoding; everything else is digits.
        LeapSeconds::parse(&String::from_utf8_lossy(guarded::without_mark(&octets)))
    }

    fn parse(text: &str) -> Result<Self, LeapError> {
        let (mut update, mut end, mut checksum) = (None, None, None);
        let mut digits = String::new();
        let mut offsets: Vec<(u64, i64)> = Vec::new();
        let mut leaps = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = || LeapError::Line(number);
            if let Some(value) = line.strip_prefix("#$") {
                update = Some(value.trim().parse::<u64>().map_err(|_| wrong())?);
            } else if let Some(value) = line.strip_prefix("#@") {
                end = Some(value.trim().parse::<u64>().map_err(|_| wrong())?);
            } else if let Some(value) = line.strip_prefix("#h") {
                checksum = Some(words_of(value).ok_or_else(wrong)?);
            } else if !line.starts_with('#') && !line.trim().is_empty() {
                let mut words = line.split('#').next().unwrap_or("").split_whitespace();
                let (Some(at), Some(offset), None) = (words.next(), words.next(), words.next()) else {
                    return Err(wrong());
                };
                // The checksum is of the digits as they stand there.
                digits.extend([at, offset]);
                let at: u64 = at.parse().map_err(|_| wrong())?;
                let offset: i64 = offset.parse().map_err(|_| wrong())?;
                if let Some(&(last_at, last_offset)) = offsets.last() {
                    if at <= last_at || offset.abs_diff(last_offset) != 1 || at < UNIX_EPOCH_SECONDS {
                        return Err(LeapError::Order(number));
                    }
                    leaps.push((at - UNIX_EPOCH_SECONDS, offset > last_offset));
                }
                offsets.push((at, offset));
            }
        }
        let update = update.ok_or(LeapError::Missing("#$"))?;
        let end = end.ok_or(LeapError::Missing("#@"))?;
        let checksum = checksum.ok_or(LeapError::Missing("#h"))?;
        let mut text = String::new();
        write!(text, "{update}{end}{digits}").expect("writing to a string cannot fail");
        if sha1(&[text.as_bytes()]) != checksum {
            return Err(LeapError::Damaged);
        }
        Ok(LeapSeconds { end: Some(end.saturating_sub(UNIX_EPOCH_SECONDS)), leaps })
    }

    /// What is announced at an instant in Unix seconds: nothing, once the list has ended.
    //= rfc5905#7.3-2
    pub(crate) fn at(&self, now: u64) -> Leap {
        let is_near = |&&(after, _): &&(u64, bool)| now < after && after - now <= DAY_SECONDS;
        match self.leaps.iter().find(is_near) {
            _ if self.end.is_some_and(|end| end <= now) => Leap::None,
            Some((_, true)) => Leap::Insert,
            Some((_, false)) => Leap::Delete,
            None => Leap::None,
        }
    }

    /// A list with one leap second, before this instant.
    #[cfg(test)]
    pub(crate) fn with(after: u64, is_inserted: bool) -> Self {
        LeapSeconds { end: None, leaps: vec![(after, is_inserted)] }
    }

    /// The end of its validity, in Unix seconds.
    pub(crate) const fn end(&self) -> Option<u64> {
        self.end
    }

    /// What is wrong with its age, if anything is.
    pub(crate) fn ageing(&self, now: u64) -> Option<Ageing> {
        let end = self.end?;
        match now {
            _ if end <= now => Some(Ageing::Ended),
            _ if end - now <= WARNING_SECONDS => Some(Ageing::EndsSoon),
            _ => None,
        }
    }
}

/// What is wrong with the age of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ageing {
    /// It ends within a month.
    EndsSoon,
    /// It has ended.
    Ended,
}

/// How often the file is read.
const INTERVAL: Duration = Duration::from_secs(3600);

/// Reads the list again now and then, as packages replace it, and tells what is wrong with it, once for each change.
#[derive(Debug)]
pub(crate) struct LeapKeeper {
    path: PathBuf,
    in_force: Arc<ArcSwap<LeapSeconds>>,
    next: Instant,
    told: Option<String>,
}

impl LeapKeeper {
    /// Reads the list for the first time.
    ///
    /// # Errors
    /// If the configuration names it, and it is not whole.
    pub(crate) fn start(config: &Config, now: Instant) -> Result<Option<Self>, ConfigError> {
        let Some(file) = &config.leap_seconds else { return Ok(None) };
        let read = LeapSeconds::read(&file.path);
        let read = if file.is_named { Ok(read.map_err(|error| wrong(config, file, error))?) } else { read };
        let (path, in_force) = (file.path.clone(), Arc::new(ArcSwap::from_pointee(LeapSeconds::default())));
        let mut keeper = LeapKeeper { path, in_force, next: now + INTERVAL, told: None };
        keeper.take(read, unix_seconds());
        Ok(Some(keeper))
    }

    /// The list that holds.
    pub(crate) fn in_force(&self) -> Arc<ArcSwap<LeapSeconds>> {
        Arc::clone(&self.in_force)
    }

    /// Whether it is time to read the file.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Reads the file. What cannot be read leaves the list as it was.
    pub(crate) fn look(&mut self, now: Instant) {
        self.next = now + INTERVAL;
        self.take(LeapSeconds::read(&self.path), unix_seconds());
    }

    fn take(&mut self, read: Result<LeapSeconds, LeapError>, unix_seconds: u64) {
        let path = self.path.display();
        let problem = match read {
            Ok(list) => {
                let (ageing, end) = (list.ageing(unix_seconds), list.end().unwrap_or(0));
                self.in_force.store(Arc::new(list));
                let end = date(i64::try_from(end).unwrap_or(i64::MAX));
                ageing.map(|ageing| match ageing {
                    Ageing::EndsSoon => {
                        format!("{path} ends on {end}; no leap second is announced from then on")
                    }
                    Ageing::Ended => format!("{path} has ended, on {end}: no leap second is announced"),
                })
            }
            Err(error) if self.in_force.load().end().is_none() => {
                Some(format!("{path}: {error}: no leap second is announced"))
            }
            Err(error) => Some(format!("{path}: {error}; what it said before holds")),
        };
        if let Some(problem) = problem.as_ref().filter(|problem| self.told.as_ref() != Some(problem)) {
            log::warn!("{problem}; {REMEDY}");
        }
        self.told = problem;
    }
}

const REMEDY: &str =
    "upgrade the package tzdata, or have server.leap-seconds name a list that is kept up to date";

fn wrong(config: &Config, file: &LeapFile, error: LeapError) -> ConfigError {
    let is_permission = matches!(&error, LeapError::Io(error) if error.is_permission());
    let is_passing = matches!(&error, LeapError::Io(error) if error.may_pass());
    let remedy = "name a whole leap-seconds.list, or leave it out for that of the package tzdata";
    config
        .wrong("server.leap-seconds", file.path.display(), error, remedy)
        .of_rights(is_permission)
        .of_passing(is_passing)
}

/// Five words of hexadecimal digits: leading zeros may be missing.
fn words_of(text: &str) -> Option<[u8; 20]> {
    let mut octets = [0; 20];
    let mut words = text.split_whitespace();
    for place in octets.as_chunks_mut::<4>().0 {
        *place = u32::from_str_radix(words.next()?, 16).ok()?.to_be_bytes();
    }
    words.next().is_none().then_some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2017-01-01.
    const LAST: u64 = 1_483_228_800;

    /// A list with these lines of data, which ends with 2026, and its checksum.
    fn list(data: &str) -> String {
        let (update, end) = ("3960835200", "4007577600");
        let digits: String =
            data.lines().flat_map(|line| line.split('#').next().unwrap().split_whitespace()).collect();
        let hash = sha1(&[update.as_bytes(), end.as_bytes(), digits.as_bytes()]);
        let words: Vec<String> =
            hash.as_chunks::<4>().0.iter().map(|word| format!("{:x}", u32::from_be_bytes(*word))).collect();
        format!("#\tText.\n#$\t{update}\n#@\t{end}\n#\n{data}\n#h\t{}\n", words.join(" "))
    }

    const DATA: &str = "2272060800 10 # 1 Jan 1972\n2287785600 11 # 1 Jul 1972\n3692217600\t37\t# 1 Jan 2017";

    fn parsed(data: &str) -> LeapSeconds {
        LeapSeconds::parse(&list(data)).unwrap()
    }

    #[test]
    fn list_of_this_host_s_time_zone_database_is_understood() {
        let path = Path::new("/usr/share/zoneinfo/leap-seconds.list");
        let Ok(list) = LeapSeconds::read(path) else {
            assert!(!path.exists(), "{:?}", LeapSeconds::read(path));
            return authentick_lab::skip::skip(&format!("there is no {}; install tzdata", path.display()));
        };
        assert!(list.leaps.len() >= 27 && list.leaps.contains(&(LAST, true)), "{list:?}");
        assert!(list.end().unwrap() > 1_700_000_000);
    }

    #[test]
    fn encoding_of_comments_does_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list");
        let data = DATA.replace("3692217600\t37", "3692217600 12");
        let text = list(&data);
        let comment = b"\xef\xbb\xbf# Universit\xe9\n";
        std::fs::write(&file, [comment, text.as_bytes()].concat()).unwrap();
        assert_eq!(LeapSeconds::read(&file).unwrap(), parsed(&data));
        std::fs::write(&file, [b"\xe9\n", text.as_bytes()].concat()).unwrap();
        assert!(matches!(LeapSeconds::read(&file), Err(LeapError::Line(1))));
    }

    //= rfc5905#7.3-2
    #[test]
    fn second_is_announced_on_its_day_alone() {
        let data = DATA.replace("3692217600\t37", "3692217600 12");
        let list = parsed(&data);
        for (now, leap) in [
            (LAST - DAY_SECONDS - 1, Leap::None),
            (LAST - DAY_SECONDS, Leap::Insert),
            (LAST - 1, Leap::Insert),
            (LAST, Leap::None),
        ] {
            assert_eq!(list.at(now), leap, "{now}");
        }
        let negative = parsed(&data.replace("3692217600 12", "3692217600 10"));
        assert_eq!(negative.at(LAST - 1), Leap::Delete);
        assert_eq!(LeapSeconds::default().at(LAST - 1), Leap::None);
    }

    #[test]
    fn list_is_warned_of_a_month_before_its_end_and_announces_nothing_after_it() {
        let (data, end) = (DATA.replace("37", "12"), 4_007_577_600 - UNIX_EPOCH_SECONDS);
        let list = parsed(&data);
        assert_eq!(list.end(), Some(end));
        assert_eq!(list.ageing(end - WARNING_SECONDS - 1), None);
        assert_eq!(list.ageing(end - WARNING_SECONDS), Some(Ageing::EndsSoon));
        assert_eq!(list.ageing(end), Some(Ageing::Ended));
        let late = parsed("2272060800 10\n4007664000 11");
        assert_eq!(late.at(end - 1), Leap::None, "it is two days ahead");
        assert_eq!(late.at(end + DAY_SECONDS - 1), Leap::None, "an old list is no word");
        assert_eq!(LeapSeconds::default().ageing(u64::MAX), None);
    }

    #[test]
    fn list_that_is_not_whole_is_refused_and_the_place_named() {
        let data = DATA.replace("37", "12");
        let whole = list(&data);
        let problem = |text: &str| LeapSeconds::parse(text).unwrap_err().to_string();
        assert!(problem("").contains("#$"));
        assert!(problem(&whole[..whole.len() - 50]).contains("#h"), "cut off");
        assert!(problem(&whole.replace("2287785600 11", "2287785601 11")).contains("damaged"));
        assert!(problem(&whole.replace("2287785600 11", "2287785600")).contains("line 6"));
        assert!(problem(&whole.replace("2287785600 11", "soon 11")).contains("line 6"));
        assert!(problem(&list("2287785600 11\n2272060800 12")).contains("line 6"));
        assert!(problem(&list("2272060800 10\n2287785600 12")).contains("line 6"), "two seconds at once");
        assert!(problem(&whole.replace("#@\t", "#@\tx")).contains("line 3"));
        assert!(problem(&whole.replace("#h\t", "#h\t0 ")).contains("line 8"));
    }
}
