//! What records of ladders refuse.

use super::*;
use crate::study::nts::tests::{rung, scale};

fn error<T: std::fmt::Debug>(result: Result<T, crate::stored::Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn records_survive_their_files() {
    for task in ["ladder-quota-unloaded", "ladder-quota-2000", "ladder-core-file-7"] {
        assert_eq!(RungRecord::from_json(&rung(task).to_json()).unwrap(), rung(task));
    }
    for task in ["scale-quota", "scale-core-memcached"] {
        assert_eq!(ScaleRecord::from_json(&scale(task).to_json()).unwrap(), scale(task));
    }
}

#[test]
fn cut_records_are_refused_at_every_length() {
    let text = rung("ladder-quota-2000").to_json();
    // Without the line end after it, it is whole.
    for length in (0..text.len() - 1).filter(|length| text.is_char_boundary(*length)) {
        assert!(RungRecord::from_json(&text[..length]).is_err(), "{length}");
    }
}

#[test]
fn edited_steps_are_refused_with_the_reason() {
    type Change = fn(&mut RungRecord);
    let changes: [(Change, &str); 14] = [
        (|record| record.task = "unloaded".to_owned(), "task: \"unloaded\" is none of a ladder"),
        (|record| record.task = "ladder-quota-2500".to_owned(), "task, load_rps and quota_share"),
        (|record| record.load_rps = None, "task, load_rps and quota_share"),
        (|record| record.quota_share = None, "task, load_rps and quota_share"),
        (|record| record.throttled_share = Some(1.5), "throttled_share: it cannot be"),
        (|record| record.measured_rps = -1.0, "measured_rps: it cannot be"),
        (|record| record.exchanges.answered -= 1, "exchanges: its counts"),
        (|record| record.transfers.sent = 0, "transfers: its counts"),
        (|record| record.background = Some(Outcomes { answered: 1, ..Outcomes::default() }), "background: "),
        (|record| record.times.d_cke.as_mut().unwrap().p95_ns += 1, "times.d_cke: its figures"),
        (
            |record| record.times.d_ske = record.times.d_cnts.clone(),
            "times.d_ske: 1800 values, and 600 ended well",
        ),
        (|record| record.joined = u64::MAX, "joined: "),
        (
            |record| std::mem::swap(&mut record.times.d_snts, &mut record.times.d_snts_of_program),
            "fresh cookie",
        ),
        (|record| record.factor = f64::NAN, ""),
    ];
    for (change, part) in changes {
        let mut record = rung("ladder-quota-2000");
        change(&mut record);
        let why = error(RungRecord::from_json(&record.to_json()));
        assert!(why.contains(part), "{part}: {why}");
    }
    let other = rung("ladder-quota-2000").to_json().replace("nts-rung/1", "nts-rung/2");
    assert!(error(RungRecord::from_json(&other)).contains("authentick-nts-rung/2"));
}

#[test]
fn edited_scales_are_refused_with_the_reason() {
    type Change = fn(&mut ScaleRecord);
    let changes: [(Change, &str); 5] = [
        (|record| record.task = "ladder-quota-100".to_owned(), "is none that finds out a scale"),
        (|record| record.factor *= 1.01, "do not fit each other"),
        (|record| record.quota_share = None, "do not fit each other"),
        (|record| record.quota_share = Some(1.01), "quota_share: it cannot be"),
        (|record| record.capacity_rps = 0.0, "do not fit each other"),
    ];
    for (change, part) in changes {
        let mut record = scale("scale-quota");
        change(&mut record);
        let why = error(ScaleRecord::from_json(&record.to_json()));
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[test]
fn outcomes_are_those_of_a_tally() {
    let tally = Tally {
        scheduled: 5,
        sent: 4,
        answered: 2,
        lost: 2,
        skipped: 1,
        causes: [(Cause::Timeout, 2), (Cause::NoCookie, 1)].into(),
        ..Tally::default()
    };
    let outcomes = Outcomes::from(&tally);
    outcomes.check().unwrap();
    assert_eq!((outcomes.failed(), outcomes.of(Cause::Timeout), outcomes.of(Cause::Late)), (3, 2, 0));
}
