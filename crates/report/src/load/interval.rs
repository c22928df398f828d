//! Percentiles of latency as intervals, in which the server's own lie.
//!
//! Latency that counts from the instant at which a request was due holds every wait before the send, also one that the
//! generator alone is to blame for. Latency from the send hides a wait that the server caused. What the server did to a
//! client that sends on time lies between both.

use std::fmt;

use super::{Point, Tally};
use crate::units::microseconds;

/// From this ratio of its ends on an interval is wide enough for the generator to be named beside it.
const RATIO_MAX: f64 = 1.1;

/// A percentile of latency, counted in both ways, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// From the send; equal to the other end where only that is known.
    pub from_send_us: f64,
    /// From the instant at which the request was due; never less.
    pub from_due_us: f64,
}

impl Tally {
    /// One point of the latencies, such as the 99th percentile; `None` if nothing was answered, or an older record
    /// lacks the point.
    #[must_use]
    pub fn interval(&self, point: Point) -> Option<Interval> {
        let from_due_us = self.latency_us?.at(point)?;
        let from_send_us = self.from_send_us.and_then(|latency| latency.at(point)).unwrap_or(from_due_us);
        Some(Interval { from_send_us: from_send_us.min(from_due_us), from_due_us })
    }
}

impl Interval {
    /// Whether the ends part by more than a tenth: what is shown may be the generator's.
    #[must_use]
    pub fn parts(&self) -> bool {
        self.from_due_us > self.from_send_us * RATIO_MAX
    }
}

impl fmt::Display for Interval {
    /// `120.0 us` if both ends look alike, else `118.0-120.0 us` or `980.0 us-1.20 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (microseconds(self.from_send_us), microseconds(self.from_due_us));
        match (from.split_once(' '), to.split_once(' ')) {
            _ if from == to => f.pad(&to),
            (Some((number, unit)), Some((_, same))) if unit == same => f.pad(&format!("{number}-{to}")),
            _ => f.pad(&format!("{from}-{to}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Percentiles;

    fn tally(from_send_us: Option<f64>, from_due_us: Option<f64>) -> Tally {
        let all = |us: f64| Percentiles { p99: us, ..Percentiles::default() };
        Tally { latency_us: from_due_us.map(all), from_send_us: from_send_us.map(all), ..Tally::default() }
    }

    fn interval(from_send_us: Option<f64>, from_due_us: Option<f64>) -> Option<Interval> {
        tally(from_send_us, from_due_us).interval(Point::P99)
    }

    #[test]
    fn interval_is_as_wide_as_the_wait_before_the_send() {
        let both = interval(Some(118.0), Some(120.0)).unwrap();
        assert_eq!((both.from_send_us, both.from_due_us, both.parts()), (118.0, 120.0, false));
        assert!(interval(Some(100.0), Some(110.1)).unwrap().parts());
        assert!(!interval(Some(100.0), Some(109.9)).unwrap().parts());
    }

    #[test]
    fn without_the_send_both_ends_are_from_the_due_instant() {
        let one = interval(None, Some(120.0)).unwrap();
        assert_eq!((one.from_send_us, one.from_due_us, one.parts()), (120.0, 120.0, false));
        assert_eq!(interval(None, None), None);
        // Whatever a file holds, an interval does not run backwards.
        assert_eq!(interval(Some(500.0), Some(120.0)).unwrap().from_send_us, 120.0);
    }

    #[test]
    fn unit_stands_once_if_both_ends_have_it() {
        for (from_send, from_due, text) in [
            (118.0, 120.0, "118.0-120.0 us"),
            (120.01, 120.02, "120.0 us"),
            (980.0, 1200.0, "980.0 us-1.20 ms"),
            (1000.0, 1200.0, "1.00-1.20 ms"),
        ] {
            assert_eq!(interval(Some(from_send), Some(from_due)).unwrap().to_string(), text);
        }
    }
}
