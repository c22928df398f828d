//! Sessions of parts with round costs: an exchange takes the server 250 us, a transfer 5 us.

use super::*;
use crate::study::nts::tests::{rates, sessions};

fn records() -> Records {
    Records {
        sessions: Pattern::all().iter().map(|pattern| sessions(&pattern.id())).collect(),
        rates: vec![rates("rates-1-worker"), rates("rates-2-workers")],
        ..Records::default()
    }
}

#[test]
fn costs_of_sessions_are_beside_what_their_parts_predict() {
    let records = records();
    let beyond = Beyond::new(&records);
    let sharing = beyond.of_sharing().unwrap();
    for part in [
        "255.0 us of processor time with 1 for each key exchange",
        "5.8 us with 300: 43.7 times less",
        "By what both cost alone the exchange is 94.34 % with 3 and 14.29 % with 300 of that.",
    ] {
        assert!(sharing.contains(part), "{part}: {sharing}");
    }
    let prediction = beyond.of_prediction().unwrap();
    assert!(prediction.contains("worth 50 transfers; sessions cost 1.00 to 1.00 times"), "{prediction}");
    assert!(beyond.of_cookies().unwrap().contains("costs the server 1.00 times"));
    let table = beyond.sessions_table().unwrap();
    assert_eq!(table.rows.len(), Pattern::all().len());
    let of_30 =
        table.rows.iter().find(|row| row.cells[0] == "30 transfers per exchange, one cookie").unwrap();
    assert_eq!(of_30.cells[1..7], ["2,500", "75,000", "400.0 us", "13.3 us", "13.3 us", "62.50 %"]);
}

#[test]
fn what_was_not_measured_has_no_prediction_and_no_share() {
    let mut records = records();
    records.sessions.retain(|record| record.task == "sessions-8-one");
    records.rates.clear();
    let beyond = Beyond::new(&records);
    assert_eq!((beyond.of_prediction(), beyond.of_cookies()), (None, None));
    let sharing = beyond.of_sharing().unwrap();
    assert!(sharing.ends_with("with 8 for each key exchange, the exchange included."), "{sharing}");
    let row = beyond.sessions_table().unwrap().rows.remove(0);
    assert_eq!(row.cells[4..7], ["36.3 us", "-", "-"]);
    assert!(beyond.has_sessions() && !beyond.has_rates());
    let nothing = Records::default();
    assert!(section(&Beyond::new(&nothing)).is_none() && Beyond::new(&nothing).findings().is_empty());
}

#[test]
fn rates_say_how_far_they_went_and_what_was_the_limit() {
    let records = records();
    let beyond = Beyond::new(&records);
    let said: Vec<String> = beyond.all_rates().map(of_rates).collect();
    for part in [
        "One worker: NTS alone is carried up to 48,000 transfers a second, with a median of 150.0 us and a 95th",
        "2.00 times the end of the paper\u{2019}s axis, of which at most 9,000 were asked for.",
        "At 96,000 20.00 % have no answer in time, limited by the server.",
    ] {
        assert!(said[0].contains(part), "{part}: {}", said[0]);
    }
    assert!(said[1].starts_with("Two workers (the generator shares a processor with it): "), "{}", said[1]);
    // What the generator spoiled is no figure of a sentence.
    let mut record = rates("rates-1-worker");
    record.steps[2].why_invalid = Some("it fell behind".to_owned());
    let said = of_rates((Workers::One, &record));
    assert!(said.ends_with("96,000 are more than the generator can offer here."), "{said}");
    let records = Records { rates: vec![record.clone()], ..Records::default() };
    let table = Beyond::new(&records).rates_table().unwrap();
    let void: Vec<bool> = table.rows.iter().map(|row| row.weight == Weight::Void).collect();
    assert_eq!(void, [false, false, true]);
    record.steps.truncate(1);
    record.steps[0].transfers.answered -= 2_400;
    record.steps[0].transfers.causes.insert(crate::load::Cause::Timeout, 2_400);
    let said = of_rates((Workers::One, &record));
    assert!(said.contains("24,000 transfers a second, the least that counts, 10.00 %"), "{said}");
    record.steps[0].why_invalid = Some("it fell behind".to_owned());
    let said = of_rates((Workers::One, &record));
    assert!(said.ends_with("A closed loop of them brought 80,000 a second."), "{said}");
}

#[test]
fn end_of_the_axis_and_what_was_asked_for_are_the_paper_s() {
    assert_eq!((TRANSFER_AXIS_END_RPS, TRANSFERS_ASKED_RPS_MAX), (24_000, 9_000));
}

#[test]
fn answers_are_to_the_statements_that_need_them() {
    let records = records();
    let beyond = Beyond::new(&records);
    for (id, part) in [
        ("fresh-cookies", "a session with fresh cookies costs"),
        ("exchange-117-percent", "the exchange is 94.34 % with 3"),
        ("three-transfers", "worth 50 transfers"),
        ("transfers-offered", "carried up to 48,000"),
        ("too-few-transfers", "carried up to 48,000"),
        ("future-work", "5.8 us with 300"),
    ] {
        let answer = beyond.answer(id).unwrap();
        assert!(answer.contains(part), "{id}: {answer}");
    }
    assert_eq!(beyond.answer("figure-4"), None);
}
