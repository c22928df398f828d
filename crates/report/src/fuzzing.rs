//! Bodies of the fuzz targets of this crate; `fuzz/` calls them with new octets, the tests with the kept corpus.
//!
//! A blind change of JSON is seldom JSON, and hardly ever a record. So an input is a text as it is, or changes to one
//! of the kept records: a value in place of another, something left out or repeated, and sums that are mended again.

pub mod edit;
mod judge;

use std::sync::LazyLock;

use serde_json::Value;

use self::judge::Judge;
use crate::load::{self, LoadRecord, Threshold, compare};
use crate::mac::MacRecord;
use crate::record::Record;
use crate::run;
use crate::study::{Paper, Task, antp, field, ntp_mac, nts, request_threshold};

/// Records and plans of every kind and version, which inputs change.
const BASES: [&str; 15] = [
    include_str!("../tests/golden/load.json"),
    include_str!("../tests/golden/load-1.json"),
    include_str!("../tests/golden/run.json"),
    include_str!("fuzzing/mac.json"),
    include_str!("fuzzing/antp.json"),
    include_str!("fuzzing/plan-threshold.json"),
    include_str!("fuzzing/plan-mac.json"),
    include_str!("fuzzing/plan-antp.json"),
    include_str!("fuzzing/nts-unloaded.json"),
    include_str!("fuzzing/nts-scale.json"),
    include_str!("fuzzing/nts-rung.json"),
    include_str!("fuzzing/plan-nts.json"),
    include_str!("fuzzing/nts-operations.json"),
    include_str!("fuzzing/nts-sessions.json"),
    include_str!("fuzzing/nts-rates.json"),
];

/// Of the first octet of an input, which has the number of the base: its lower bits, and what its upper half is for the
/// bases from the eighth on. Other upper halves say nothing, so that older inputs stay what they were.
const BASE_BITS: u8 = 7;
const BASE_EIGHT: u8 = 0x90;
/// The bit that has counts mended.
const MENDED: u8 = 8;

static VALUES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    BASES.iter().map(|text| serde_json::from_str(text).expect("the kept records are JSON")).collect()
});

static LOAD: LazyLock<LoadRecord> =
    LazyLock::new(|| LoadRecord::from_json(BASES[0]).expect("it is a load record"));
static MAC: LazyLock<MacRecord> =
    LazyLock::new(|| MacRecord::from_json(BASES[3]).expect("it is a bench of MACs"));
static ANTP: LazyLock<antp::AntpRecord> =
    LazyLock::new(|| antp::AntpRecord::from_json(BASES[4]).expect("it is a study of ANTP"));

static NTS: LazyLock<nts::Plan> = LazyLock::new(|| nts::Plan::from_json(BASES[11]).expect("it is a plan"));
static NTS_RECORDS: LazyLock<nts::Records> = LazyLock::new(|| nts::Records {
    unloaded: vec![nts::UnloadedRecord::from_json(BASES[8]).expect("it is one client")],
    scales: vec![nts::ScaleRecord::from_json(BASES[9]).expect("it is a scale")],
    rungs: vec![nts::RungRecord::from_json(BASES[10]).expect("it is a step")],
    operations: vec![nts::OperationsRecord::from_json(BASES[12]).expect("they are operations")],
    sessions: vec![nts::SessionsRecord::from_json(BASES[13]).expect("they are sessions")],
    rates: vec![nts::RatesRecord::from_json(BASES[14]).expect("they are rates")],
});

const READ: &str = "what is written is read";

/// Any octets as what a file holds: a record or a plan is refused with a reason, or it is written and read again as it
/// was, and shown without a number that is none, as text of printable characters and as a page whose elements are
/// closed. Returns whether it was a record or a plan.
pub fn record(octets: &[u8]) -> bool {
    let text = match octets {
        [] => return false,
        [b'{', ..] => String::from_utf8_lossy(octets).into_owned(),
        [shape, edits @ ..] => {
            let eight = if shape & 0xf0 == BASE_EIGHT { 8 } else { 0 };
            let base = &VALUES[(usize::from(shape & BASE_BITS) + eight) % BASES.len()];
            edit::changed(base, shape & MENDED != 0, edits).to_string()
        }
    };
    match Paper::of_plan(&text) {
        Ok(paper) => plan(&text, paper),
        Err(_) => stored(&text),
    }
}

fn stored(text: &str) -> bool {
    let record = match Record::from_json(text) {
        Ok(record) => record,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let again = match &record {
        Record::Load(record) => record.to_json(),
        Record::Demo(record) => record.to_json(),
        Record::Mac(record) => record.to_json(),
        Record::Antp(record) => record.to_json(),
        Record::Field(record) => record.to_json(),
        Record::NtsUnloaded(record) => record.to_json(),
        Record::NtsScale(record) => record.to_json(),
        Record::NtsRung(record) => record.to_json(),
        Record::NtsOperations(record) => record.to_json(),
        Record::NtsSessions(record) => record.to_json(),
        Record::NtsRates(record) => record.to_json(),
    };
    let judge = Judge::of(&again);
    let second = Record::from_json(&again).expect(READ);
    judge.same(&record, &second);
    judge.report(&record.report());
    assert!(!record.what().is_empty());
    match &record {
        Record::Load(record) => shown_load(&judge, record),
        Record::Demo(record) => judge.csv(&run::csv(record)),
        Record::Mac(record) => {
            let plan = ntp_mac::Plan::from_json(BASES[6]).expect("it is a plan");
            judge.report(&ntp_mac::report(&plan, Some(record)));
        }
        Record::Antp(_) | Record::Field(_) => {}
        Record::NtsUnloaded(record) => {
            shown_nts(&judge, |records| records.unloaded = vec![(**record).clone()]);
        }
        Record::NtsScale(record) => shown_nts(&judge, |records| records.scales = vec![(**record).clone()]),
        // Beside the one that is kept, of another task or of the same.
        Record::NtsRung(record) => shown_nts(&judge, |records| records.rungs.push((**record).clone())),
        Record::NtsOperations(record) => {
            shown_nts(&judge, |records| records.operations = vec![(**record).clone()]);
        }
        Record::NtsSessions(record) => shown_nts(&judge, |records| records.sessions.push((**record).clone())),
        Record::NtsRates(record) => shown_nts(&judge, |records| records.rates = vec![(**record).clone()]),
    }
    true
}

/// A record in a study of NTS with others.
fn shown_nts(judge: &Judge, put: impl FnOnce(&mut nts::Records)) {
    let mut records = NTS_RECORDS.clone();
    put(&mut records);
    judge.report(&nts::report(&NTS, &records));
}

/// A load run in everything that is made of load runs.
fn shown_load(judge: &Judge, record: &LoadRecord) {
    judge.csv(&load::csv::csv(record));
    judge.text(&load::text::summary(record));
    judge.report(&load::report(&[record, &LOAD]));
    for comparison in [compare::against(record, &LOAD), compare::against(&LOAD, record)] {
        judge.text(&comparison.text());
        let gate = compare::Gate { least: Some(0.9), most: Some(1.1), ..compare::Gate::default() };
        let refused = comparison.refused(&gate).into_iter();
        refused.chain(comparison.failures(&gate)).for_each(|sentence| judge.text(&sentence));
    }
    for threshold in ["p99>2ms", "min<0ns", "loss>=1%", "answered<100000", "skipped>0", "bad-tag>0.5%"] {
        let threshold: Threshold = threshold.parse().expect("it is a threshold");
        threshold.breached(record).iter().for_each(|sentence| judge.text(sentence));
    }
    let records = request_threshold::Records {
        one_host: vec![Some(record.clone())],
        several_hosts: vec![None, Some(record.clone())],
        old: Some(LOAD.clone()),
        new: Some(record.clone()),
    };
    judge.report(&request_threshold::compared(&records, &request_threshold::Remarks::default()));
}

fn plan(text: &str, paper: Paper) -> bool {
    match paper {
        Paper::Threshold => {
            let Ok(plan) = request_threshold::Plan::from_json(text) else { return false };
            let judge = Judge::of(&plan.to_json());
            judge.same(&plan, &request_threshold::Plan::from_json(&plan.to_json()).expect(READ));
            in_folder(&plan.tasks);
            let one = request_threshold::Records { one_host: vec![Some(LOAD.clone())], ..Default::default() };
            judge.report(&request_threshold::report(&plan, &one));
        }
        Paper::Mac => {
            let Ok(plan) = ntp_mac::Plan::from_json(text) else { return false };
            let judge = Judge::of(&plan.to_json());
            judge.same(&plan, &ntp_mac::Plan::from_json(&plan.to_json()).expect(READ));
            in_folder(&plan.tasks);
            judge.report(&ntp_mac::report(&plan, Some(&MAC)));
            judge.report(&ntp_mac::report(&plan, None));
        }
        Paper::Nts => {
            let Ok(plan) = nts::Plan::from_json(text) else { return false };
            let judge = Judge::of(&plan.to_json());
            judge.same(&plan, &nts::Plan::from_json(&plan.to_json()).expect(READ));
            in_folder(&plan.tasks);
            judge.report(&nts::report(&plan, &NTS_RECORDS));
            judge.report(&nts::report(&plan, &nts::Records::default()));
        }
        Paper::Antp => {
            let Ok(plan) = antp::Plan::from_json(text) else { return false };
            let judge = Judge::of(&plan.to_json());
            judge.same(&plan, &antp::Plan::from_json(&plan.to_json()).expect(READ));
            in_folder(&plan.tasks);
            judge.report(&antp::report(&antp::AntpRecord::merged(&plan, [ANTP.clone()])));
        }
        Paper::Field => {
            let Ok(plan) = field::Plan::from_json(text) else { return false };
            let judge = Judge::of(&plan.to_json());
            judge.same(&plan, &field::Plan::from_json(&plan.to_json()).expect(READ));
            in_folder(&plan.tasks);
            judge.report(&field::report(&field::FieldRecord::merged(&plan, [])));
        }
    }
    true
}

fn in_folder(tasks: &[Task]) {
    for Task { file, .. } in tasks {
        assert!(!file.contains(['/', '\0']) && file != "..", "a record outside of its folder");
    }
}

#[cfg(test)]
mod tests;
