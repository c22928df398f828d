//! What limited a step is named rightly: something is slowed, stopped, dropped or filled on purpose, and the record has
//! the only verdict that is right. The table in docs/measuring.md is this one.
//!
//! The loads are small, so that a slow machine can offer them too. Where the generator blames itself and should not,
//! the load is carried out again; if that never ends, it is carried out with nothing injected. Where the generator
//! blames itself then too, the machine is too busy for this case, and the test says so. Else the verdict is wrong.
//!
//! - here: the table, and how a case is carried out; `injections`: what is done.

mod injections;

use authentick_lab::skip::skip;
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
const CASES: [Case; 20] = [
    case(Injection::Nothing, true, Limit::Nothing),
    case(Injection::Nothing, false, Limit::Nothing),
    case(Injection::GeneratorQuota, true, Limit::Generator),
    case(Injection::GeneratorQuota, false, Limit::Generator),
    case(Injection::GeneratorStopped, false, Limit::Generator),
    case(Injection::LocalQueue, true, Limit::Generator),
    case(Injection::LocalQueue, false, Limit::Generator),
    case(Injection::BusyHost, false, Limit::Generator),
    case(Injection::Path10, true, Limit::Path),
    case(Injection::Path10, false, Limit::Unknown),
    case(Injection::Path20, true, Limit::Path),
    case(Injection::Path20, false, Limit::Unknown),
    case(Injection::ServerQuota, true, Limit::Server),
    case(Injection::ServerQuota, false, Limit::Unknown),
    case(Injection::ServerStopped, true, Limit::Server),
    case(Injection::ServerStopped, false, Limit::Unknown),
    case(Injection::ServerHangs, true, Limit::Server),
    case(Injection::ServerHangs, false, Limit::Unknown),
    case(Injection::OneInTwoHundred, true, Limit::Server),
    case(Injection::OneInTwoHundred, false, Limit::Unknown),
];

/// How often a load is carried out until its generator does not blame itself.
const ATTEMPT_COUNT: usize = 5;

/// What a case came to.
enum Outcome {
    Right,
    /// The generator cannot keep its times here, whatever is done.
    Busy,
    Wrong(String),
}

/// Carries out each case so many times.
fn check(round_count: usize) {
    let _turn = alone();
    let bench = match Bench::new() {
        Ok(bench) => bench,
        Err(skip) => return skip.tell(),
    };
    let (mut wrong, mut busy) = (Vec::new(), Vec::new());
    for case in &CASES {
        for round in 0..round_count {
            match case.check(&bench) {
                Outcome::Right => {}
                Outcome::Busy => busy.push(format!("{:?}", case.injection)),
                Outcome::Wrong(problem) => {
                    println!("round {round}: {problem}");
                    wrong.push(problem);
                }
            }
        }
    }
    println!("assurance: verdicts = {} loads", CASES.len() * round_count - busy.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if !busy.is_empty() {
        let cases = busy.join(", ");
        skip(&format!(
            "this machine is too busy for a generator to keep its times, with nothing injected: {cases}"
        ));
    }
}

impl Case {
    fn check(&self, bench: &Bench) -> Outcome {
        let Case { injection, is_known, verdict } = *self;
        let name = format!("{injection:?}, server known {is_known}");
        let tell = |what: &str, measured: &Measured| {
            let (by, why) = limit(&measured.record);
            println!("{what}, taken {:.4}: {by}: {}", measured.taken_share, why.join("; "));
            by
        };
        for _ in 0..ATTEMPT_COUNT {
            let measured = bench.carry_out(injection, is_known);
            let by = tell(&name, &measured);
            if by == verdict {
                return Outcome::Right;
            }
            // Other work on either processor is this machine's.
            if ![Limit::Generator, Limit::Host].contains(&by) {
                let (_, why) = limit(&measured.record);
                return Outcome::Wrong(format!(
                    "{}\n{name}: {by}, not {verdict}: {why:?}",
                    measured.record.to_json()
                ));
            }
        }
        let keeps_no_time = || {
            let by = tell("the same with nothing injected", &bench.without(injection));
            [Limit::Generator, Limit::Host].contains(&by)
        };
        match (0..ATTEMPT_COUNT).any(|_| keeps_no_time()) {
            true => Outcome::Busy,
            false => Outcome::Wrong(format!("{name}: the generator blames itself")),
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
    let docs = include_str!("../../../../../../docs/measuring.md");
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
