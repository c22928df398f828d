//! Sentences about a load record that text and page share. Plain text: neither escaped nor typeset.

use super::ceiling::{Ip, LINKS_GBPS, fill, requests_per_second};
use super::{
    AntpParameters, Cause, Finding, Limit, LoadRecord, Operation, Parameters, Point, Search, Step, Tally,
    Verdict,
};
use crate::units::{capital, count, joined, microseconds, percent, plural, rate, ratio, seconds, trimmed};

/// Causes that the remark on a step names; what is left is only counted.
const CAUSE_COUNT: usize = 3;

/// A sending thread that has work for this share of the time has no more to give.
const BUSY_MIN: f64 = 0.9;

/// The percentiles of latency that are shown.
pub(super) const REPORTED: [Point; 7] =
    [Point::P50, Point::P90, Point::P95, Point::P99, Point::P999, Point::P9999, Point::Max];

/// Whether a path leads to the generator's own host, so that both share its processors and its clock.
pub(crate) fn shares_host(path: &str) -> bool {
    matches!(path, "loopback" | "local" | "veth")
}

/// How the load was shaped.
pub(super) fn shape(record: &LoadRecord) -> String {
    let parameters = &record.parameters;
    let arrivals = match (parameters.window, parameters.arrivals.as_str()) {
        (Some(window), _) => format!("closed loop, {window} in flight per worker"),
        (None, "constant") => "open loop, constant intervals".to_owned(),
        (None, "exponential") => "open loop, exponentially distributed intervals".to_owned(),
        (None, other) => other.to_owned(),
    };
    let Parameters { step_seconds, timeout_seconds, ke_timeout_seconds, .. } = *parameters;
    let mut parts = vec![
        arrivals,
        format!("{} of {} s", plural(record.steps.len() as u64, "step"), seconds(step_seconds)),
        plural(u64::from(parameters.clients), "client"),
        plural(u64::from(parameters.workers), "worker"),
    ];
    if parameters.antp.is_some() || record.operation() == Operation::Transfer {
        parts.push(format!("timeout {} s", seconds(timeout_seconds)));
    } else {
        parts.push(format!("timeout of a key exchange {} s", seconds(ke_timeout_seconds)));
    }
    if parameters.warm_up_seconds > 0.0 {
        parts.push(format!(
            "{} s of warm-up before each step, not counted",
            seconds(parameters.warm_up_seconds)
        ));
    }
    if let Some(share) = parameters.stop_at_loss {
        let ended = if record.collapsed { "ended" } else { "would have ended" };
        parts.push(format!("{ended} after two steps in a row that lost more than {} %", percent(share)));
    }
    if let Some(sources) = &parameters.sources {
        parts.push(format!("source addresses from {sources}"));
    }
    if parameters.replay_cookie {
        parts.push("one cookie of each client sent again and again, which no client does".to_owned());
    }
    parts.extend(parameters.antp.as_ref().map(antp_shape));
    if let Some(transfers) = parameters.transfers_per_exchange {
        let same = if parameters.same_cookie { " with the same cookie" } else { "" };
        parts.push(format!("{}{same} for each key exchange", plural(u64::from(transfers), "transfer")));
    }
    if parameters.background_rps > 0.0 {
        let from = match parameters.background_sources.join(", ") {
            sources if sources.is_empty() => sources,
            sources => format!(" from {sources}"),
        };
        let with = parameters.background_transfers.map_or_else(String::new, |transfers| {
            format!(" with {} each", plural(u64::from(transfers), "transfer"))
        });
        let rps = rate(parameters.background_rps);
        parts.push(format!("background load of {rps}/s{with}{from}, not measured"));
    }
    if !parameters.agents.is_empty() {
        parts.push(format!("sent by the agents {}", parameters.agents.join(", ")));
    }
    parts.join("; ")
}

/// How ANTP was used.
fn antp_shape(antp: &AntpParameters) -> String {
    let mut parts = vec![format!(
        "a certificate chain of {} octets, {} for a negotiation",
        count(u64::from(antp.chain_size)),
        plural(u64::from(antp.round_count), "request")
    )];
    if antp.replay {
        parts.push("static requests but for their transmit timestamps, which no client sends".to_owned());
    }
    if antp.separate_tag {
        parts.push(
            "tags in packets of their own, so that latency is that of the early packet if it is genuine"
                .to_owned(),
        );
    }
    parts.join("; ")
}

/// How long the client's own cryptography and the phases took in a step; `None` if that is not known.
pub(super) fn antp_times(step: &Step) -> Option<String> {
    let figures = step.antp.as_ref()?;
    let crypto = figures.client_crypto_us?;
    let share = figures
        .client_crypto_share
        .map_or_else(String::new, |share| format!(", {} % of its threads' time", percent(share)));
    let mut text = format!(
        "The client's own cryptography took {} us (median) of an operation{share}.",
        rounded(crypto.p50)
    );
    if let (Some(negotiation), Some(exchange), Some(time), Some(sum), Some(run)) = (
        figures.negotiation_us,
        figures.key_exchange_us,
        figures.time_us,
        figures.phases_us,
        step.tally.latency_us,
    ) {
        text += &format!(
            " Medians in us: negotiation {}, key exchange {}, time {}, the phases of a run added up {}, a run {}.",
            rounded(negotiation.p50),
            rounded(exchange.p50),
            rounded(time.p50),
            rounded(sum.p50),
            rounded(run.p50)
        );
    }
    if figures.early > 0 {
        text += &format!(
            " {} of {} answers are timed by their early packet.",
            count(figures.early),
            count(step.tally.answered)
        );
    }
    Some(text)
}

/// Microseconds to a tenth.
fn rounded(us: f64) -> f64 {
    (us * 10.0).round() / 10.0
}

/// The capacity with what it rests on; without a search, the most that a valid step answered.
pub(super) fn capacity(record: &LoadRecord) -> String {
    let what = record.operation().offered();
    if let Some(search) = record.search.as_ref().filter(|search| search.is_of_samples()) {
        return searched(what, search);
    }
    let Some(capacity) = &record.capacity else {
        return match record.highest_answered() {
            Some(step) => format!(
                "not searched for. The most that a valid step answered is {} {what} a second.",
                rate(step.answered_rps())
            ),
            None => "not searched for, and no valid step says anything about the server.".to_owned(),
        };
    };
    let search = record.search.as_ref();
    let lost = search.map_or_else(String::new, |search| {
        format!(" with at most {} % lost", trimmed(search.loss_max * 100.0, 4))
    });
    let found = match (capacity.at_least, capacity.below) {
        (Some(at_least), Some(below)) => {
            format!("from {} to {} {what} a second{lost}", rate(at_least), rate(below))
        }
        (Some(at_least), None) => format!("at least {} {what} a second{lost}", rate(at_least)),
        (None, Some(below)) => format!("not found; {}/s is too much", rate(below)),
        (None, None) => "not found".to_owned(),
    };
    let limit = match capacity.limited_by {
        Limit::Generator => "; the generator was the limit",
        Limit::Server => "; the server was the limit",
        Limit::Host => "; other work on the server's processor was the limit",
        Limit::Path => "; the path was the limit",
        Limit::Nothing if capacity.at_least.is_some() => "; no higher rate was allowed",
        Limit::Nothing | Limit::Unknown => "",
    };
    let remark = search
        .and_then(|search| search.remark.as_ref())
        .map_or_else(String::new, |remark| format!(" {remark}"));
    let lower = search.filter(|search| search.trial_count > 0).zip(capacity.at_least);
    let evidence = lower.map_or_else(String::new, evidence_of);
    format!("{found}{limit}.{evidence}{remark}")
}

/// What the lower end of a capacity of version 1 rests on.
fn evidence_of((search, lower): (&Search, f64)) -> String {
    format!(
        " {}/s held in {} of {}: the true loss there is {} with {} % confidence.",
        rate(lower),
        search.held_count,
        plural(u64::from(search.trial_count), "trial"),
        between(search.loss_low, search.loss_high),
        trimmed(search.confidence * 100.0, 1),
    )
}

/// The result of a search with the samples that it rests on.
fn searched(what: &str, search: &Search) -> String {
    let sample = |wanted: Finding| search.samples.iter().rev().find(|sample| sample.finding == wanted);
    let ends = [sample(Finding::Holds), sample(Finding::Exceeds)].into_iter().flatten().map(|sample| {
        format!(
            "at {}/s {} of {} held, and the true loss is {}",
            rate(sample.rate_rps),
            sample.held_count,
            plural(u64::from(sample.trial_count), "fresh trial"),
            between(sample.loss_low, sample.loss_high)
        )
    });
    let ends = joined(ends, "; ").map_or_else(String::new, |ends| format!(" {}.", capital(&ends)));
    format!(
        "{} Rates are of {what}, with at most {} % lost and {} % confidence.{ends}",
        search.remark.as_deref().unwrap_or_default(),
        (search.loss_max * 1e4).round() / 100.0,
        (search.confidence * 1000.0).round() / 10.0,
    )
}

/// An interval of shares: `between 0.02 % and 0.71 %`, or `at most 0.13 %` if it begins near nothing.
fn between(low: f64, high: f64) -> String {
    match (percent(low).as_str(), percent(high).as_str()) {
        (_, "<0.01") => "less than 0.01 %".to_owned(),
        ("0.00" | "<0.01", high) => format!("at most {high} %"),
        (low, high) => format!("between {low} % and {high} %"),
    }
}

/// The size of the largest request, in octets, and what it went over; `None` if that was TCP.
pub(super) fn largest_request(record: &LoadRecord) -> Option<(u32, Ip)> {
    let size = record.steps.iter().map(|step| step.request_size).max().filter(|&size| size > 0)?;
    Some((size, Ip::of(&record.address)))
}

/// How large the largest answer is, beside the largest request; `None` if there was none over UDP.
pub(super) fn answers(record: &LoadRecord) -> Option<String> {
    let size = record.steps.iter().map(|step| step.response_size).max().filter(|&size| size > 0)?;
    let times = largest_request(record).map_or_else(String::new, |(request, _)| {
        format!(", {} times as many as the largest request", ratio(f64::from(size) / f64::from(request)))
    });
    Some(format!("the largest answer has {size} octets of UDP payload{times}"))
}

/// How many of the largest request each link carries; `None` if it went over TCP or needs fragments.
pub(super) fn wires(record: &LoadRecord) -> Option<String> {
    let (size, ip) = largest_request(record)?;
    let ceilings: Option<Vec<String>> = LINKS_GBPS
        .into_iter()
        .map(|link| Some(format!("{link} GbE {}/s", rate(requests_per_second(link, size, ip)?))))
        .collect();
    Some(format!("at {size} octets over {} a link carries at most: {}", ip.name(), ceilings?.join(", ")))
}

/// How well the generator kept its times.
pub(super) fn generator(record: &LoadRecord) -> Option<String> {
    let largest = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max);
    let share = largest(&mut record.steps.iter().filter_map(|step| step.generator_busy_share));
    let lateness = largest(&mut record.steps.iter().filter_map(|step| Some(step.lateness_us?.p99)));
    let parts = [
        share
            .map(|share| format!("its busiest thread was busy for at most {:.0} % of a step", share * 100.0)),
        lateness.map(|us| {
            format!("in the worst step 99 % of the requests left at most {} late", microseconds(us))
        }),
    ];
    joined(parts.into_iter().flatten(), "; ")
}

/// Causes and their counts, the most frequent first.
pub(super) fn causes(tally: &Tally) -> Vec<(Cause, u64)> {
    let mut causes: Vec<_> =
        tally.causes.iter().filter(|&(_, &count)| count > 0).map(|(&cause, &count)| (cause, count)).collect();
    causes.sort_by_key(|&(cause, count)| (std::cmp::Reverse(count), cause));
    causes
}

/// All that failed, of every step.
pub(super) fn causes_of_run(steps: &[Step], tally: impl Fn(&Step) -> Option<&Tally>) -> Vec<(Cause, u64)> {
    let mut sum = Tally::default();
    for (&cause, &count) in steps.iter().filter_map(tally).flat_map(|tally| &tally.causes) {
        let total = sum.causes.entry(cause).or_default();
        *total = total.saturating_add(count);
    }
    causes(&sum)
}

/// `timeout 1,204, late 7, 3 others`.
fn top_causes(tally: &Tally) -> Option<String> {
    let causes = causes(tally);
    let (top, others) = causes.split_at(causes.len().min(CAUSE_COUNT));
    let mut parts: Vec<String> =
        top.iter().map(|&(cause, number)| format!("{cause} {}", count(number))).collect();
    if !others.is_empty() {
        parts.push(format!("{} others", count(others.iter().map(|&(_, count)| count).sum())));
    }
    joined(parts, ", ")
}

/// Why a step or a host's part says nothing about the server.
pub(crate) fn why(why_invalid: Option<&String>) -> &str {
    why_invalid.map_or("the generator did not do its part", String::as_str)
}

/// How the part of a sentence begins that tells what to do.
const IMPERATIVES: [&str; 6] = ["offer ", "use ", "free ", "repeat ", "lengthen ", "pin "];

/// A sentence, and what it says at its end to do about it: that is told once for a run, not in each row.
fn parted(sentence: &str) -> (&str, Option<&str>) {
    match sentence.rsplit_once("; ") {
        Some((facts, remedy)) if IMPERATIVES.iter().any(|verb| remedy.starts_with(verb)) => {
            (facts, Some(remedy))
        }
        Some(_) | None => (sentence, None),
    }
}

/// The reasons of a verdict, without remedies.
pub(super) fn facts_of(verdict: &Verdict) -> String {
    let facts: Vec<&str> = verdict.why.iter().map(|why| parted(why).0).collect();
    facts.join("; ")
}

/// What limited a step and the weightiest reason, or why it says nothing; `None` if nothing did.
fn verdict(step: &Step) -> Option<String> {
    let limit = step.limit.as_ref().filter(|verdict| verdict.by != Limit::Nothing).map(|verdict| {
        let why = verdict.why.first().map_or_else(String::new, |why| format!(": {}", parted(why).0));
        format!("{}{why}", verdict.by)
    });
    match (step.valid, limit) {
        (true, limit) => limit,
        (false, _) if step.loss_valid => {
            Some(format!("latency not known: {}", parted(why(step.why_invalid.as_ref())).0))
        }
        (false, Some(limit)) => Some(format!("INVALID: {limit}")),
        (false, None) => Some(format!("INVALID: {}", parted(why(step.why_invalid.as_ref())).0)),
    }
}

/// In which percentiles the wait before the send has a part that matters.
pub(super) fn spoilt(tally: &Tally) -> Option<String> {
    let parts = |point: &Point| tally.interval(*point).is_some_and(|found| found.parts());
    let found = REPORTED.into_iter().filter(parts).map(|point| point.to_string());
    joined(found, ", ").map(|points| format!("generator adds to {points}"))
}

/// What limited the generator's steps, and what helps, once for all of them; `None` if it limited none.
pub(super) fn advice(record: &LoadRecord) -> Option<String> {
    let by_generator =
        |step: &&Step| !step.valid || step.limit.as_ref().is_some_and(|limit| limit.by == Limit::Generator);
    let steps: Vec<&Step> = record.steps.iter().filter(by_generator).collect();
    let idle = |step: &Step| step.evidence.as_ref().and_then(|evidence| evidence.idle_share);
    let busy = |step: &&Step| idle(step).map(|idle| 1.0 - idle).or(step.generator_busy_share);
    let most = steps.iter().filter_map(busy).reduce(f64::max);
    if steps.is_empty() {
        return None;
    }
    let mut remedies: Vec<&str> = Vec::new();
    for step in &steps {
        let reasons = step.limit.iter().flat_map(|verdict| &verdict.why).chain(&step.why_invalid);
        for remedy in reasons.filter_map(|why| parted(why).1) {
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
    }
    let said =
        joined(remedies.into_iter().map(str::to_owned), "; ").map(|said| format!("What helps: {said}."));
    let Some(busy) = most else { return said };
    let busy_text = format!("{:.0} % of the time", busy * 100.0);
    if busy >= BUSY_MIN {
        return Some(said.unwrap_or_else(|| {
            format!("The generator's busiest thread had work {busy_text}: use more --workers, or agents.")
        }));
    }
    let remedy = match shares_host(&record.path) {
        true => {
            "Server and generator share this host: give each processors of its own (taskset), or send from another host"
        }
        false => "Free its processors, or pin it to others",
    };
    let own = format!(
        "The generator's busiest thread had work {busy_text} only, so more --workers do not help. {remedy}."
    );
    Some(own)
}

/// Remarks on a step, most serious first.
pub(super) fn remarks(step: &Step, ip: Ip) -> Vec<String> {
    let mut parts: Vec<String> = verdict(step).into_iter().chain(spoilt(&step.tally)).collect();
    parts.extend(step.remarks.iter().map(|remark| remark.trim_end_matches('.').to_owned()));
    parts.extend(top_causes(&step.tally));
    if let Some(other) = &step.accompanying
        && let Some(causes) = top_causes(other)
    {
        parts.push(format!("{}: {causes}", other.operation.plural()));
    }
    if step.tally.surplus > 0 {
        parts.push(plural(step.tally.surplus, "surplus datagram"));
    }
    if step.tally.negative_delays > 0 {
        parts.push(negative_delays(step.tally.negative_delays));
    }
    if step.request_size > 0
        && let Some((link, share)) = fill(step.sent_rps(), step.request_size, ip)
        && share >= 0.005
    {
        parts.push(format!("{:.0} % of {link} GbE", share * 100.0));
    }
    parts
}

/// How many responses claimed more time at the server than their exchange took.
pub(super) fn negative_delays(number: u64) -> String {
    format!("{} with a negative delay", plural(number, "response"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::record;

    #[test]
    fn remedy_is_told_once_and_not_in_rows() {
        let mut record = record();
        for step in &mut record.steps[1..] {
            step.limit = record_limit(
                "1 % of requests left 3.00 ms late or more; offer less, or use more --workers or hosts",
            );
            step.evidence.as_mut().unwrap().idle_share = Some(0.01);
        }
        let text = crate::load::text::summary(&record);
        assert_eq!(text.matches("use more --workers").count(), 1, "{text}");
        assert!(text.contains("What helps: offer less, or use more --workers or hosts."));
        assert!(!remarks(&record.steps[2], Ip::V4).concat().contains("offer less"));
    }

    #[test]
    fn idle_thread_that_is_late_needs_a_processor_and_no_workers() {
        let mut record = record();
        let step = &mut record.steps[3];
        step.limit = record_limit("1 % of requests left 3.00 ms late or more; use more --workers or hosts");
        step.evidence.as_mut().unwrap().idle_share = Some(0.96);
        let told = advice(&record).unwrap();
        assert!(
            told.contains("had work 4 % of the time only, so more --workers do not help. Free its"),
            "{told}"
        );
        record.path = "loopback".to_owned();
        assert!(advice(&record).unwrap().contains("share this host: give each processors of its own"));
        record.steps.truncate(3);
        assert_eq!(advice(&record), None, "the generator limited none");
    }

    fn record_limit(why: &str) -> Option<Verdict> {
        Some(Verdict { by: Limit::Generator, why: vec![why.to_owned()] })
    }
}
