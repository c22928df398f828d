//! Verdicts on records by hand, and what flips them.

use super::*;
use crate::load::Cause;
use crate::published::nts::unloaded::distribution;
use crate::study::nts::tests::{all_records, plan, rung};
use crate::study::nts::{Rung, RungRecord};
use crate::study::tally::tests::verdict_on;
use crate::study::{End, Outcome};

fn on(records: &Records, place: &str) -> Judged {
    verdict_on(&tally(&plan(), records), place)
}

/// Changes each step to scale with a load from this one on.
fn from(records: &mut Records, load: f64, change: impl Fn(&mut RungRecord)) {
    let of = |record: &&mut RungRecord| {
        record.quota_share.is_some() && record.load_rps.is_some_and(|at| at >= load)
    };
    records.rungs.iter_mut().filter(of).for_each(change);
}

#[test]
fn theirs_has_what_is_compared() {
    for order in ORDERS {
        let of = |measure: Measure, percentile: u32| {
            distribution(measure)?.percentile_ns(usize::try_from(percentile).ok()?)
        };
        assert_eq!(broken(order, of), Some(None), "{order:?}");
    }
}

#[test]
fn every_figure_has_a_verdict_that_links_to_its_section() {
    let (plan, records) = (plan(), all_records());
    let tally = tally(&plan, &records);
    let places: Vec<&str> = tally.entries.iter().map(|entry| entry.place.as_str()).collect();
    assert_eq!(places[..3], ["Table II", "Figure 4", "Figure 5"]);
    assert_eq!(places[3..].len(), 6);
    let page = super::super::report(&plan, &records).page();
    for entry in &tally.entries {
        assert!(page.contains(&format!(">{}</h2>", entry.heading)), "{}", entry.heading);
    }
    assert!(page.contains("<a href=\"#figure-7-d-cke-under-load\">Figure 7</a>"));
    assert!(page.contains(&tally.sentence()));
    crate::render::page::assert_whole(&page);
}

#[test]
fn order_of_medians_and_distributions_follows_from_rows() {
    let mut records = all_records();
    // Ours reads no file, so that d_SNTS of the hand-made record is below d_SKE.
    let (verdict, why) = on(&records, "Table II");
    assert!(verdict == Verdict::Differs && why.contains("a file for each request"), "{why}");
    assert_eq!(on(&records, "Figure 4").0, Verdict::Reproduced);
    let (verdict, why) = on(&records, "Figure 5");
    assert!(verdict == Verdict::Differs && why.contains("At the 5th percentile d_SKE"), "{why}");
    for record in &mut records.unloaded {
        for server in record.transfers.iter_mut().filter_map(|row| row.1.as_mut()) {
            server[3] += 80_000;
        }
    }
    assert_eq!([on(&records, "Table II").0, on(&records, "Figure 5").0], [Verdict::Reproduced; 2]);
    for record in &mut records.unloaded {
        record.transfers.iter_mut().for_each(|row| row.0[3] += 9_000_000);
    }
    let (verdict, why) = on(&records, "Figure 4");
    assert!(verdict == Verdict::Differs && why.contains("At the 5th percentile d_CNTS of ours"), "{why}");
    assert_eq!(on(&records, "Table II").0, Verdict::Differs);
    records.unloaded.clear();
    assert!(on(&records, "Table II").1.contains("not measured yet"));
}

#[test]
fn knee_is_reproduced_where_steps_overlap_and_flips_with_planted_steps() {
    let mut records = all_records();
    let (verdict, why) = on(&records, "Figure 7");
    assert!(verdict == Verdict::Reproduced && why.contains("above 2,000 and at 2,500 at most"), "{why}");
    let normal = rung("ladder-quota-500");
    for record in &mut records.rungs {
        if matches!(record.place(), Some((Ladder::ToScale, Rung::Load(2_500 | 3_000)))) {
            (record.times, record.exchanges) = (normal.times.clone(), normal.exchanges.clone());
        }
    }
    let (verdict, why) = on(&records, "Figure 7");
    assert!(verdict == Verdict::Differs && why.contains("above 3,000 and at 3,500"), "{why}");
    from(&mut records, 0.0, |record| {
        (record.server_share, record.throttled_share) = (Some(0.2), Some(0.0));
    });
    assert_eq!(on(&records, "Figure 7").0, Verdict::CouldNot);
    from(&mut records, 0.0, |record| record.why_invalid = Some("it fell behind".to_owned()));
    for figure in 7..=12 {
        assert_eq!(on(&records, &format!("Figure {figure}")).0, Verdict::CouldNot, "{figure}");
    }
}

#[test]
fn failures_below_the_knee_or_none_at_all_differ() {
    let mut records = all_records();
    assert_eq!(on(&records, "Figure 8").0, Verdict::Reproduced);
    from(&mut records, 1_500.0, |record| {
        record.exchanges.answered -= record.exchanges.answered / 50;
        let failed = record.exchanges.scheduled - record.exchanges.answered;
        record.exchanges.causes = [(Cause::ConnectionTimedOut, failed)].into();
    });
    let (verdict, why) = on(&records, "Figure 8");
    assert!(verdict == Verdict::Differs && why.contains("at 1,500"), "{why}");
    from(&mut records, 0.0, |record| {
        record.exchanges.answered = record.exchanges.scheduled;
        record.exchanges.causes.clear();
    });
    assert_eq!(on(&records, "Figure 8").0, Verdict::Differs);
    records.rungs.retain(|record| record.load_rps.is_none_or(|load| load <= 2_000.0));
    assert_eq!(on(&records, "Figure 8").0, Verdict::CouldNot);
}

#[test]
fn time_that_load_affects_differs() {
    let mut records = all_records();
    assert_eq!(on(&records, "Figure 12").0, Verdict::Reproduced);
    let slow = rung("ladder-quota-4000").times.d_cke;
    from(&mut records, 4_000.0, |record| record.times.d_snts_of_program.clone_from(&slow));
    let (verdict, why) = on(&records, "Figure 12");
    assert!(verdict == Verdict::Differs && why.contains("times the 4.0 us without load"), "{why}");
    assert_eq!(on(&records, "Figure 11").0, Verdict::Reproduced);
    records.rungs.retain(|record| record.load_rps.is_some());
    assert_eq!(on(&records, "Figure 11").0, Verdict::CouldNot);
}

#[test]
fn what_is_missing_has_the_reason_of_its_task() {
    let mut plan = plan();
    let task = plan.tasks.iter_mut().find(|task| task.id == "scale-quota").unwrap();
    task.end = Some(End {
        outcome: Outcome::Infeasible,
        why: Some("there is no cgroup".to_owned()),
        sha256: None,
        started_unix_s: 1,
        seconds: 1.0,
        boot_id: None,
        steal_seconds: None,
    });
    let found = verdict_on(&tally(&plan, &Records::default()), "Figure 9");
    assert_eq!(found, (Verdict::CouldNot, "No record of it counts: there is no cgroup.".to_owned()));
}
