//! What cannot be in a load record: figures that contradict each other, and shares beyond 0 and 1.
//!
//! A record may come from anywhere, and a gate relies on it. Each problem is told with its step and field.

use super::{Capacity, Cause, HostPart, LoadRecord, Search, Step, Stray, Tally};
use crate::units::count;

const DAMAGED: &str = "the file was changed or is damaged";

/// Every figure of a record that follows from others, or has bounds.
pub(super) fn record(record: &LoadRecord) -> Result<(), String> {
    record.capacity.as_ref().map_or(Ok(()), capacity)?;
    record.search.as_ref().map_or(Ok(()), search)?;
    for (index, step) in record.steps.iter().enumerate() {
        self::step(step).map_err(|problem| format!("step {}: {problem}; {DAMAGED}", index + 1))?;
    }
    Ok(())
}

fn capacity(capacity: &Capacity) -> Result<(), String> {
    let Capacity { at_least, below, .. } = *capacity;
    for (field, rate) in [("at_least", at_least), ("below", below)] {
        if let Some(rate) = rate.filter(|rate| !(0.0..f64::INFINITY).contains(rate)) {
            return Err(format!("capacity.{field}: {rate} is no rate; {DAMAGED}"));
        }
    }
    match (at_least, below) {
        (Some(at_least), Some(below)) if at_least >= below => {
            Err(format!("capacity: at_least is {at_least}, and below is no more, {below}; {DAMAGED}"))
        }
        _ => Ok(()),
    }
}

fn search(search: &Search) -> Result<(), String> {
    shares([
        ("loss_max", Some(search.loss_max)),
        ("confidence", Some(search.confidence)),
        ("loss_low", Some(search.loss_low)),
        ("loss_high", Some(search.loss_high)),
    ])
    .map_err(|problem| format!("search.{problem}; {DAMAGED}"))
}

fn step(step: &Step) -> Result<(), String> {
    let Step { tally, accompanying, background, background_accompanying, evidence, .. } = step;
    let Step { server, antp, hosts, .. } = step;
    tally.check()?;
    let named = |field: &'static str| move |problem: String| format!("{field}: {problem}");
    for (field, tally) in [
        ("accompanying", accompanying),
        ("background", background),
        ("background_accompanying", background_accompanying),
    ] {
        tally.as_ref().map_or(Ok(()), Tally::check).map_err(named(field))?;
    }
    shares([("generator_busy_share", step.generator_busy_share)])?;
    if let Some(evidence) = evidence {
        let known = [
            ("idle_share", evidence.idle_share),
            ("preempted_share", evidence.preempted_share),
            ("steal_share", evidence.steal_share),
        ];
        shares(known).map_err(|problem| format!("evidence.{problem}"))?;
    }
    if let Some(server) = server {
        let known = [
            ("busiest_thread_share", server.busiest_thread_share),
            ("waiting_share", server.waiting_share),
            ("throttled_share", server.throttled_share),
            ("stopped_share", server.stopped_share),
        ];
        shares(known).map_err(|problem| format!("server.{problem}"))?;
    }
    if let Some(antp) = antp {
        shares([("client_crypto_share", antp.client_crypto_share)])
            .map_err(|problem| format!("antp.{problem}"))?;
    }
    hosts.iter().try_for_each(|part| {
        let HostPart { name, tally, busy_share, .. } = part;
        let result = tally.check().and_then(|()| shares([("busy_share", *busy_share)]));
        result.map_err(|problem| format!("host {name:?}: {problem}"))
    })
}

/// Shares lie between 0 and 1.
fn shares<const N: usize>(fields: [(&str, Option<f64>); N]) -> Result<(), String> {
    let wrong = |share: &f64| !(0.0..=1.0).contains(share);
    match fields.into_iter().find_map(|(field, share)| Some((field, share.filter(wrong)?))) {
        Some((field, share)) => Err(format!("{field}: {share} is no share from 0 to 1")),
        None => Ok(()),
    }
}

impl Tally {
    /// Whether its counts and distributions fit each other; if it has no distributions, they are not missed.
    ///
    /// # Errors
    /// A sentence without its end that names the field.
    pub fn check(&self) -> Result<(), String> {
        if !self.adds_up() {
            return Err("its counts do not add up".to_owned());
        }
        let (latency, from_send) = (self.histograms.latency_ns.count(), self.histograms.from_send_ns.count());
        let offset = self.histograms.offset_ns.count();
        if latency != self.answered && latency > 0 {
            return Err(self.unlike("histograms.latency_ns", latency));
        }
        for (field, values) in [("histograms.from_send_ns", from_send), ("histograms.offset_ns", offset)] {
            if values > self.answered {
                return Err(self.unlike(field, values));
            }
        }
        if self.negative_delays > self.answered.saturating_sub(offset) {
            return Err(self.unlike(
                "negative_delays, histograms.offset_ns",
                self.negative_delays.saturating_add(offset),
            ));
        }
        if self.backlog.middle.max(self.backlog.end) > self.answered {
            return Err(self.unlike("backlog", self.backlog.middle.max(self.backlog.end)));
        }
        if self.answered == 0 && (self.latency_us.is_some() || self.from_send_us.is_some()) {
            return Err("latency_us: there are percentiles, and nothing was answered".to_owned());
        }
        self.check_strays()
    }

    /// A datagram that belongs to no operation is of one kind. Records of version 1 have no kinds.
    fn check_strays(&self) -> Result<(), String> {
        let of = |test: fn(Stray) -> bool| {
            let counts = self.strays.iter().filter(|&(&stray, _)| test(stray)).map(|(_, &count)| count);
            counts.fold(0, u64::saturating_add)
        };
        let known = of(|stray| !matches!(stray, Stray::Obstacle | Stray::Unknown));
        let most = known.saturating_add(of(|stray| stray == Stray::Unknown));
        if self.strays.is_empty() || (known..=most).contains(&self.surplus) {
            return Ok(());
        }
        Err(format!("strays: {} datagrams by kind, and surplus says {}", count(most), count(self.surplus)))
    }

    fn unlike(&self, field: &str, values: u64) -> String {
        format!("{field}: {} values, and {} were answered", count(values), count(self.answered))
    }

    /// Whether scheduled = sent + skipped, sent = answered + lost + invalid, and every failure has one cause; of one
    /// that is not known nobody knows which of the three it is.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let sum = |values: &[u64]| values.iter().try_fold(0u64, |sum, &value| sum.checked_add(value));
        let left = |whole: u64, test: fn(Cause) -> bool| {
            let known = self.causes.iter().filter(|&(&cause, _)| cause != Cause::Unknown && test(cause));
            let counts: Vec<u64> = known.map(|(_, &count)| count).collect();
            whole.checked_sub(sum(&counts)?)
        };
        let unknown = [
            left(self.skipped, Cause::is_skip),
            left(self.invalid, Cause::is_invalid),
            left(self.lost, |cause| !cause.is_skip() && !cause.is_invalid()),
        ];
        let unknown: Option<Vec<u64>> = unknown.into_iter().collect();
        sum(&[self.sent, self.skipped]) == Some(self.scheduled)
            && sum(&[self.answered, self.lost, self.invalid]) == Some(self.sent)
            && unknown.and_then(|counts| sum(&counts)) == Some(self.count_of(Cause::Unknown))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::load::tests::record;
    use crate::stored::Error;

    /// What is said of the golden record with one value changed.
    fn said(pointer: &str, value: Value) -> String {
        let mut whole: Value = serde_json::from_str(&record().to_json()).unwrap();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        whole.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"))[field] = value;
        match LoadRecord::from_json(&whole.to_string()) {
            Ok(_) => String::new(),
            Err(Error::Unsound(problem)) => problem,
            Err(error) => panic!("{pointer}: {error}"),
        }
    }

    #[test]
    fn figures_that_contradict_each_other_are_named_with_step_and_field() {
        for (pointer, value, problem) in [
            (
                "/steps/2/lost",
                json!(1137),
                "step 3: its counts do not add up; the file was changed or is damaged",
            ),
            ("/steps/0/accompanying/answered", json!(99), "step 1: accompanying: its counts do not add up"),
            (
                "/steps/0/background_accompanying",
                json!({"operation": "key-exchange", "scheduled": 1, "skipped": 0, "sent": 1, "answered": 0,
                    "lost": 0, "invalid": 0, "causes": {}, "latency_us": null, "offset_us": null}),
                "step 1: background_accompanying: its counts do not add up",
            ),
            (
                "/steps/1/histograms/latency_ns",
                json!([[140_000, 3999]]),
                "step 2: histograms.latency_ns: 3,999 values, and 4,000 were answered; the file",
            ),
            (
                "/steps/1/histograms/from_send_ns",
                json!([[140_000, 4001]]),
                "step 2: histograms.from_send_ns: 4,001 values, and 4,000 were answered",
            ),
            (
                "/steps/1/histograms/offset_ns",
                json!([[0, 4001]]),
                "step 2: histograms.offset_ns: 4,001 values",
            ),
            (
                "/steps/2/strays",
                json!({"duplicate": 4}),
                "step 3: strays: 4 datagrams by kind, and surplus says 3",
            ),
            ("/steps/2/strays", json!({"obstacle": 3}), "step 3: strays: 0 datagrams"),
            (
                "/steps/0/generator_busy_share",
                json!(1.5),
                "step 1: generator_busy_share: 1.5 is no share from 0 to 1",
            ),
            (
                "/steps/0/evidence",
                json!({"idle_share": -0.1}),
                "step 1: evidence.idle_share: -0.1 is no share",
            ),
            (
                "/steps/0/server/busiest_thread_share",
                json!(2),
                "step 1: server.busiest_thread_share: 2 is no share",
            ),
            (
                "/steps/3/hosts/1/busy_share",
                json!(7),
                "step 4: host \"198.18.0.12:4470\": busy_share: 7 is no share",
            ),
            ("/search/loss_max", json!(1.01), "search.loss_max: 1.01 is no share"),
            ("/capacity/below", json!(2800.0), "capacity: at_least is 2800, and below is no more, 2800"),
            ("/capacity/at_least", json!(-1.0), "capacity.at_least: -1 is no rate"),
        ] {
            let said = said(pointer, value);
            assert!(said.starts_with(problem) && said.ends_with("damaged"), "{pointer}: {said}");
        }
    }

    #[test]
    fn what_fits_is_read() {
        for (pointer, value) in [
            ("/steps/1/histograms/from_send_ns", json!([[130_000, 4000]])),
            ("/steps/1/histograms/latency_ns", json!([])),
            ("/steps/2/strays", json!({"duplicate": 2, "malformed": 1, "obstacle": 9})),
            ("/steps/0/evidence", json!({"idle_share": 0.0, "steal_share": 1.0})),
            ("/capacity/below", Value::Null),
        ] {
            assert_eq!(said(pointer, value), "", "{pointer}");
        }
    }

    #[test]
    fn kinds_of_a_later_version_count_as_unknown() {
        let mut value: Value = serde_json::from_str(&record().to_json()).unwrap();
        // 1,100 timeouts, 38 late, 8 bad tags and 4 NTS NAKs.
        value["steps"][2]["causes"] =
            json!({"timeout": 1100, "eaten": 30, "lost-in-thought": 8, "bad-tag": 8, "odd": 4});
        value["steps"][2]["strays"] = json!({"ghost": 2, "duplicate": 1});
        value["steps"][2]["limit"] = json!({"by": "moon", "why": []});
        let read = LoadRecord::from_json(&value.to_string()).unwrap();
        let tally = &read.steps[2].tally;
        assert_eq!(tally.count_of(Cause::Unknown), 42);
        assert_eq!(tally.strays, [(Stray::Duplicate, 1), (Stray::Unknown, 2)].into());
        assert_eq!(read.steps[2].limit.as_ref().unwrap().by, crate::load::Limit::Unknown);
        assert_eq!(LoadRecord::from_json(&read.to_json()).unwrap(), read);
        // What is known may not exceed what failed in that way, whatever the unknown ones are.
        value["steps"][2]["causes"] = json!({"timeout": 1139, "odd": 11});
        let error = LoadRecord::from_json(&value.to_string()).unwrap_err().to_string();
        assert!(error.contains("step 3: its counts do not add up"), "{error}");
    }
}
