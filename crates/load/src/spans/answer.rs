//! What the endpoint answers, and the server's times without what its clock costs.
//!
//! A server of an earlier version tells sums alone, and nothing of its clock: they are taken as they are.

use std::net::SocketAddr;

use authentick_generator::selection::{Ranked, rank};
use authentick_report::load::span_rows::{KE_STAGES, NTP_STAGES, Timed};
use serde::{Deserialize, Deserializer};

/// What one reading brought.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) clock_ns: Option<u64>,
    pub(super) every: Option<u32>,
    pub(super) next: Next,
    pub(super) ntp: Vec<NtpTimes>,
    pub(super) ke: Vec<KeTimes>,
}

/// Where the next reading goes on: the number of the first record that was not shown, of each kind.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Next {
    pub(super) ntp: u64,
    pub(super) ke: u64,
}

/// The server's times of a request for time, without the clock's cost if that is known.
#[derive(Clone, Debug)]
pub(super) struct NtpTimes {
    pub(super) source: SocketAddr,
    pub(super) origin: u64,
    pub(super) batch_size: u32,
    pub(super) d_sntp_ns: u64,
    pub(super) d_snts_ns: u64,
    /// Absent of an earlier server.
    pub(super) stages: Option<[Timed; NTP_STAGES.len()]>,
}

impl Ranked for NtpTimes {
    fn rank(&self) -> u64 {
        rank(self.source, Some(self.origin))
    }
}

/// The same of a key exchange.
#[derive(Clone, Debug)]
pub(super) struct KeTimes {
    pub(super) source: SocketAddr,
    pub(super) d_ske_from_accept_ns: u64,
    pub(super) stages: Option<[Timed; KE_STAGES.len()]>,
}

impl Ranked for KeTimes {
    fn rank(&self) -> u64 {
        rank(self.source, None)
    }
}

impl Answer {
    /// Reads the endpoint's JSON.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let shown: Shown = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let Shown { clock_ns, every, next, ntp, ke } = shown;
        let ntp = ntp.into_iter().map(|record| record.times(clock_ns)).collect::<Result<_, _>>()?;
        let ke = ke.into_iter().map(|record| record.times(clock_ns)).collect::<Result<_, _>>()?;
        Ok(Answer { clock_ns, every, next, ntp, ke })
    }
}

/// What the endpoint shows.
#[derive(Debug, Deserialize)]
struct Shown {
    clock_ns: Option<u64>,
    every: Option<u32>,
    next: Next,
    ntp: Vec<NtpRecord>,
    ke: Vec<KeRecord>,
}

#[derive(Debug, Deserialize)]
struct NtpRecord {
    source: SocketAddr,
    #[serde(deserialize_with = "hexadecimal")]
    origin: u64,
    #[serde(default)]
    batch_size: u32,
    d_sntp_ns: u64,
    d_snts_ns: u64,
    /// Start of the batch, and end of each stage.
    instants_ns: Option<[u64; NTP_STAGES.len() + 1]>,
    counts: Option<Counts>,
}

/// Packets that were worked on in each stage.
#[derive(Debug, Deserialize)]
struct Counts {
    parse: u64,
    admit: u64,
    open: u64,
    verify: u64,
    fresh: u64,
    build: u64,
    seal: u64,
}

#[derive(Debug, Deserialize)]
struct KeRecord {
    source: SocketAddr,
    d_ske_from_accept_ns: u64,
    stages_ns: Option<KeStages>,
}

#[derive(Debug, Deserialize)]
struct KeStages {
    handshake: u64,
    choose: u64,
    export: u64,
    cookies: u64,
    response: u64,
}

/// A stage that took `whole_ns`, one reading of the clock included, for each of `count`.
const fn timed(whole_ns: u64, clock_ns: u64, count: u64) -> Timed {
    match count {
        0 => Timed { raw_ns: 0, ns: 0 },
        _ => Timed { raw_ns: whole_ns / count, ns: whole_ns.saturating_sub(clock_ns) / count },
    }
}

impl NtpRecord {
    fn times(self, clock_ns: Option<u64>) -> Result<NtpTimes, String> {
        let NtpRecord { source, origin, batch_size, d_sntp_ns, d_snts_ns, instants_ns, counts } = self;
        let Some(clock_ns) = clock_ns else {
            return Ok(NtpTimes { source, origin, batch_size, d_sntp_ns, d_snts_ns, stages: None });
        };
        let (Some(instants_ns), Some(counts)) = (instants_ns, counts) else {
            return Err(format!("the request of {source} has no stages"));
        };
        let Counts { parse, admit, open, verify, fresh, build, seal } = counts;
        let counts = [parse, admit, open, verify, fresh, build, seal];
        let stages: [Timed; NTP_STAGES.len()] = std::array::from_fn(|index| {
            timed(instants_ns[index + 1].saturating_sub(instants_ns[index]), clock_ns, counts[index])
        });
        let [parse, _, open, verify, _, build, seal] = stages;
        let d_sntp: Timed = [parse, build].into_iter().sum();
        let d_snts: Timed = [open, verify, seal].into_iter().sum();
        Ok(NtpTimes {
            source,
            origin,
            batch_size,
            d_sntp_ns: d_sntp.ns,
            d_snts_ns: d_snts.ns,
            stages: Some(stages),
        })
    }
}

impl KeRecord {
    fn times(self, clock_ns: Option<u64>) -> Result<KeTimes, String> {
        let KeRecord { source, d_ske_from_accept_ns, stages_ns } = self;
        let Some(clock_ns) = clock_ns else {
            return Ok(KeTimes { source, d_ske_from_accept_ns, stages: None });
        };
        let Some(KeStages { handshake, choose, export, cookies, response }) = stages_ns else {
            return Err(format!("the key exchange of {source} has no stages"));
        };
        let stages = [handshake, choose, export, cookies, response].map(|ns| timed(ns, clock_ns, 1));
        let d_ske: Timed = stages[..4].iter().copied().sum();
        Ok(KeTimes { source, d_ske_from_accept_ns: d_ske.ns, stages: Some(stages) })
    }
}

/// A timestamp as the endpoint writes it, in hexadecimal digits.
fn hexadecimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let digits = String::deserialize(deserializer)?;
    u64::from_str_radix(&digits, 16).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: &str = r#""next": { "ntp": 1, "ke": 1 }"#;

    #[test]
    fn clock_s_cost_is_subtracted_once_from_each_stage_and_nothing_falls_below_zero() {
        let text = format!(
            r#"{{ "clock_ns": 20, "every": 64, {NEXT},
                 "ntp": [{{ "source": "192.0.2.1:9", "origin": "ff", "batch_size": 4, "d_sntp_ns": 1,
                    "d_snts_ns": 1, "instants_ns": [1000, 1100, 1110, 1310, 1520, 1600, 1700, 1730],
                    "counts": {{ "parse": 4, "admit": 4, "open": 2, "verify": 2,
                        "fresh": 0, "build": 4, "seal": 1 }} }}],
                 "ke": [{{ "source": "192.0.2.1:8", "d_ske_from_accept_ns": 1,
                    "stages_ns": {{ "handshake": 900, "choose": 15, "export": 300,
                        "cookies": 60, "response": 40 }} }}] }}"#
        );
        let answer = Answer::parse(&text).unwrap();
        assert_eq!((answer.clock_ns, answer.every, answer.next.ke), (Some(20), Some(64), 1));
        let (ntp, ke) = (&answer.ntp[0], &answer.ke[0]);
        let pairs = |stages: &[Timed]| stages.iter().map(|time| (time.raw_ns, time.ns)).collect::<Vec<_>>();
        let expected = [(25, 20), (2, 0), (100, 90), (105, 95), (0, 0), (25, 20), (30, 10)];
        assert_eq!(pairs(&ntp.stages.unwrap()), expected);
        assert_eq!((ntp.d_sntp_ns, ntp.d_snts_ns, ntp.batch_size), (20 + 20, 90 + 95 + 10, 4));
        assert_eq!(pairs(&ke.stages.unwrap()), [(900, 880), (15, 0), (300, 280), (60, 40), (40, 20)]);
        assert_eq!(ke.d_ske_from_accept_ns, 880 + 280 + 40);
    }

    #[test]
    fn server_of_an_earlier_version_is_taken_at_its_word() {
        let ntp = r#"{ "source": "192.0.2.1:9", "origin": "1f", "batch_size": 1, "d_sntp_ns": 50, "d_snts_ns": 300,
            "instants_ns": [0, 1, 2, 3, 4, 5, 6, 7] }"#;
        let ke = r#"{ "source": "192.0.2.1:8", "d_ske_from_accept_ns": 900, "d_ske_from_request_ns": 500 }"#;
        let answer = Answer::parse(&format!(r#"{{ {NEXT}, "ntp": [{ntp}], "ke": [{ke}] }}"#)).unwrap();
        assert_eq!((answer.clock_ns, answer.every), (None, None));
        assert_eq!((answer.ntp[0].origin, answer.ntp[0].d_snts_ns), (0x1f, 300));
        assert!(answer.ntp[0].stages.is_none() && answer.ke[0].stages.is_none());
        assert_eq!(answer.ke[0].d_ske_from_accept_ns, 900);
        // One that tells what its clock costs, and no stages, lies.
        for (ntp, ke) in [(ntp, ""), ("", ke)] {
            let text = format!(r#"{{ "clock_ns": 9, {NEXT}, "ntp": [{ntp}], "ke": [{ke}] }}"#);
            let problem = Answer::parse(&text).unwrap_err();
            assert!(problem.contains("of 192.0.2.1:") && problem.contains("no stages"), "{problem}");
        }
    }
}
