//! What became here of what section 4.2 of the paper says of its Table 1.
//!
//! The paper's cells are unknown but for one, which is of another machine: what is compared is what the text concludes
//! from them, ratios and orders.

use super::compare::{Compared, Ratio};
use super::figures::Which;
use super::plan::Measure;
use super::report::{ALL_PHASES, RATIOS};
use super::{AntpRecord, Level, Path, Phase, Subject, Suite};
use crate::published::antp::{
    EXCHANGE_ECDH_OVER_RSA, EXCHANGE_LATENCY_RSA_OVER_ECDH, PLAIN_OVER_TIME, TIME_LATENCY_INCREASE,
};
use crate::study::Task;
use crate::study::tally::{Entry, Judged, Tally, Verdict, missing};
use crate::units::{listed, percent};

/// A link is full from this share on: what is left has no room for another request.
pub(super) const FULL: f64 = 0.95;
const NOTES: [&str; 2] = [
    "What trials allow goes from the least of the one and the most of the other to the reverse; one trial alone allows \
     nothing. Published figures are taken with half a unit of their last digit.",
    "Table 1\u{2019}s rates and latencies are of an Intel Core i7-4770 and mostly unknown to us, and the extrapolation \
     to a pool multiplies one of them: they are beside ours, and not compared.",
];

/// A published figure, and half a unit of its last digit.
#[derive(Clone, Copy, Debug)]
struct Published {
    value: f64,
    half: f64,
}

/// Everything that the text says of Table 1.
pub(super) fn tally(record: &AntpRecord, tasks: &[Task]) -> Tally {
    let exchange = |suite| Subject::new(Phase::Exchange, suite);
    let negotiation = |suite| Subject::new(Phase::Negotiation, suite);
    let near = "The published figure lies within what our trials allow, and 1 does not.";
    let above = "It is above 1 here too, in whatever trials are taken.";
    let throughput = |over, under, published: Option<Published>| {
        let judged = judge(record.throughput_ratio(over, under), published);
        judged.unwrap_or_else(|| missing(tasks, |id| is_throughput_of(id, [over, under])))
    };
    let latency = |over, under, level, published: Option<Published>| {
        let judged = judge(record.latency_ratio(over, under, level), published);
        judged.unwrap_or_else(|| missing(tasks, |id| is_latency_of(id, [over, under], level)))
    };
    let of = |value, half| Some(Published { value, half });
    let add = |place: &str, claim: &str, judged| Entry::new(place, RATIOS, claim, judged);
    let [ecdh, rsa] = [Suite::Ecdh, Suite::Rsa];
    let mut entries = vec![add(
        "Throughput, plain over time synchronisation: 1.6",
        near,
        throughput(Subject::PLAIN, Subject::TIME, of(PLAIN_OVER_TIME, 0.05)),
    )];
    for ((level, increase), load) in Level::ALL.into_iter().zip(TIME_LATENCY_INCREASE).zip(["50 %", "90 %"]) {
        entries.push(add(
            &format!("Latency of time synchronisation over plain at {load}: {:.2}", 1.0 + increase),
            near,
            latency(Subject::TIME, Subject::PLAIN, level, of(1.0 + increase, 0.005)),
        ));
    }
    entries.extend([
        add(
            "Throughput of key exchanges, ECDH over RSA: 7.54",
            near,
            throughput(exchange(ecdh), exchange(rsa), of(EXCHANGE_ECDH_OVER_RSA, 0.005)),
        ),
        add(
            "Latency of key exchanges at 90 %, RSA over ECDH: 2.9",
            near,
            latency(exchange(rsa), exchange(ecdh), Level::Most, of(EXCHANGE_LATENCY_RSA_OVER_ECDH, 0.05)),
        ),
        add(
            "Throughput of negotiations, ECDH over RSA: above 1",
            above,
            throughput(negotiation(ecdh), negotiation(rsa), None),
        ),
        add(
            "Latency of negotiations at 90 %, ECDH over RSA: above 1",
            above,
            latency(negotiation(ecdh), negotiation(rsa), Level::Most, None),
        ),
        add(
            "Negotiations fill a link of 1 Gbit/s",
            "With each suite they fill at least 95 % of such a link here.",
            link(record).unwrap_or_else(|| missing(tasks, is_behind_the_link)),
        ),
    ]);
    entries.push(Entry::new(
        "A run of all phases takes longer than its phases",
        ALL_PHASES,
        "With each suite, path and load that was measured the mean run is longer than the sum of its phases.",
        runs(record).unwrap_or_else(|| missing(tasks, is_of_runs)),
    ));
    Tally { what: "results that section 4.2 tells of Table 1", entries, notes: NOTES.to_vec() }
}

/// The verdict on a ratio that was published as a figure, or as above one; `None` if it was not measured.
fn judge(compared: Compared, published: Option<Published>) -> Option<Judged> {
    let ratio = match compared {
        Compared::Missing => return None,
        Compared::Withheld(why) => return Some((Verdict::CouldNot, format!("Not compared: {why}."))),
        Compared::Found(ratio) => ratio,
    };
    let text = ratio.text();
    let Ratio { least, most, trials, .. } = ratio;
    if trials < 2 {
        let why = format!("Ours is {text} in one trial, and nobody knows how sure that is.");
        return Some((Verdict::CouldNot, why));
    }
    let is_within = |Published { value, half }| least <= value + half && value - half <= most;
    Some(match published {
        Some(published) if is_within(published) && ratio.is_clear() => {
            (Verdict::Reproduced, format!("Ours is {text}."))
        }
        Some(published) if is_within(published) => (
            Verdict::CouldNot,
            format!("Ours is {text}, which allows no difference at all as well as what was published."),
        ),
        Some(Published { value, .. }) => {
            let order = match ((least > 1.0) == (value > 1.0), ratio.is_clear()) {
                (_, false) => "trials do not carry that there is a difference at all",
                (true, true) => "the order is the same",
                (false, true) => "the order is the other one",
            };
            (Verdict::Differs, format!("Ours is {text}; {order}."))
        }
        None if least > 1.0 => (Verdict::Reproduced, format!("Ours is {text}.")),
        None if most < 1.0 => (Verdict::Differs, format!("Ours is {text}: the other order.")),
        None => (Verdict::CouldNot, format!("Ours is {text}, which carries no order.")),
    })
}

/// Whether negotiations fill the link; `None` if nobody measured that.
fn link(record: &AntpRecord) -> Option<Judged> {
    let shares = Suite::ALL.map(|suite| {
        let (share, _) = record.link_share(Subject::new(Phase::Negotiation, suite))?;
        Some((suite, share))
    });
    let [Some(ecdh), Some(rsa)] = shares else { return None };
    let is_full = [ecdh, rsa].iter().all(|(_, share)| *share >= FULL);
    let told = [ecdh, rsa].map(|(suite, share)| format!("{} % with {}", percent(share), suite.name()));
    let verdict = if is_full { Verdict::Reproduced } else { Verdict::Differs };
    Some((verdict, format!("Ours fill {} of it.", listed(told))))
}

/// Whether runs take longer than their phases; `None` without a run.
fn runs(record: &AntpRecord) -> Option<Judged> {
    let places = [Path::Short, Path::Long].into_iter().flat_map(|path| Level::ALL.map(|level| (path, level)));
    let all = Suite::ALL.into_iter().flat_map(|suite| places.clone().map(move |place| (suite, place)));
    let found: Vec<f64> = all
        .filter_map(|(suite, (path, level))| record.complete(Which::Valid, suite, level, path))
        .map(|complete| complete.difference_us())
        .collect();
    let longer = found.iter().filter(|us| **us > 0.0).count();
    let verdict = if longer == found.len() { Verdict::Reproduced } else { Verdict::Differs };
    (!found.is_empty())
        .then(|| (verdict, format!("Ours are longer in {longer} of {} such rows.", found.len())))
}

fn is_throughput_of(id: &str, subjects: [Subject; 2]) -> bool {
    match Measure::of(id) {
        Some(Measure::Throughput(subject, path) | Measure::Search(subject, path)) => {
            path == Path::Short && subjects.contains(&subject)
        }
        Some(Measure::Primitives | Measure::Latency(..)) | None => false,
    }
}

fn is_latency_of(id: &str, subjects: [Subject; 2], of: Level) -> bool {
    match Measure::of(id) {
        Some(Measure::Latency(subject, level, path)) => {
            path == Path::Short && level == of && subjects.contains(&subject)
        }
        Some(Measure::Primitives | Measure::Throughput(..) | Measure::Search(..)) | None => {
            is_throughput_of(id, subjects)
        }
    }
}

fn is_behind_the_link(id: &str) -> bool {
    matches!(Measure::of(id), Some(Measure::Throughput(_, Path::Gigabit) | Measure::Search(_, Path::Gigabit)))
}

fn is_of_runs(id: &str) -> bool {
    matches!(Measure::of(id), Some(Measure::Latency(subject, ..)) if subject.phase == Phase::Complete)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{plan, record};
    use super::*;
    use crate::study::tally::tests::verdict_on;
    use crate::study::{End, Outcome};

    const PLAIN: &str = "Throughput, plain over time synchronisation: 1.6";
    const EXCHANGES: &str = "Throughput of key exchanges, ECDH over RSA: 7.54";

    fn on(record: &AntpRecord, place: &str) -> Judged {
        verdict_on(&tally(record, &plan().tasks), place)
    }

    #[test]
    fn verdicts_follow_from_the_record() {
        let record = record();
        assert_eq!(tally(&record, &[]).len(), 9);
        let (verdict, why) = on(&record, EXCHANGES);
        assert_eq!(
            (verdict, why.as_str()),
            (Verdict::Differs, "Ours is 5.00 (4.95 .. 5.05); the order is the same.")
        );
        let (verdict, why) = on(&record, "Negotiations fill a link of 1 Gbit/s");
        assert_eq!(
            (verdict, why.as_str()),
            (Verdict::Differs, "Ours fill 91.04 % with ECDH and 81.94 % with RSA of it.")
        );
        assert_eq!(on(&record, "A run of all phases takes longer than its phases").0, Verdict::Reproduced);
        assert_eq!(on(&record, "Throughput of negotiations, ECDH over RSA: above 1").0, Verdict::Reproduced);
        // One trial of latency has no spread.
        let (verdict, why) = on(&record, "Latency of key exchanges at 90 %, RSA over ECDH: 2.9");
        assert!(verdict == Verdict::CouldNot && why.contains("one trial"), "{why}");
    }

    #[test]
    fn planted_trials_flip_a_verdict() {
        let mut record = record();
        let of = |subject: Subject| move |trial: &&mut super::super::Trial| trial.subject == subject;
        record.trials.iter_mut().filter(of(Subject::PLAIN)).for_each(|trial| trial.answered_rps = 320_000.0);
        assert_eq!(on(&record, PLAIN).0, Verdict::Reproduced);
        // Trials so far apart that they allow both what was published and that there is no difference.
        let slow = record.trials.iter_mut().find(|trial| trial.subject == Subject::PLAIN).unwrap();
        slow.answered_rps = 100_000.0;
        let (verdict, why) = on(&record, PLAIN);
        assert!(verdict == Verdict::CouldNot && why.contains("no difference at all"), "{why}");
        record.trials.iter_mut().filter(of(Subject::PLAIN)).for_each(|trial| trial.answered_rps = 180_000.0);
        let (verdict, why) = on(&record, PLAIN);
        assert!(verdict == Verdict::Differs && why.contains("the order is the other one"), "{why}");
        record.trials.iter_mut().filter(of(Subject::PLAIN)).for_each(|trial| trial.server_share = Some(0.2));
        let (verdict, why) = on(&record, PLAIN);
        assert!(verdict == Verdict::CouldNot && why.contains("20.00 % of its processor"), "{why}");
        for latency in &mut record.latencies {
            latency.parts.iter_mut().for_each(|parts| parts.negotiation.mean_us += 1e6);
        }
        assert_eq!(on(&record, "A run of all phases takes longer than its phases").0, Verdict::Differs);
    }

    #[test]
    fn what_is_missing_has_the_reason_of_its_task() {
        let (mut record, mut plan) = (record(), plan());
        record.trials.retain(|trial| trial.subject != Subject::PLAIN);
        let task = plan.tasks.iter_mut().find(|task| task.id == "throughput-plain-short").unwrap();
        task.end = Some(End {
            outcome: Outcome::Infeasible,
            why: Some("no namespace".to_owned()),
            sha256: None,
            started_unix_s: 1,
            seconds: 1.0,
            boot_id: None,
            steal_seconds: None,
        });
        let found = verdict_on(&tally(&record, &plan.tasks), PLAIN);
        assert_eq!(found, (Verdict::CouldNot, "No record of it counts: no namespace.".to_owned()));
    }
}
