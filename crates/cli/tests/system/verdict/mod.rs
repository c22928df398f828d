//! What limited a step is named rightly: something is slowed, stopped, dropped or filled on purpose, and the record has
//! the only verdict that is right. The table in docs/measuring.md is this one.
//!
//! None of these tests asks for a quiet machine: that others are busy on it is what they are about. Where the kernel
//! tells the test that others had a sending thread's processor, the load is carried out again; if that never ends, the
//! only verdict that is right is `generator`, whatever else was done.
//!
//! - here: the table, and how a case is carried out; `injections`: what is done.

mod injections;

use authentick_report::load::{Limit, LoadRecord};

use self::injections::{Bench, Injection, Measured};
use crate::lab::alone;

/// One row of the table.
struct Case {
    injection: Injection,
    /// Whether the load is told the server's process.
    is_known: bool,
    verdict: Limit,
}

const fn case(injection: Injection, is_known: bool, verdict: Limit) -> Case {
    Case { injection, is_known, verdict }
}

/// The only verdict that is right, for what was injected and what the generator was told.
const CASES: [Case; 18] = [
    case(Injection::Nothing, true, Limit::Nothing),
    case(Injection::Nothing, false, Limit::Nothing),
    case(Injection::GeneratorQuota, true, Limit::Generator),
    case(Injection::GeneratorQuota, false, Limit::Generator),
    case(Injection::GeneratorStopped, false, Limit::Generator),
    case(Injection::LocalQueue, true, Limit::Generator),
    case(Injection::LocalQueue, false, Limit::Generator),
    case(Injection::BusyHost, false, Limit::Generator),
    case(Injection::Path20, true, Limit::Path),
    case(Injection::Path20, false, Limit::Unknown),
    case(Injection::Path100, true, Limit::Path),
    case(Injection::Path100, false, Limit::Unknown),
    case(Injection::ServerQuota, true, Limit::Server),
    case(Injection::ServerQuota, false, Limit::Unknown),
    case(Injection::ServerStopped, true, Limit::Server),
    case(Injection::ServerStopped, false, Limit::Unknown),
    case(Injection::OneInTwoHundred, true, Limit::Server),
    case(Injection::OneInTwoHundred, false, Limit::Unknown),
];

/// How often a load is carried out until its generator is not disturbed by anything but what is injected.
const ATTEMPT_COUNT: usize = 5;

/// If others had the processor for longer, the verdict may be due to them.
const TAKEN_SHARE_MAX: f64 = 0.005;

/// Carries out each case so many times.
fn check(round_count: usize) {
    let _turn = alone();
    let bench = match Bench::new() {
        Ok(bench) => bench,
        Err(skip) => return skip.tell(),
    };
    let mut wrong = Vec::new();
    for case in &CASES {
        for round in 0..round_count {
            if let Err(problem) = case.check(&bench) {
                println!("round {round}: {problem}");
                wrong.push(problem);
            }
        }
    }
    println!("assurance: verdicts = {} loads", CASES.len() * round_count);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

impl Case {
    /// # Errors
    /// What the verdict was, if not the right one.
    fn check(&self, bench: &Bench) -> Result<(), String> {
        let Case { injection, is_known, verdict } = *self;
        let mut disturbed_count = 0;
        for _ in 0..ATTEMPT_COUNT {
            let Measured { record, taken_share } = bench.carry_out(injection, is_known);
            let (by, why) = limit(&record);
            println!(
                "{injection:?}, server known {is_known}, taken {taken_share:.4}: {by}: {}",
                why.join("; ")
            );
            if by == verdict {
                return Ok(());
            }
            if by != Limit::Generator {
                let record = record.to_json();
                return Err(format!(
                    "{injection:?}, server known {is_known}: {by}, not {verdict}: {why:?}\n{record}"
                ));
            }
            disturbed_count += usize::from(taken_share > TAKEN_SHARE_MAX);
        }
        // Others had its processor whenever it blamed itself.
        match disturbed_count > ATTEMPT_COUNT / 2 {
            true => Ok(()),
            false => Err(format!("{injection:?}, server known {is_known}: the generator blames itself")),
        }
    }
}

/// What the only step of a record was limited by, and why.
fn limit(record: &LoadRecord) -> (Limit, Vec<String>) {
    let [step] = &record.steps[..] else { panic!("one step: {}", record.to_json()) };
    let verdict = step.limit.clone().expect("each step has a verdict");
    (verdict.by, verdict.why)
}

/// The table in docs/measuring.md: what is done, under which load, and the verdicts with and without the process.
#[test]
fn table_in_the_docs_is_the_one_that_is_tested() {
    let docs = include_str!("../../../../../docs/measuring.md");
    let cell = |injection: Injection, is_known: bool| {
        let mut cases = CASES.iter();
        let case = cases.find(|case| (case.injection, case.is_known) == (injection, is_known));
        case.map_or_else(String::new, |case| format!("`{}`", case.verdict))
    };
    for Case { injection, .. } in CASES {
        let row = docs.lines().find(|line| line.starts_with(&format!("| {} |", injection.words())));
        let row = row.unwrap_or_else(|| panic!("{injection:?} is not in the table"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[3..5], [cell(injection, true), cell(injection, false)], "{injection:?}");
    }
}

#[test]
fn each_injection_has_its_only_verdict() {
    check(1);
}

#[test]
#[ignore = "takes ten minutes; `cargo xtask nightly` runs it"]
fn each_injection_has_its_only_verdict_ten_times_of_ten() {
    check(10);
}
