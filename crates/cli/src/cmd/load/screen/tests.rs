//! Frames of made-up runs, compared with files in `golden/`.
//!
//! `AUTHENTICK_UPDATE_GOLDEN=1 cargo test -p authentick screen` writes the files anew; look at the difference before
//! committing it.

use std::path::Path;
use std::time::Duration;

use authentick_load::live::{LiveRun, Phase};
use authentick_load::runner::{Run, Steps};
use authentick_load::search::Settings;
use authentick_report::load::{Cause, LoadRecord};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::frame;

/// The record of the report's golden files: four steps from two hosts, of which the third loses and the fourth is
/// invalid.
fn record() -> LoadRecord {
    LoadRecord::from_json(include_str!("../../../../../report/tests/golden/load.json")).unwrap()
}

fn run(steps: Steps) -> Run {
    Run::new(steps, Duration::from_secs(2))
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn ramp() -> Steps {
    Steps::Open(vec![1000.0, 2000.0, 4000.0, 8000.0, 16_000.0])
}

/// A state after so many steps of the record, each of which took three seconds, and 1.2 s into the next one.
fn after(ended_count: usize, steps: Steps, hosts: bool) -> LiveRun {
    let mut record = record();
    let mut ended = std::mem::take(&mut record.steps);
    ended.truncate(ended_count);
    if !hosts {
        ended.iter_mut().for_each(|step| step.hosts.clear());
        record.parameters.agents.clear();
    }
    let mut state = LiveRun::new(&record, &run(steps));
    let (mut counts, mut at) = ([0; 3], 0.0);
    for step in &ended {
        let total = [step.tally.sent, step.tally.answered, step.tally.lost + step.tally.invalid];
        for tenth in 1..=30 {
            at += 0.1;
            let so_far = |count: u64| count * tenth.min(20) / 20;
            let now = std::array::from_fn(|index| counts[index] + so_far(total[index]));
            state.sample(seconds(at), now, false);
        }
        counts = std::array::from_fn(|index| counts[index] + total[index]);
        state.end_step(seconds(at), step);
    }
    for tenth in 1..=12 {
        let further = [tenth * 300, tenth * 290, tenth];
        state.sample(
            seconds(at + tenth as f64 / 10.0),
            std::array::from_fn(|index| counts[index] + further[index]),
            false,
        );
    }
    state
}

/// The characters of a frame, without what is empty at the ends of lines.
fn text(state: &LiveRun, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| frame::draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
    (0..height).map(|y| format!("{}\n", line(y).trim_end())).collect()
}

fn check(name: &str, rendered: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cmd/load/screen/golden").join(name);
    if std::env::var_os("AUTHENTICK_UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(&path, rendered).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(rendered == golden, "{} differs from what is rendered now:\n{rendered}", path.display());
}

#[test]
fn start_of_a_ramp_is_golden() {
    check("start-80x24.txt", &text(&after(0, ramp(), false), 80, 24));
}

#[test]
fn invalid_step_is_golden_and_marked_by_a_character() {
    for (name, width, height) in [("invalid-80x24.txt", 80, 24), ("invalid-120x40.txt", 120, 40)] {
        let frame = text(&after(4, ramp(), false), width, height);
        let row = frame.lines().find(|line| line.contains(" 8,000 ")).unwrap();
        assert!(row.starts_with('!'), "{row}");
        assert!(frame.contains("!   INVALID: generator: 1 % of requests left 2.90 ms late"), "{frame}");
        check(name, &frame);
    }
}

#[test]
fn several_hosts_are_golden_and_the_one_at_fault_comes_first() {
    for (name, width, height) in [("hosts-80x24.txt", 80, 24), ("hosts-120x40.txt", 120, 40)] {
        check(name, &text(&after(4, ramp(), true), width, height));
    }
    let mut state = after(4, ramp(), true);
    let part = state.ended[3].hosts[0].clone();
    state.ended[3].hosts = vec![part; 9];
    state.ended[3].hosts[7].name = "the starved one".to_owned();
    state.ended[3].hosts.iter_mut().enumerate().for_each(|(index, part)| part.valid = index != 7);
    let frame = text(&state, 80, 24);
    assert!(frame.lines().any(|line| line.starts_with("! the starved one")), "{frame}");
    assert!(frame.contains("and 7 more"), "{frame}");
}

/// The record's third step loses a seventh; a search that sees that twice turns back.
#[test]
fn search_is_golden_and_shows_its_bracket_and_the_time_left() {
    let settings = Settings { start_rps: 1000.0, ..Settings::default() };
    let mut state = after(3, Steps::Search(settings), false);
    assert_eq!(state.offered_rps(), Some(4000.0));
    let before = state.left_max().unwrap();
    state.end_step(seconds(12.0), &record().steps[2]);
    state.ended[3].hosts.clear();
    state.sample(seconds(12.5), state.counts(), false);
    assert!(state.offered_rps().is_some_and(|rate| 3000.0 < rate && rate < 3500.0), "near what was answered");
    assert!(state.left_max().unwrap() < before);
    let frame = text(&state, 80, 24);
    assert!(frame.contains("Search: 2,000/s held, 4,000/s did not"), "{frame}");
    assert!(frame.lines().next().unwrap().contains("0:12, at most "), "{frame}");
    check("search-80x24.txt", &frame);
    check("search-120x40.txt", &text(&state, 120, 40));
}

#[test]
fn closed_loop_has_no_rate() {
    let state = after(0, Steps::Closed, false);
    assert!(text(&state, 80, 24).contains("Step 1 of 1: as fast as answers come, 1.2 s of 2 s"));
}

#[test]
fn stop_is_shown_with_what_the_keys_do_then() {
    let mut state = after(1, ramp(), false);
    assert!(text(&state, 80, 24).contains("q, Ctrl-C  stop sending and wait"));
    state.sample(seconds(4.3), state.counts(), true);
    assert_eq!(state.phase(), Phase::Stopping);
    let frame = text(&state, 80, 24);
    assert!(frame.contains("STOPPING: last answers") && frame.contains("end at once"), "{frame}");
}

#[test]
fn every_size_is_drawn_and_small_ones_say_so() {
    let states = [
        after(0, ramp(), false),
        after(4, ramp(), true),
        after(3, Steps::Search(Settings::default()), false),
    ];
    for state in &states {
        for width in (0..20).chain([79, 80, 109, 110, 111, 400]) {
            for height in (0..26).chain([40, 200]) {
                let frame = text(state, width, height);
                let small = width < 80 || height < 24;
                if width >= 60 && height >= 4 {
                    assert_eq!(frame.contains("This terminal has"), small, "{width} x {height}");
                    assert!(frame.contains("q, Ctrl-C"), "{width} x {height}");
                }
            }
        }
    }
}

#[test]
fn absurd_figures_and_texts_stay_in_the_frame() {
    let mut state = after(4, ramp(), true);
    let hostile = "\u{1b}[2J\n".repeat(100);
    state.record.target.clone_from(&hostile);
    state.record.server_label = Some(hostile.clone());
    for step in &mut state.ended {
        step.why_invalid = Some(hostile.clone());
        step.valid = false;
        step.seconds = 0.0;
        step.tally.causes = Cause::ALL.into_iter().map(|cause| (cause, u64::MAX / 64)).collect();
        step.hosts[0].name.clone_from(&hostile);
        step.hosts[0].start_skew_us = f64::MAX;
    }
    state.sample(seconds(20.0), [u64::MAX; 3], false);
    let frame = text(&state, 80, 24);
    assert!(frame.chars().all(|c| c == '\n' || !c.is_control()), "{frame:?}");
    assert_eq!(frame.lines().count(), 24);
}
