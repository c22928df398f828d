//! Where a ladder of loads bends: the knee.
//!
//! It is the first step whose median exceeds twice the unloaded one, as do at least nine tenths of the later steps. "At
//! every later step" would let one quick step hide a server that is past its limit; "at the first step" would take one
//! slow step for the limit.

/// How many times the unloaded median a step past the knee exceeds.
pub const FACTOR: f64 = 2.0;

/// How many of ten later steps exceed it, too.
pub const LATER_TENTHS_MIN: usize = 9;

/// A step of a ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What was offered, in operations a second.
    pub offered_rps: u32,
    /// The median, in any unit. Infinity where nothing was answered; what is not a number exceeds nothing.
    pub median: f64,
}

/// Where a ladder bends, and what says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knee {
    /// The load of the first step past it, in operations a second.
    pub offered_rps: u32,
    /// How many steps have a higher load. If there are none, nothing but the one step says that there is a knee.
    pub later_count: usize,
    /// How many of these exceed the limit, too.
    pub exceeding_count: usize,
}

/// The knee of a ladder; `None` if it has none.
///
/// `unloaded`: the median without load, in the unit of the steps' medians. `steps`: in any order, one for each load,
/// and without those that count for nothing, such as steps that the generator spoiled.
#[must_use]
pub fn knee(unloaded: f64, steps: &[Step]) -> Option<Knee> {
    knee_where(unloaded, steps, LATER_TENTHS_MIN)
}

/// The same with another share: so many of ten later steps have to exceed the limit.
pub(crate) fn knee_where(unloaded: f64, steps: &[Step], later_tenths_min: usize) -> Option<Knee> {
    let mut steps = steps.to_vec();
    steps.sort_unstable_by_key(|step| step.offered_rps);
    let limit = FACTOR * unloaded;
    let mut knee = None;
    let (mut later_count, mut exceeding_count) = (0, 0);
    // From the highest load down, what is later has been counted already; the last that is found is the first step.
    for step in steps.iter().rev() {
        let exceeds = step.median > limit;
        if exceeds && exceeding_count * 10 >= later_count * later_tenths_min {
            knee = Some(Knee { offered_rps: step.offered_rps, later_count, exceeding_count });
        }
        later_count += 1;
        exceeding_count += usize::from(exceeds);
    }
    knee
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A ladder by 100 from 100 on, with an unloaded median of 1.
    fn ladder(medians: &[f64]) -> Vec<Step> {
        (100..).step_by(100).zip(medians).map(|(offered_rps, &median)| Step { offered_rps, median }).collect()
    }

    fn at(medians: &[f64]) -> Option<u32> {
        knee(1.0, &ladder(medians)).map(|knee| knee.offered_rps)
    }

    #[test]
    fn first_step_above_twice_the_unloaded_median_is_the_knee() {
        assert_eq!(at(&[1.0, 1.1, 2.1, 5.0]), Some(300));
        assert_eq!(at(&[3.0, 3.0]), Some(100));
        // Twice is not more than twice.
        assert_eq!(at(&[1.0, 2.0, 2.0]), None);
        assert_eq!(at(&[]), None);
    }

    #[test]
    fn one_of_ten_later_steps_may_be_quick_and_two_may_not() {
        let mut medians = [9.0; 11];
        medians[3] = 1.0;
        assert_eq!(at(&medians), Some(100));
        medians[7] = 1.0;
        // From 500 on, one of six later steps is quick; from 900 on, none.
        assert_eq!(at(&medians), Some(900));
    }

    #[test]
    fn one_slow_step_early_is_no_knee() {
        assert_eq!(at(&[1.0, 9.0, 1.0, 1.0, 9.0, 9.0]), Some(500));
        assert_eq!(at(&[1.0, 9.0, 1.0]), None);
    }

    #[test]
    fn knee_at_the_last_step_says_that_nothing_supports_it() {
        let found = knee(1.0, &ladder(&[1.0, 1.0, 9.0]));
        assert_eq!(found, Some(Knee { offered_rps: 300, later_count: 0, exceeding_count: 0 }));
    }

    #[test]
    fn step_without_an_answer_exceeds_and_one_without_a_number_does_not() {
        assert_eq!(at(&[1.0, f64::INFINITY, f64::INFINITY]), Some(200));
        assert_eq!(at(&[1.0, f64::NAN]), None);
        assert_eq!(knee(f64::NAN, &ladder(&[1.0, 9.0])), None);
    }

    fn medians() -> impl Strategy<Value = Vec<f64>> {
        // Around the limit of 2, so that both sides are frequent.
        prop::collection::vec(1.0_f64..3.0, 0..60)
    }

    proptest! {
        /// By the rule's own words, and the slow way.
        #[test]
        fn knee_is_the_first_step_that_meets_the_rule(medians in medians()) {
            let steps = ladder(&medians);
            let meets = |index: usize| {
                let later = &medians[index + 1..];
                let exceeding = later.iter().filter(|&&median| median > 2.0).count();
                medians[index] > 2.0 && exceeding as f64 >= 0.9 * later.len() as f64 - 1e-9
            };
            let expected = (0..medians.len()).find(|&index| meets(index)).map(|index| steps[index].offered_rps);
            prop_assert_eq!(knee(1.0, &steps).map(|knee| knee.offered_rps), expected);
        }

        #[test]
        fn order_of_the_steps_and_unit_change_nothing(medians in medians(), turn in 0_usize..60, power in -8_i32..8) {
            let steps = ladder(&medians);
            // A power of two, so that no rounding moves a median across the limit.
            let unit = 2.0_f64.powi(power);
            let mut other: Vec<Step> =
                steps.iter().map(|step| Step { median: step.median * unit, ..*step }).collect();
            if !other.is_empty() {
                let turn = turn % other.len();
                other.rotate_left(turn);
            }
            other.reverse();
            prop_assert_eq!(knee(unit, &other), knee(1.0, &steps));
        }

        #[test]
        fn slower_steps_never_move_the_knee_up(medians in medians(), index in 0_usize..60, by in 0.0_f64..3.0) {
            let mut slower = medians.clone();
            if let Some(median) = slower.get_mut(index) {
                *median += by;
            }
            match (at(&medians), at(&slower)) {
                (None, _) => {}
                (Some(before), after) => prop_assert!(after.is_some_and(|after| after <= before)),
            }
        }

        #[test]
        fn counts_are_those_of_the_later_steps(medians in medians()) {
            if let Some(found) = knee(1.0, &ladder(&medians)) {
                let later = &medians[(found.offered_rps / 100) as usize..];
                prop_assert_eq!(found.later_count, later.len());
                prop_assert_eq!(found.exceeding_count, later.iter().filter(|&&median| median > 2.0).count());
            }
        }
    }
}
