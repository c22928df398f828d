//! The statistic of the bench `timing`, on times that are made up.

use authentick_crypto::Entropy;

use super::judge::{Difference, Look, RUN_COUNT, Sample, THRESHOLD, look, look_at_all};

/// A number between zero and one.
fn unit(entropy: &mut Entropy) -> f64 {
    (entropy.u64() >> 11) as f64 / 2f64.powi(53)
}

/// Times as of an operation of a microsecond on a machine with others on it: jitter of 40 ns, one of fifteen is
/// interrupted, and for half of the time all take 400 ns more. The second class takes `shift` more.
fn samples(seed: u64, count: usize, shift: f64) -> Vec<Sample> {
    let mut entropy = Entropy::from_seed(seed);
    let sample = |index: usize| {
        let base = if index * 2 < count { 1000.0 } else { 1400.0 };
        let is_second = entropy.u64() & 1 == 1;
        let jitter: f64 = (0..4).map(|_| unit(&mut entropy) * 35.0).sum();
        let interruption = if unit(&mut entropy) < 1.0 / 15.0 { unit(&mut entropy) * 50_000.0 } else { 0.0 };
        (base + jitter + interruption + if is_second { shift } else { 0.0 }, is_second)
    };
    (0..count).map(sample).collect()
}

/// One span, whose t can be computed by hand: means 2 and 5, variances 1 and 1, three of each. The slowest is not among
/// the fastest nine tenths.
#[test]
fn t_is_that_of_welch() {
    let mut samples: Vec<Sample> =
        vec![(6.0, true), (1.0, false), (5.0, true), (2.0, false), (4.0, true), (3.0, false), (900.0, true)];
    let seen = Difference::of(&mut samples);
    assert_eq!(seen.ns, 3.0);
    assert!((seen.t - 3.0 / (2.0 / 3.0_f64).sqrt()).abs() < 1e-9, "{seen:?}");
    let mut swapped: Vec<Sample> = samples.iter().map(|(ns, is_second)| (*ns, !is_second)).collect();
    assert_eq!(Difference::of(&mut swapped), Difference { t: -seen.t, ns: -3.0 });
}

/// Two spans of equal samples are as sure as their number says.
#[test]
fn spans_are_joined() {
    let span: Vec<Sample> =
        (0..500).map(|index| (f64::from(index % 10), index % 10 >= 4 && index % 2 == 0)).collect();
    let [one, two] = [1, 2].map(|count| Difference::of(&mut span.repeat(count)));
    assert!((two.t / one.t - 2f64.sqrt()).abs() < 1e-9 && (two.ns - one.ns).abs() < 1e-9, "{one:?}, {two:?}");
}

#[test]
fn equal_classes_are_not_seen_and_a_shift_is_seen_behind_interruptions() {
    let of = |shift: f64| look(|run| Difference::of(&mut samples(run, 4_000, shift)));
    for shift in [0.0, 0.2, -0.2] {
        let seen = of(shift);
        assert!(!seen.is_difference() && seen.t().abs() < THRESHOLD, "{shift}: {seen:?}");
    }
    for shift in [8.0, -8.0] {
        let seen = of(shift);
        assert!(seen.is_difference(), "{shift}: {seen:?}");
        assert_eq!((seen.runs.len(), seen.t().signum()), (RUN_COUNT, shift.signum()));
        assert!((2.0..10.0).contains(&seen.ns().abs()), "{seen:?}");
    }
}

#[test]
fn nothing_is_seen_where_nothing_was_measured() {
    for mut samples in [vec![], vec![(1.0, true); 9], vec![(1.0, true), (1.0, false)]] {
        let seen = Difference::of(&mut samples);
        assert!(seen.t.is_nan(), "{seen:?}");
        assert!(!look(|_| seen).is_difference());
    }
}

/// What is made of runs with these t, and how many were taken.
fn verdict(runs: [f64; RUN_COUNT]) -> (bool, usize) {
    let look = look(|number| Difference { t: runs[number as usize - 1], ns: 1.0 });
    (look.is_difference(), look.runs.len())
}

#[test]
fn three_runs_of_one_sign_are_believed_and_nothing_else() {
    for runs in [[4.6, 5.0, 300.0], [-9.0, -4.6, -5.0], [9.0, f64::INFINITY, 9.0]] {
        assert_eq!(verdict(runs), (true, 3), "{runs:?}");
    }
    for (runs, count) in [
        ([4.4, 9.0, 9.0], 1),
        ([4.5, 9.0, 9.0], 1),
        ([9.0, 4.4, 9.0], 2),
        ([9.0, -9.0, 9.0], 2),
        ([-9.0, 9.0, 9.0], 2),
        ([9.0, 9.0, 4.4], 3),
        ([9.0, 9.0, -9.0], 3),
        ([f64::NAN, 9.0, 9.0], 1),
        ([9.0, f64::NAN, 9.0], 2),
    ] {
        assert_eq!(verdict(runs), (false, count), "{runs:?}");
    }
}

#[test]
fn pairs_that_are_timed_together_are_judged_apart() {
    let mut run_count = 0;
    let looks = look_at_all(|number| {
        run_count += 1;
        let t = |t| Difference { t, ns: 0.0 };
        vec![t(1.0), t(9.0), t(if number == 2 { -9.0 } else { 9.0 })]
    });
    assert_eq!(run_count, 3);
    assert_eq!(looks.iter().map(Look::is_difference).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(looks.iter().map(|look| look.runs.len()).collect::<Vec<_>>(), [1, 3, 2]);
}
