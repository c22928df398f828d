//! Ladders by hand: knees, crosses, classes, and what is said where something is missing.

use super::*;
use crate::load::Cause;
use crate::study::nts::Store;
use crate::study::nts::tests::{all_records, rung};

fn sentences(records: &Records) -> String {
    let ladders = Ladders::new(records);
    let all = sections(&ladders);
    all.iter().flat_map(Section::sentences).collect::<Vec<_>>().join("\n")
}

fn bend_of(records: &Records) -> String {
    let ladders = Ladders::new(records);
    found::bend(ladders.to_scale().unwrap())
}

/// Changes each step to scale with a load from this one on.
fn from(records: &mut Records, load: f64, change: impl Fn(&mut RungRecord)) {
    let of = |record: &&mut RungRecord| {
        record.quota_share.is_some() && record.load_rps.is_some_and(|at| at >= load)
    };
    records.rungs.iter_mut().filter(of).for_each(change);
}

fn page(records: &Records) -> String {
    use crate::render::{Layout, Report};
    Report::new("Ladders", Layout::Nested, sections(&Ladders::new(records))).page()
}

#[test]
fn knee_is_told_with_the_paper_s_and_no_finer_than_the_steps() {
    let said = bend_of(&all_records());
    for part in [
        "To scale, ours bends at 2,500 key exchanges a second",
        "the median of d_CKE is 80.22 ms, and 2.01 ms without load",
        "the paper says about 2,000, and by its data the knee is at 2,100",
        "Of 11 later steps, 11 exceed",
        "The step before, 2,000, is normal: ours bends above 2,000 and at 2,500 at most, and so does theirs.",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn knee_that_is_elsewhere_has_a_ratio_of_two_digits() {
    let mut records = all_records();
    for record in &mut records.rungs {
        if matches!(record.place(), Some((Ladder::ToScale, Rung::Load(2_500 | 3_000)))) {
            record.times.d_cke = rung("ladder-quota-500").times.d_cke;
            record.exchanges = rung("ladder-quota-500").exchanges;
        }
    }
    let said = bend_of(&records);
    assert!(
        said.contains("bends at 3,500") && said.contains("at 1.4 to 1.7 times the load of theirs"),
        "{said}"
    );
}

#[test]
fn no_ratio_where_the_server_was_not_the_limit_or_nobody_knows() {
    let mut records = all_records();
    from(&mut records, 0.0, |record| {
        (record.server_share, record.throttled_share) = (Some(0.2), Some(0.0));
    });
    assert!(bend_of(&records).contains("The server was not at its limit"), "{}", bend_of(&records));
    from(&mut records, 0.0, |record| (record.server_share, record.throttled_share) = (None, None));
    assert!(bend_of(&records).contains("is not known: no ratio"), "{}", bend_of(&records));
    from(&mut records, 0.0, |record| {
        record.server_share = Some(0.5);
        if record.load_rps < Some(2_500.0) {
            record.why_invalid = Some("it fell behind".to_owned());
        }
    });
    assert!(bend_of(&records).contains("No lower step counts"), "{}", bend_of(&records));
    let said = bend_of(&records);
    assert!(!said.contains("times the load of theirs") && !said.contains("so does theirs"), "{said}");
}

#[test]
fn ladder_without_a_knee_says_how_far_it_went() {
    let mut records = all_records();
    let normal = rung("ladder-quota-500");
    from(&mut records, 2_500.0, |record| {
        (record.times, record.exchanges) = (normal.times.clone(), normal.exchanges.clone());
    });
    assert!(bend_of(&records).contains("does not bend up to 8,000"), "{}", bend_of(&records));
}

#[test]
fn ladder_whose_unloaded_step_is_missing_or_spoiled_has_no_knee() {
    let is_unloaded = |record: &RungRecord| record.load_rps.is_none() && record.quota_share.is_some();
    let mut spoiled = all_records();
    spoiled.rungs.iter_mut().filter(|record| is_unloaded(record)).for_each(|record| {
        record.why_invalid = Some("it fell behind".to_owned());
    });
    let mut missing = all_records();
    missing.rungs.retain(|record| !is_unloaded(record));
    for records in [spoiled, missing] {
        let said = bend_of(&records);
        assert!(said.contains("no step without load counts"), "{said}");
        assert!(said.contains("about 2,000") && said.contains("2,100"), "{said}");
    }
}

#[test]
fn step_in_which_nobody_was_answered_is_past_the_knee() {
    let mut records = all_records();
    from(&mut records, 2_500.0, |record| {
        let scheduled = record.exchanges.scheduled;
        record.exchanges.answered = 0;
        record.exchanges.causes = [(Cause::ConnectionTimedOut, scheduled)].into();
        record.times.d_cke = None;
    });
    let said = bend_of(&records);
    assert!(said.contains("bends at 2,500") && said.contains("nobody was answered"), "{said}");
}

#[test]
fn spoiled_steps_are_crosses_with_their_reason_and_no_figure_is_of_them() {
    let mut records = all_records();
    records.rungs.retain(|record| record.quota_share.is_some());
    from(&mut records, 7_500.0, |record| {
        record.why_invalid = Some("the generator <script> fell behind".to_owned());
    });
    let page = page(&records);
    // Median and 95th percentile of two steps, in two sizes, of five curves; one cross for each bar of Figure 8.
    let pictures = page.split("<svg class=\"plot").skip(1).map(|rest| rest.split("</svg>").next().unwrap());
    let crosses: usize = pictures.map(|picture| picture.matches("<path class=\"cross").count()).sum();
    assert_eq!(crosses, 2 * 2 * 2 * 5 + 2 * 2);
    assert!(page.contains("the generator &lt;script&gt; fell behind") && !page.contains("<script"));
    assert_eq!(page.matches("<tr class=\"void\">").count(), 2 * 7);
    let said = sentences(&records);
    assert!(said.contains("16 steps, 2 of which the generator spoiled"), "{said}");
    assert!(said.contains("at 7,000 a second 21.0 % of ours fail, and of theirs"), "{said}");
}

#[test]
fn only_spoiled_steps_are_drawn_and_found_nothing() {
    let mut records = all_records();
    records.rungs.iter_mut().for_each(|record| record.why_invalid = Some("it fell behind".to_owned()));
    let said = sentences(&records);
    for part in ["no step counts, and nobody knows where ours bends", "No step of ours counts (to scale)"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("of ours fail") && !said.contains("overflow"), "{said}");
    assert_eq!(page(&records).matches("<figure>").count(), 12);
}

#[test]
fn without_a_step_the_paper_s_figures_stand_alone() {
    let records = Records { rungs: Vec::new(), ..all_records() };
    let said = sentences(&records);
    assert!(said.contains("No step of a ladder was measured here") && said.contains("about 2,000"), "{said}");
    assert!(!page(&records).contains("<figure>"));
}

#[test]
fn loads_that_the_paper_has_not_stand_without_it() {
    let mut records = all_records();
    from(&mut records, 0.0, |record| record.load_rps = record.load_rps.map(|load| load + 17.0));
    let (said, page) = (sentences(&records), page(&records));
    assert!(said.contains("ours bends at 2,517") && !said.contains("of theirs 29"), "{said}");
    assert!(
        page.contains("517 a second: ours median 2.00\u{a0}ms") || page.contains("517 a second: ours median")
    );
}

#[test]
fn whole_core_alone_is_told_without_a_ratio_to_theirs() {
    let mut records = all_records();
    records.rungs.retain(|record| record.quota_share.is_none());
    let said = sentences(&records);
    assert!(said.contains("On a whole core, ours bends at 1,800 key exchanges a second"), "{said}");
    assert!(said.contains("That is 1.12 times what it serves, 1,600"), "{said}");
    assert!(!said.contains("times the load of theirs"));
    // Without the ladder to scale, that on a whole core stands beside theirs, where 2,000 are what it serves.
    let shown = page(&records);
    assert_eq!(shown.matches("<figure>").count(), 12);
    assert!(
        shown
            .contains("1,000 on the axis are 800 key exchanges a second here, of the ladder on a whole core")
    );
    assert!(shown.contains("2,250 a second: ours median"), "1,800 of 1,600 that are served");
    records.scales.clear();
    assert_eq!(page(&records).matches("<figure>").count(), 6, "nobody knows what it serves");
}

#[test]
fn failures_stand_in_their_classes_over_all_requests() {
    use super::failures::{Class, failed_share};
    let record = rung("ladder-quota-4000");
    let step = Step { load: 4_000.0, record: &record };
    assert_eq!((record.exchanges.scheduled, Class::TimedOut.count(&record.exchanges)), (600, 120));
    assert_eq!(Class::Unavailable.count(&record.exchanges), 6);
    assert!((failed_share(step) - 0.21).abs() < 1e-12);
    let mut late = record.clone();
    late.exchanges.causes = [(Cause::TlsAlert, 60), (Cause::FellBehind, 120)].into();
    // What the generator did not send is no failure of the server.
    assert!((failed_share(Step { load: 4_000.0, record: &late }) - 0.1).abs() < 1e-12);
    assert_eq!(Class::Generator.count(&late.exchanges), 120);
}

#[test]
fn full_accept_queue_and_repeated_syns_are_told_beside_their_tail() {
    let ladders = all_records();
    let ladders = Ladders::new(&ladders);
    let said = found::queue(ladders.to_scale().unwrap()).unwrap();
    for part in [
        "from 2,500 key exchanges a second on",
        "in 12 of 16 steps",
        "sent SYNs again 600 times",
        "1, 3 and 7 s",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let files = ladders.climbed().find(|climb| climb.ladder == Ladder::WholeCore(Store::File)).unwrap();
    assert!(found::tails(files).unwrap().contains("at 200 a second"), "{:?}", found::tails(files));
}

#[test]
fn labels_of_pictures_state_the_finding() {
    let page = page(&all_records());
    for part in [
        "aria-label=\"d_CKE against the load, theirs and ours. To scale, ours bends at 2,500",
        "aria-label=\"Key exchanges that failed against the load, theirs and ours. Failures of ours begin at 2,500",
        "aria-label=\"d_SNTS against the load, theirs and ours. Medians of d_SNTS of ours are",
    ] {
        assert_eq!(page.matches(part).count(), 2, "{part}");
    }
    crate::render::page::assert_whole(&page);
}
