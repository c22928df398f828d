//! Which lines of the log are written: none floods it, and none that is left out goes untold.
//!
//! A cause is the place in the source that a line comes from. After a quiet time, each may write thirty lines at
//! once; in the long run, one a minute. Those that are left out are counted. The next line of their cause says how many
//! they were; if none comes, [`Causes::overdue`] does, once the minute is over.
//!
//! **Invariant:** memory is bounded by the number of such places in the program.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use log::Record;

use crate::allowance::{Bucket, LINES};

/// How long what was left out may stay untold.
const TOLD_AFTER: Duration = Duration::from_secs(60);

/// A file, and a line in it.
type Place = (&'static str, u32);

/// What has been written and left out, by cause.
#[derive(Debug, Default)]
pub struct Causes(Mutex<HashMap<Place, Cause>>);

#[derive(Debug)]
struct Cause {
    lines: Bucket,
    left_out: Option<LeftOut>,
}

/// Lines of one cause that were not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// How many.
    pub count: u64,
    /// The newest.
    pub line: String,
    /// Its level.
    pub level: log::Level,
    told_at: Instant,
}

impl Causes {
    /// Whether a line is written at `now`, and how many like it were left out since the last that was.
    pub fn admit(&self, record: &Record<'_>, now: Instant) -> Option<u64> {
        // Whoever gives no place of a line that lasts is limited with all others that do not.
        let place = (record.file_static().unwrap_or(""), record.line().unwrap_or(0));
        let mut causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full = || Cause { lines: Bucket::full(LINES, now), left_out: None };
        let cause = causes.entry(place).or_insert_with(full);
        if !cause.lines.take(now, 1.0) {
            let count = cause.left_out.take().map_or(1, |left_out| left_out.count + 1);
            let (line, level) = (record.args().to_string(), record.level());
            cause.left_out = Some(LeftOut { count, line, level, told_at: now + TOLD_AFTER });
            return None;
        }
        Some(cause.left_out.take().map_or(0, |left_out| left_out.count))
    }

    /// What was left out and has not been told for a minute.
    pub fn overdue(&self, now: Instant) -> Vec<LeftOut> {
        let mut causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        causes
            .values_mut()
            .filter_map(|cause| cause.left_out.take_if(|left_out| left_out.told_at <= now))
            .collect()
    }

    /// What was left out and has not been told.
    pub fn rest(&self) -> Vec<LeftOut> {
        let mut causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        causes.values_mut().filter_map(|cause| cause.left_out.take()).collect()
    }
}

#[cfg(test)]
mod tests {
    use log::Level;

    use super::*;

    fn admit(causes: &Causes, line: u32, words: &str, now: Instant) -> Option<u64> {
        let mut record = Record::builder();
        record.level(Level::Warn).file_static(Some("a.rs")).line(Some(line));
        causes.admit(&record.args(format_args!("{words}")).build(), now)
    }

    #[test]
    fn flood_of_one_cause_is_a_burst_and_one_a_minute_and_hides_no_other() {
        let (causes, start) = (Causes::default(), Instant::now());
        // A thousand a second, for ten minutes.
        let mut told = 0;
        let mut written = 0;
        for millisecond in 0..600_000 {
            if let Some(left_out) = admit(&causes, 7, "flood", start + Duration::from_millis(millisecond)) {
                written += 1;
                told += left_out;
            }
        }
        assert_eq!(written, u64::from(LINES.most) + 9);
        let end = start + Duration::from_secs(600);
        assert_eq!(admit(&causes, 8, "another", end), Some(0));
        let rest = causes.rest();
        assert_eq!(written + told + rest[0].count, 600_000, "each is written or told");
        assert_eq!(causes.rest(), []);
    }

    #[test]
    fn what_was_left_out_is_told_within_a_minute_even_if_nothing_follows() {
        let (causes, start) = (Causes::default(), Instant::now());
        for number in 0..LINES.most + 3 {
            admit(&causes, 7, &format!("file {number}"), start);
        }
        assert_eq!(causes.overdue(start + TOLD_AFTER - Duration::from_millis(1)), []);
        let overdue = causes.overdue(start + TOLD_AFTER);
        assert_eq!((overdue.len(), overdue[0].count, overdue[0].line.as_str()), (1, 3, "file 32"));
        assert_eq!(causes.overdue(start + TOLD_AFTER * 2), []);
        assert_eq!(admit(&causes, 7, "file", start + TOLD_AFTER), Some(0), "a minute gives one line");
        assert_eq!(admit(&causes, 7, "file", start + TOLD_AFTER), None);
    }

    #[test]
    fn clock_that_stands_still_or_steps_back_breaks_nothing() {
        let (causes, start) = (Causes::default(), Instant::now());
        admit(&causes, 7, "x", start + TOLD_AFTER);
        assert_eq!(admit(&causes, 7, "x", start), Some(0));
    }
}
