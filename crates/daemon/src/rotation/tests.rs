//! The policy of rotations, tried over its whole small space and over random histories of clocks.

use proptest::prelude::*;

use super::*;

const DAY: u64 = 86_400;
/// A last rotation that is plausible.
const LAST: u64 = PLAUSIBLE_FROM + 300 * DAY;

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

const fn daily(keep: usize) -> Schedule {
    Schedule { period: seconds(DAY), keep, next: NextKey::Random }
}

const fn at(wall: u64, boot: u64, vouched_by: VouchedBy) -> Now {
    Now { wall, boot: seconds(boot), vouched_by }
}

/// A process that starts now.
const fn started(carried: u64) -> Ageing {
    Ageing::resume(LAST, seconds(carried), Duration::ZERO)
}

#[test]
fn downtime_counts_at_the_start_as_far_as_the_clock_is_vouched_for() {
    for days in 0..30 {
        for keep in 0..10 {
            let wall = LAST + days * DAY;
            let due = |vouched_by| started(0).due(at(wall, 0, vouched_by), daily(keep));
            assert_eq!(
                due(VouchedBy::Witness),
                days.min(keep as u64).max(u64::from(days > 0)),
                "{days} {keep}"
            );
            assert_eq!(due(VouchedBy::Operator), days.min(1), "{days} {keep}");
            assert_eq!(due(VouchedBy::Nobody), 0, "{days} {keep}");
        }
    }
}

#[test]
fn key_that_sealed_last_survives_every_start() {
    for keep in 1..20 {
        for days in [1, 9, 400, 20_000] {
            let due = started(0).due(at(LAST + days * DAY, 0, VouchedBy::Witness), daily(keep));
            assert!(due <= keep as u64, "{due} rotations push it out of {keep}");
        }
    }
}

#[test]
fn clock_that_cannot_be_right_counts_for_nothing() {
    for vouched_by in [VouchedBy::Nobody, VouchedBy::Operator, VouchedBy::Witness] {
        // In 1970 at the start, whether the last rotation was by a clock that was right or also in 1970.
        assert_eq!(started(0).due(at(5, 0, vouched_by), daily(7)), 0, "{vouched_by:?}");
        let mut ageing = Ageing::resume(10, Duration::ZERO, Duration::ZERO);
        assert_eq!(ageing.due(at(LAST, 0, vouched_by), daily(7)), 0, "{vouched_by:?}");
        // The last rotation was by a clock that ran ahead.
        assert_eq!(started(0).due(at(LAST - 40 * DAY, 0, vouched_by), daily(7)), 0, "{vouched_by:?}");
    }
}

#[test]
fn jump_of_the_wall_clock_is_no_age() {
    for vouched_by in [VouchedBy::Nobody, VouchedBy::Operator, VouchedBy::Witness] {
        let mut ageing = started(0);
        assert_eq!(ageing.due(at(LAST, 0, vouched_by), daily(7)), 0);
        for wall in [LAST + 9 * DAY, LAST + 400 * DAY, LAST - DAY, 0, u64::MAX] {
            let due = ageing.due(at(wall, 3600, vouched_by), daily(7));
            // If nobody vouched at the start, nobody does now.
            assert_eq!(due, 0, "{vouched_by:?} {wall}");
        }
        assert_eq!(ageing.due(at(LAST, DAY - 1, vouched_by), daily(7)), 0);
        assert_eq!(ageing.due(at(0, DAY, vouched_by), daily(7)), 1, "a period has gone by");
        assert_eq!(
            ageing.due(at(0, 9 * DAY, vouched_by), daily(7)),
            1,
            "and one rotation is all, however late"
        );
    }
}

#[test]
fn host_that_is_set_after_the_start_makes_up_for_one_rotation_at_most() {
    for (days, expected) in [(0, 0), (1, 1), (9, 1), (400, 1)] {
        let mut ageing = started(0);
        assert_eq!(ageing.due(at(7, 0, VouchedBy::Nobody), daily(7)), 0);
        let wall = LAST + days * DAY + 30;
        assert_eq!(ageing.due(at(wall, 30, VouchedBy::Witness), daily(7)), expected, "{days}");
        assert_eq!(ageing.due(at(wall + 400 * DAY, 31, VouchedBy::Witness), daily(7)), expected, "{days}");
        // Under the operator's word the clock is never asked again: it was in 1970 when it was.
        let mut ageing = started(0);
        assert_eq!(ageing.due(at(7, 0, VouchedBy::Operator), daily(7)), 0);
        assert_eq!(ageing.due(at(wall, 30, VouchedBy::Operator), daily(7)), 0, "{days}");
    }
}

#[test]
fn age_is_carried_over_restarts_without_any_wall_clock() {
    // A host that runs twenty hours a day, and starts in 1970 each time.
    let (mut carried, mut rotations) = (Duration::ZERO, 0);
    for _ in 0..30 {
        let mut ageing = Ageing::resume(10, carried, Duration::ZERO);
        for hour in 0..=20 {
            if ageing.due(at(hour * 3600, hour * 3600, VouchedBy::Operator), daily(7)) > 0 {
                rotations += 1;
                ageing = Ageing::anew(seconds(hour * 3600));
            }
        }
        carried = ageing.age(seconds(20 * 3600));
    }
    assert_eq!(rotations, 30 * 20 / 24);
}

#[test]
fn downtime_of_less_than_a_period_adds_to_the_age() {
    for vouched_by in [VouchedBy::Operator, VouchedBy::Witness] {
        let mut ageing = started(2 * 3600);
        assert_eq!(ageing.due(at(LAST + 10 * 3600, 0, vouched_by), daily(7)), 0);
        assert_eq!(ageing.age(Duration::ZERO), seconds(10 * 3600));
        // The longer of the two counts: a clock that was set back makes no key younger.
        let mut ageing = started(20 * 3600);
        assert_eq!(ageing.due(at(LAST + 10 * 3600, 0, vouched_by), daily(7)), 0);
        assert_eq!(ageing.age(Duration::ZERO), seconds(20 * 3600));
    }
}

#[test]
fn rotation_that_failed_stays_due() {
    let mut ageing = started(0);
    for second in 0..100 {
        assert_eq!(ageing.due(at(LAST + 5 * DAY, second, VouchedBy::Witness), daily(7)), 5);
    }
    assert_eq!(Ageing::anew(seconds(100)).due(at(LAST + 5 * DAY, 100, VouchedBy::Witness), daily(7)), 0);
}

fn vouched_by() -> impl Strategy<Value = VouchedBy> {
    prop_oneof![Just(VouchedBy::Nobody), Just(VouchedBy::Operator), Just(VouchedBy::Witness)]
}

/// A step of a history: so much later, by a wall clock that shows anything.
fn step() -> impl Strategy<Value = (u64, u64, VouchedBy)> {
    let wall = prop_oneof![Just(0), 0..100 * DAY, LAST - 40 * DAY..LAST + 40 * DAY, any::<u64>()];
    (0..3 * DAY, wall, vouched_by())
}

proptest! {
    /// Whatever the wall clock does and whoever vouches for it: after the first look a rotation comes alone, and at
    /// least a period after the one before, if that was one of this process.
    #[test]
    fn one_rotation_a_period_and_none_for_a_jump(
        steps in proptest::collection::vec(step(), 1..60),
        carried in 0..2 * DAY,
        keep in 0_usize..10,
    ) {
        let mut ageing = started(carried);
        let (mut boot, mut last): (u64, Option<u64>) = (0, None);
        for (index, (later, wall, vouched_by)) in steps.into_iter().enumerate() {
            boot += if index == 0 { 0 } else { later };
            let due = ageing.due(at(wall, boot, vouched_by), daily(keep));
            let due_max = if index == 0 { keep.max(1) as u64 } else { 1 };
            prop_assert!(due <= due_max, "{due} at {index}");
            if due > 0 {
                prop_assert!(last.is_none_or(|last| boot - last >= DAY), "{last:?} {boot}");
                ageing = Ageing::anew(seconds(boot));
                last = Some(boot);
            }
        }
    }

    /// And none is forgotten: a key never seals for more than a period and what lies between two looks.
    #[test]
    fn no_key_seals_for_ever(steps in proptest::collection::vec(step(), 1..60)) {
        let mut ageing = started(0);
        let mut boot = 0;
        for (later, wall, vouched_by) in steps {
            boot += later;
            let age = ageing.age(seconds(boot));
            if ageing.due(at(wall, boot, vouched_by), daily(7)) > 0 {
                ageing = Ageing::anew(seconds(boot));
            } else {
                prop_assert!(age < seconds(DAY));
            }
        }
    }
}
