//! What became here of the note's two tables and of its third result.
//!
//! Rates are of other hardware: what is compared is how what is serviced follows what is specified.

use super::plan::{Part, Run};
use super::report::{TABLE_1, TABLE_2, THIRD};
use super::{Plan, Records};
use crate::load::compare::against;
use crate::load::{LoadRecord, Step};
use crate::study::tally::{Entry, Judged, Tally, Verdict, missing};
use crate::units::{percent, rate, ratio};

/// What of the most a row may fall by that nothing holds back: by chance.
const STEADY: f64 = 0.9;
/// From this share of what is specified on it is serviced.
const SERVICED: f64 = 0.95;
/// A server that uses less of its processors is not at its limit.
const BUSY: f64 = 0.8;

const NOTES: [&str; 1] =
    ["Ours is on one machine, with processes in the place of hosts: its loopback is tested, and no network."];

/// Both tables and the third result.
pub(super) fn tally(plan: &Plan, records: &Records) -> Tally {
    let of = |part: Part| missing(&plan.tasks, |id| Run::of(id).is_some_and(|run| run.part == part));
    let entries = vec![
        Entry::new(
            "Table 1, one host",
            TABLE_1,
            "All of the lowest rate is serviced, less than 95 % of the highest, no row less than 90 % of one before, \
             and the host is what holds the highest back.",
            table_1(&records.one_host).unwrap_or_else(|| of(Part::OneHost)),
        ),
        Entry::new(
            "Table 2, several hosts",
            TABLE_2,
            "Several hosts are serviced more than one host at most, each row that counts at least 90 % of the most.",
            table_2(records).unwrap_or_else(|| of(Part::SeveralHosts)),
        ),
        Entry::new(
            "The updated configuration",
            THIRD,
            "The updated configuration is serviced less than the earlier one, with the server at its limit in both.",
            third(records, plan.found.processors).unwrap_or_else(|| of(Part::New)),
        ),
    ];
    Tally { what: "tables and results", entries, notes: NOTES.to_vec() }
}

/// Steps of all rows, in their order.
fn steps(rows: &[Option<LoadRecord>]) -> Vec<&Step> {
    rows.iter().flatten().flat_map(|record| &record.steps).collect()
}

/// The most that was serviced, a second.
fn most(steps: &[&Step]) -> f64 {
    steps.iter().map(|step| step.answered_rps()).fold(0.0, f64::max)
}

/// The share of what was specified that was serviced.
fn serviced(step: &Step) -> Option<f64> {
    step.offered_rps.filter(|offered| *offered > 0.0).map(|offered| step.answered_rps() / offered)
}

fn table_1(rows: &[Option<LoadRecord>]) -> Option<Judged> {
    let steps = steps(rows);
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return None };
    if steps.len() < 3 {
        return Some((Verdict::CouldNot, "Fewer than three rows have no shape.".to_owned()));
    }
    let Some((low, high)) = serviced(first).zip(serviced(last)) else {
        return Some((Verdict::CouldNot, "The records do not say what was specified.".to_owned()));
    };
    let falls =
        steps.iter().enumerate().any(|(index, step)| most(&steps[..index]) * STEADY > step.answered_rps());
    let told =
        format!("Of the lowest rate {} % is serviced, and of the highest {} %", percent(low), percent(high));
    Some(match (low >= SERVICED, high < SERVICED, falls, last.valid) {
        (true, true, false, false) => {
            (Verdict::Reproduced, format!("{told}, where the host is its own limit."))
        }
        (true, true, false, true) => (
            Verdict::Differs,
            format!("{told}, where the server or the path is the limit, and not the host."),
        ),
        (true, true, true, _) => (Verdict::Differs, format!("{told}, and a row falls below one before it.")),
        (true, false, ..) => (Verdict::CouldNot, format!("{told}: no limit lies among our rates.")),
        (false, ..) => (Verdict::Differs, format!("{told}.")),
    })
}

fn table_2(records: &Records) -> Option<Judged> {
    let (one, mut several) = (steps(&records.one_host), steps(&records.several_hosts));
    if several.is_empty() {
        return None;
    }
    let all_count = several.len();
    several.retain(|step| step.valid);
    if several.len() < 2 {
        let why = format!("In {} of {all_count} rows hosts were their own limit.", all_count - several.len());
        return Some((Verdict::CouldNot, why));
    }
    if one.is_empty() {
        return Some((Verdict::CouldNot, "Nothing was measured from one host.".to_owned()));
    }
    let (one, all) = (most(&one), most(&several));
    let least = several.iter().map(|step| step.answered_rps()).fold(f64::INFINITY, f64::min);
    let (more, share) = (all > one, if all > 0.0 { least / all } else { 0.0 });
    let verdict = if more && share >= STEADY { Verdict::Reproduced } else { Verdict::Differs };
    let why = format!(
        "Several hosts are serviced {} a second at most, one host {}, and the least of their rows is {} % of the most.",
        rate(all),
        rate(one),
        percent(share)
    );
    Some((verdict, why))
}

fn third(records: &Records, processors: Option<f64>) -> Option<Judged> {
    let (old, new) = records.old.as_ref().zip(records.new.as_ref())?;
    let could_not = |why: String| Some((Verdict::CouldNot, why));
    for (name, record) in [("earlier", old), ("updated", new)] {
        let used = record.highest_answered().and_then(|step| Some((step.server?, step.seconds)));
        let share =
            used.zip(processors).map(|((used, seconds), processors)| used.cpu_seconds / seconds / processors);
        match share.filter(|share| share.is_finite()) {
            Some(share) if share >= BUSY => {}
            Some(share) => {
                let share = percent(share);
                return could_not(format!(
                    "With the {name} configuration the server used {share} % of its processors."
                ));
            }
            None => {
                return could_not(format!(
                    "How busy the server was with the {name} configuration is not known."
                ));
            }
        }
    }
    let comparison = against(new, old);
    let Some((least, most)) = comparison.range() else {
        return could_not("Neither run says what the server carries.".to_owned());
    };
    let told = format!(
        "Ours has a ratio of {}{}",
        ratio(least),
        most.map_or_else(|| " or more".to_owned(), |most| format!(" to {}", ratio(most)))
    );
    Some(match most {
        Some(most) if most < 1.0 => (Verdict::Reproduced, format!("{told}, where theirs has 0.76.")),
        _ if least >= 1.0 => (Verdict::Differs, format!("{told}, where theirs has 0.76.")),
        _ => (Verdict::CouldNot, format!("{told}, which carries no order.")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::ServerUse;
    use crate::load::tests::record;
    use crate::study::request_threshold::plan::tests::plan;
    use crate::study::tally::tests::verdict_on;

    /// A step that was offered and answered so much a second.
    fn row(offered: f64, answered: f64, valid: bool) -> Option<LoadRecord> {
        let mut record = record();
        record.steps.truncate(1);
        let step = &mut record.steps[0];
        let seconds = step.seconds;
        (step.offered_rps, step.valid) = (Some(offered), valid);
        step.tally.answered = (answered * seconds) as u64;
        Some(record)
    }

    fn records() -> Records {
        Records {
            one_host: vec![row(100.0, 100.0, true), row(400.0, 300.0, false), row(1000.0, 310.0, false)],
            several_hosts: vec![row(1000.0, 640.0, true), row(5000.0, 650.0, true)],
            ..Records::default()
        }
    }

    fn on(records: &Records, place: &str) -> Judged {
        verdict_on(&tally(&plan(), records), place)
    }

    #[test]
    fn shapes_are_reproduced_and_planted_rows_flip_them() {
        const ONE: &str = "Table 1, one host";
        const SEVERAL: &str = "Table 2, several hosts";
        let mut records = records();
        assert_eq!(on(&records, ONE).0, Verdict::Reproduced, "{:?}", on(&records, ONE));
        assert_eq!(on(&records, SEVERAL).0, Verdict::Reproduced);
        records.one_host[2] = row(1000.0, 310.0, true);
        assert!(on(&records, ONE).0 == Verdict::Differs && on(&records, ONE).1.contains("not the host"));
        records.one_host[2] = row(1000.0, 200.0, false);
        assert!(on(&records, ONE).0 == Verdict::Differs && on(&records, ONE).1.contains("falls below"));
        records.one_host[2] = row(1000.0, 990.0, true);
        assert!(on(&records, ONE).0 == Verdict::CouldNot, "{:?}", on(&records, ONE));
        assert!(on(&records, SEVERAL).0 == Verdict::Differs, "one host is serviced more than several");
        records.several_hosts[1] = row(5000.0, 650.0, false);
        let (verdict, why) = on(&records, SEVERAL);
        assert_eq!(
            (verdict, why.as_str()),
            (Verdict::CouldNot, "In 1 of 2 rows hosts were their own limit.")
        );
        records.several_hosts.clear();
        assert!(on(&records, SEVERAL).1.contains("not measured yet"), "{:?}", on(&records, SEVERAL));
    }

    #[test]
    fn third_result_needs_a_busy_server() {
        const THIRD: &str = "The updated configuration";
        let mut records = records();
        let mut plan = plan();
        plan.found.processors = Some(1.0);
        let with = |capacity: [f64; 2], busy: f64| {
            let mut record = record();
            let found = record.capacity.as_mut().unwrap();
            (found.at_least, found.below) = (Some(capacity[0]), Some(capacity[1]));
            for step in &mut record.steps {
                step.server = Some(ServerUse { cpu_seconds: step.seconds * busy, ..ServerUse::default() });
            }
            Some(record)
        };
        let mut of = |old: [f64; 2], new: [f64; 2], busy: f64| {
            (records.old, records.new) = (with(old, busy), with(new, busy));
            verdict_on(&tally(&plan, &records), THIRD)
        };
        let (verdict, why) = of([2800.0, 2900.0], [2240.0, 2300.0], 0.95);
        assert!(verdict == Verdict::Reproduced && why.contains("0.76"), "{why}");
        assert_eq!(of([2240.0, 2300.0], [2800.0, 2900.0], 0.95).0, Verdict::Differs);
        assert_eq!(of([2800.0, 2900.0], [2750.0, 2850.0], 0.95).0, Verdict::CouldNot);
        let (verdict, why) = of([2800.0, 2900.0], [2240.0, 2300.0], 0.09);
        assert!(verdict == Verdict::CouldNot && why.contains("9.00 % of its processors"), "{why}");
    }
}
