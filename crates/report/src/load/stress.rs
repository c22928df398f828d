//! The report of `authentick stress`: a table of seconds, and the lines that NtpStress ends with.
//!
//! What they say is defined here, as the technical note "NTP Server Capacity Testing" (Spectracom) does not:
//! - Average NTP Req/Sec: answers a second that passed every check.
//! - Total Requests: requests that were sent.
//! - Failed Requests: those without an answer in time, and those whose answer failed a check.
//! - Bad Stratum Level: those of them whose answer had stratum 0 or one above 15, whatever its leap indicator and
//!   timestamps say.
//!
//! A run that was interrupted says after how long, in a fifth line.

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::{Cause, Step};

/// A run at one rate, with what its user ordered.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StressReport<'a> {
    /// The server, as it was named.
    pub host: &'a str,
    /// Requests a second that were ordered.
    #[serde(rename = "ordered_rps")]
    pub rate: f64,
    /// For how long they were ordered.
    #[serde(rename = "ordered_seconds", serialize_with = "in_seconds")]
    pub ordered: Duration,
    /// Whether the run ended before that.
    #[serde(rename = "interrupted")]
    pub is_interrupted: bool,
    /// What came of it.
    pub step: &'a Step,
    /// What was sent, answered and failed until the end of each second.
    pub seconds: &'a [[u64; 3]],
}

fn in_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

impl StressReport<'_> {
    /// All of it.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "Server: {}\nRequests specified per second: {}\nTime duration (seconds): {}\n\n{}\n{}\n{}",
            self.host,
            self.rate,
            self.lasted(),
            table(self.seconds),
            causes(self.step),
            self.lines(),
        )
    }

    /// Its last lines.
    #[must_use]
    pub fn lines(&self) -> String {
        let tally = &self.step.tally;
        // A kiss is what the checks call an answer of stratum 0.
        let bad_stratum = tally.count_of(Cause::BadStratum) + tally.count_of(Cause::Kiss);
        let mut lines = format!(
            "Average NTP Req/Sec:\t{:.0}\nTotal Requests:\t{}\nFailed Requests:\t{}\nBad Stratum \
             Level:\t{bad_stratum}\n",
            self.step.answered_rps(),
            tally.sent,
            tally.lost + tally.invalid,
        );
        if self.is_interrupted {
            let ordered = self.ordered.as_secs_f64();
            writeln!(lines, "Interrupted:\tafter {} of {ordered} seconds", self.lasted())
                .expect("writing to a string cannot fail");
        }
        lines
    }

    /// For how many seconds requests were sent, without a fraction that nobody ordered.
    fn lasted(&self) -> String {
        let seconds = self.step.seconds.min(self.ordered.as_secs_f64());
        if self.is_interrupted { format!("{seconds:.3}") } else { seconds.to_string() }
    }
}

fn table(rows: &[[u64; 3]]) -> String {
    let mut text = format!("{:>6}  {:>10}  {:>10}  {:>10}\n", "second", "sent", "answered", "failed");
    let mut before = [0; 3];
    for (index, row) in rows.iter().enumerate() {
        let [sent, answered, failed] = std::array::from_fn(|column| row[column] - before[column]);
        writeln!(text, "{:>6}  {sent:>10}  {answered:>10}  {failed:>10}", index + 1)
            .expect("writing to a string cannot fail");
        before = *row;
    }
    text
}

/// How many requests failed for which reason; all of them together are the failed ones.
fn causes(step: &Step) -> String {
    let failed = step.tally.causes.iter().filter(|(cause, _)| !cause.is_skip());
    failed.map(|(cause, count)| format!("{cause}: {count} ({})\n", cause.meaning())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::record;

    #[test]
    fn rows_are_differences() {
        let text = table(&[[10, 8, 1], [25, 20, 3]]);
        assert!(text.ends_with(
            "     1          10           8           1\n     2          15          12           2\n"
        ));
    }

    #[test]
    fn run_that_was_interrupted_says_after_how_long() {
        let step = &record().steps[0];
        let ordered = Duration::from_secs(900);
        let whole = StressReport {
            host: "ntp.test",
            rate: 1000.0,
            ordered,
            is_interrupted: false,
            step,
            seconds: &[[10, 8, 1]],
        };
        assert_eq!(whole.lines().lines().count(), 4);
        assert!(whole.lines().contains(&format!("Total Requests:\t{}\n", step.tally.sent)));
        let cut = StressReport { is_interrupted: true, ..whole };
        let end = format!("Interrupted:\tafter {:.3} of 900 seconds\n", step.seconds);
        assert!(cut.text().starts_with("Server: ntp.test\n") && cut.text().ends_with(&end), "{}", cut.text());
    }
}
