//! Commands are those of a shell, in a folder of their own.

use super::*;

const QUIET: Step = Step { words: "", environment: &[], times: 1, must_fail_with: None };

fn judged(step: Step, is_success: bool, said: &str) -> Ended {
    let mut ended = Ended::default();
    judge(&step, is_success, said, "", &mut ended);
    ended
}

const TEST: Step = Step { words: "cargo test -p a", ..QUIET };

#[test]
fn tests_that_passed_are_counted_over_all_programs() {
    let said = "test result: ok. 3 passed; 0 failed; 1 ignored\nassurance: seeds = 5 seeds\n\
        test result: ok. 4 passed; 0 failed\n";
    let ended = judged(TEST, true, said);
    assert_eq!(ended.problems, [""; 0]);
    assert_eq!(ended.figures, [Figure::count("seeds", 5, "seeds"), Figure::count("tests", 7, "passed")]);
}

#[test]
fn run_of_no_test_is_a_problem() {
    let said = "test result: ok. 0 passed; 0 failed; 0 ignored; 9 filtered out\n";
    assert_eq!(judged(TEST, true, said).problems, ["`cargo test -p a` ran no test"]);
    let other = |words| judged(Step { words, ..QUIET }, true, said).problems.len();
    assert_eq!(
        [other("cargo +nightly miri test"), other("cargo run -- test-drive"), other("sh test")],
        [1, 0, 0]
    );
}

#[test]
fn failed_tests_are_named() {
    let said = "test a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\n    no name\n\nfailures:\n    a::b\n    \
        c\n\ntest result: FAILED. 1 passed; 2 failed\nerror: test failed\n";
    assert_eq!(judged(TEST, false, said).problems, ["`cargo test -p a` failed: a::b, c"]);
    assert_eq!(
        judged(TEST, false, "error: no room\n\n").problems,
        ["`cargo test -p a` failed: error: no room"]
    );
}

#[test]
fn control_has_to_fail_and_in_the_way_that_is_expected() {
    let control = Step::new("b").must_fail_with("caught it");
    assert_eq!(judged(control, false, "we caught it\n"), Ended::default());
    assert_eq!(judged(control, true, "caught it\n").problems, ["`b` has to fail, and did not"]);
    let other = judged(control, false, "does not compile\n").problems;
    assert_eq!(other, ["`b` has to fail with `caught it`, and failed otherwise"]);
}

#[test]
fn figure_that_does_not_parse_is_a_problem() {
    let problems = judged(Step { words: "b", ..QUIET }, true, "assurance: seeds = many\n").problems;
    assert_eq!(problems, ["`assurance: seeds = many` is no figure: NAME = NUMBER UNIT"]);
}

#[test]
fn part_that_does_not_say_what_it_tried_has_not_passed() {
    let said = || Ended { figures: vec![Figure::count("seeds", 1, "seeds")], ..Ended::default() };
    assert_eq!(with_figures(said(), &["seeds"]), said());
    assert_eq!(with_figures(said(), &["seeds", "states"]).problems, ["no figure was printed for states"]);
}

#[test]
fn result_is_passed_only_if_all_ran_that_can() {
    let result = |ended: Ended| ended.result(|line| line.contains("no Go"));
    assert_eq!(result(Ended::default()), (Outcome::Passed, Vec::new()));
    let skips = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let impossible = Ended { skips: skips(&["a: no Go"]), ..Ended::default() };
    assert_eq!(result(impossible), (Outcome::Passed, skips(&["not run: a: no Go"])));
    let skipped = Ended { skips: skips(&["a: no Go", "b: too busy"]), ..Ended::default() };
    assert_eq!(result(skipped), (Outcome::Skipped, skips(&["not run: a: no Go", "not run: b: too busy"])));
    let missing = Ended { missing: Some("no miri".to_owned()), ..Ended::default() };
    assert_eq!(result(missing), (Outcome::Skipped, skips(&["no miri"])));
    let found = Ended { problems: skips(&["x"]), skips: skips(&["b: too busy"]), ..Ended::default() };
    assert_eq!(result(found), (Outcome::Found, skips(&["x", "not run: b: too busy"])));
}

#[test]
fn words_of_a_record_have_a_limit() {
    let words = limited((0..WORDS_MAX + 3).map(|_| "é".repeat(CHARACTERS_MAX + 1)));
    assert_eq!(words.len(), WORDS_MAX + 1);
    assert_eq!(words[0].chars().count(), CHARACTERS_MAX + 5);
    assert_eq!(words[WORDS_MAX], "and 3 more");
}

fn bench(root: &Path) -> Bench<'_> {
    Bench { root, fuzz_seconds: 1, keeps: false, peers: Vec::new() }
}

fn part(steps: &'static [Step]) -> Part {
    let work = Work::Steps { steps, figures: &["turns"], missing: |_| None };
    Part { name: "a".to_owned(), establishes: String::new(), minutes: 1, work }
}

#[test]
fn steps_run_in_the_root_each_as_often_as_it_should_and_leave_a_log() {
    const STEPS: &[Step] = &[
        Step {
            words: "sh turn SCRATCH",
            environment: &[("WORD", "SCRATCH/x")],
            times: 3,
            must_fail_with: None,
        },
        Step { words: "sh bad", times: 2, ..QUIET },
        Step { words: "sh turn SCRATCH", ..QUIET },
    ];
    let root = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
    put("turn", "echo x >> $1/turns; echo assurance: turns = 1 turns; echo \"word ${WORD#$1}\"; pwd");
    put("bad", "echo \"$PWD/crash is bad\" >&2; echo \"x: no room\" >> $AUTHENTICK_SKIPS; exit 3");
    for _ in 0..2 {
        let ended = bench(root.path()).carry_out(&part(STEPS));
        let problems = [1, 2].map(|turn| format!("run {turn} of 2: `sh bad` failed: crash is bad"));
        assert_eq!(ended.problems, problems);
        assert_eq!(ended.skips, ["x: no room"]);
        assert_eq!(ended.figures, [Figure::count("turns", 4, "turns")]);
        assert_eq!(fs::read_to_string(root.path().join("target/nightly/a/turns")).unwrap(), "x\n".repeat(4));
        let log = fs::read_to_string(log(root.path(), &part(STEPS))).unwrap();
        assert_eq!(log.matches("$ sh turn SCRATCH\n").count(), 4, "{log}");
        assert!(log.contains("\nword /x\n") && log.contains("crash is bad\n"), "{log}");
    }
}

#[test]
fn command_that_does_not_start_is_a_problem() {
    const STEPS: &[Step] = &[Step { words: "no-such-program", ..QUIET }];
    let root = tempfile::tempdir().unwrap();
    let ended = bench(root.path()).carry_out(&part(STEPS));
    assert!(ended.problems[0].starts_with("`no-such-program` did not start"), "{:?}", ended.problems);
}

#[test]
fn what_a_machine_lacks_is_a_skip_and_nothing_is_run() {
    const STEPS: &[Step] = &[Step { words: "no-such-program", ..QUIET }];
    let root = tempfile::tempdir().unwrap();
    let work = Work::Steps { steps: STEPS, figures: &["turns"], missing: |_| Some("no miri".to_owned()) };
    let bench = bench(root.path());
    let ended = bench.carry_out(&Part { work, ..part(STEPS) });
    assert_eq!(bench.result(&ended), (Outcome::Skipped, vec!["no miri".to_owned()]));
}

#[test]
fn command_over_its_time_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let log = create(&folder.path().join("log")).unwrap();
    let mut command = Command::new("sleep");
    assert_eq!(run(command.arg("600"), &log, Instant::now()), Ok(None));
}

#[test]
fn end_of_a_command_is_that_of_all_that_it_started() {
    let mut command = Command::new("sh");
    command.args(["-c", "(sleep 100; echo survived) & echo started; wait"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut started = [0; 8];
    output.read_exact(&mut started).unwrap();
    end(child.id()).unwrap();
    // Ends when nobody can write any more.
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!((&started, &*rest), (b"started\n", ""));
    assert!(!child.wait().unwrap().success());
}
