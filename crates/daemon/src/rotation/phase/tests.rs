//! The policy of derived keys, tried over its small space and over random histories of hosts.

use proptest::prelude::*;

use super::*;
use crate::config::NextKey;

const DAY: u64 = 86_400;
/// A last rotation that is plausible.
const LAST: u64 = PLAUSIBLE_FROM + 300 * DAY;
const EACH: [VouchedBy; 3] = [VouchedBy::Nobody, VouchedBy::Operator, VouchedBy::Witness];

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

const fn daily(keep: usize) -> Schedule {
    Schedule { period: seconds(DAY), keep, next: NextKey::Derived }
}

const fn at(wall: u64, boot: u64, vouched_by: VouchedBy) -> Now {
    Now { wall, boot: seconds(boot), vouched_by }
}

/// A process that starts now.
const fn started(carried: u64) -> Phase {
    Phase::resume(LAST, seconds(carried), Duration::ZERO)
}

#[test]
fn every_rotation_of_a_downtime_is_made_when_the_clock_is_believed() {
    for days in 0..30 {
        for keep in 1..10 {
            for rest in [0, 1, DAY - 1] {
                let wall = LAST + days * DAY + rest;
                let due = |vouched_by| started(0).due(LAST, at(wall, 0, vouched_by), daily(keep));
                assert_eq!(due(VouchedBy::Witness), (days, None), "{days} {keep}");
                let expected = match days <= keep as u64 {
                    true => (days, None),
                    false => (0, Some(Doubt::Leap(days))),
                };
                assert_eq!(due(VouchedBy::Operator), expected, "{days} {keep}");
                assert_eq!(due(VouchedBy::Nobody), (0, None), "{days} {keep}");
            }
        }
    }
}

#[test]
fn rotation_is_due_at_its_second_and_not_before() {
    for vouched_by in [VouchedBy::Operator, VouchedBy::Witness] {
        // Whenever the process began, and for however long it had been noted that the key seals.
        for (begun, carried) in [(0, 0), (7 * 3600, 0), (7 * 3600, 7 * 3600), (DAY - 2, DAY - 3)] {
            let mut phase = started(carried);
            for wall in begun..DAY + 2 {
                let (due, _) = phase.due(LAST, at(LAST + wall, wall - begun, vouched_by), daily(3));
                assert_eq!(due, u64::from(wall >= DAY), "{vouched_by:?} {wall}");
            }
        }
    }
}

#[test]
fn keys_wait_for_a_clock_that_is_behind_them() {
    for vouched_by in [VouchedBy::Operator, VouchedBy::Witness] {
        for (ahead, is_said) in [(1, false), (DAY - 1, false), (DAY, true), (9 * DAY, true)] {
            let mut phase = Phase::resume(LAST, seconds(DAY - 1), Duration::ZERO);
            for hour in 0..48 {
                let now = at(LAST - ahead + hour * 3600, hour * 3600, vouched_by);
                let (due, doubt) = phase.due(LAST, now, daily(3));
                assert_eq!(due, u64::from(hour * 3600 >= ahead + DAY), "{vouched_by:?} {ahead} {hour}");
                assert!(hour > 0 || doubt.is_some() == is_said, "{vouched_by:?} {ahead}");
            }
            let doubt = phase.due(LAST, at(LAST - 9 * DAY, 48 * 3600, vouched_by), daily(3)).1;
            assert_eq!(doubt, Some(Doubt::Ahead(9 * DAY)), "it was set back");
        }
    }
}

#[test]
fn clock_for_which_nobody_vouches_counts_for_nothing_and_the_other_goes_on() {
    for (carried, hours) in [(0, 24), (20 * 3600, 4), (2 * DAY, 0)] {
        let mut phase = started(carried);
        for wall in [LAST + 400 * DAY, LAST - DAY, 0, u64::MAX, LAST + 2 * DAY] {
            for (hour, expected) in [(hours, carried / DAY + 1), (hours + 48, carried / DAY + 3)] {
                let expected = if carried % DAY == 0 && hours == 0 { expected - 1 } else { expected };
                for vouched_by in EACH {
                    // Who vouches for a clock that shows a time before this program does not know it.
                    if vouched_by == VouchedBy::Nobody || wall < PLAUSIBLE_FROM {
                        let due = phase.due(LAST, at(wall, hour * 3600, vouched_by), daily(3));
                        assert_eq!(due, (expected, None), "{vouched_by:?} {wall} {hour}");
                    }
                }
            }
        }
        assert_eq!(phase.age(LAST, seconds(DAY)), seconds(carried + DAY));
    }
}

#[test]
fn word_that_is_lost_is_gone_on_from() {
    // The kernel vouched, then does not any more, and the clock is set to anything.
    let mut phase = started(0);
    assert_eq!(phase.due(LAST, at(LAST + 3600, 0, VouchedBy::Witness), daily(3)), (0, None));
    for wall in [LAST + 9 * DAY, LAST - 9 * DAY, 0] {
        let due = |phase: &mut Phase, boot| phase.due(LAST, at(wall, boot, VouchedBy::Nobody), daily(3)).0;
        assert_eq!(due(&mut phase, 23 * 3600 - 1), 0);
        assert_eq!(due(&mut phase, 23 * 3600), 1, "the hour before the start counts");
    }
    assert_eq!(phase.age(LAST + DAY, seconds(24 * 3600)), seconds(3600));
    assert_eq!(phase.age(LAST + 9 * DAY, seconds(24 * 3600)), Duration::ZERO);
}

#[test]
fn jump_of_a_running_hosts_clock_leaves_the_key_that_sealed_last() {
    for vouched_by in [VouchedBy::Operator, VouchedBy::Witness] {
        for keep in 1..9 {
            let mut phase = started(0);
            assert_eq!(phase.due(LAST, at(LAST, 0, vouched_by), daily(keep)), (0, None));
            for days in 0..20 {
                let due = phase.due(LAST, at(LAST + days * DAY, 60, vouched_by), daily(keep));
                let expected = match days <= keep as u64 {
                    true => (days, None),
                    false => (0, Some(Doubt::Leap(days))),
                };
                assert_eq!(due, expected, "{vouched_by:?} {keep} {days}");
            }
            // Nor do many small jumps add up to more.
            let (mut rotated, mut made) = (LAST, 0);
            for days in 0..40 {
                let due = phase.due(rotated, at(LAST + days * DAY, 60, vouched_by), daily(keep)).0;
                (rotated, made) = (rotated + due * DAY, made + due);
            }
            assert_eq!(made, keep as u64, "{vouched_by:?}");
            // What the clock that is never set says is made all the same.
            let boot = (keep as u64 + 2) * DAY;
            assert_eq!(phase.due(rotated, at(LAST + 90 * DAY, boot, vouched_by), daily(keep)).0, 2);
        }
    }
}

#[test]
fn kernel_or_upstream_is_believed_the_first_time_whenever_that_is() {
    let mut phase = started(0);
    assert_eq!(phase.due(LAST, at(7, 0, VouchedBy::Nobody), daily(3)), (0, None));
    assert_eq!(phase.due(LAST, at(LAST + 90 * DAY + 5, 30, VouchedBy::Witness), daily(3)), (90, None));
    let rotated = LAST + 90 * DAY;
    let later = at(LAST + 94 * DAY, 60, VouchedBy::Witness);
    assert_eq!(phase.due(rotated, later, daily(3)), (0, Some(Doubt::Leap(4))), "and not the second time");
}

#[test]
fn years_of_short_periods_are_made_up_for_in_parts() {
    let schedule = Schedule { period: seconds(1), ..daily(3) };
    let (mut phase, mut rotated) = (started(0), LAST);
    for look in 0..600 {
        let now = at(LAST + 365 * DAY + look, look, VouchedBy::Witness);
        let (due, doubt) = phase.due(rotated, now, schedule);
        assert!((1..=ROTATIONS_AT_ONCE).contains(&due) && doubt.is_none(), "{due} {doubt:?}");
        rotated += due;
    }
    assert_eq!(rotated, LAST + 365 * DAY + 599, "a look is a second");
}

/// A part of a host's life: whether it runs, for how long, what its clock is off by in days, and who vouches.
fn part() -> impl Strategy<Value = (bool, u64, i64, VouchedBy)> {
    let vouched_by = prop_oneof![Just(VouchedBy::Nobody), Just(VouchedBy::Witness)];
    (any::<bool>(), 1..5 * DAY, -400_i64..400, vouched_by)
}

proptest! {
    /// Hosts that begin with one file at any time, stop and start as they do, and have wrong clocks as long as nobody
    /// vouches for them: whenever somebody vouches, they have made the rotations that were due since the file was made.
    #[test]
    fn hosts_are_at_one_rotation_whatever_was_before(
        parts in proptest::collection::vec(part(), 1..40),
        keep in 1_usize..10,
    ) {
        let (mut time, mut boot, mut rotated, mut carried) = (LAST, 0, LAST, Duration::ZERO);
        let mut process: Option<Phase> = None;
        for (runs, length, off, vouched_by) in parts {
            if !runs {
                if let Some(phase) = process.take() {
                    carried = phase.age(rotated, seconds(boot));
                }
                (time, boot) = (time + length, 0);
                continue;
            }
            let phase = process.get_or_insert_with(|| Phase::resume(rotated, carried, seconds(boot)));
            for step in (0..=length).step_by(3600) {
                let wall = match vouched_by {
                    VouchedBy::Nobody => (time + step).saturating_add_signed(off * DAY as i64),
                    VouchedBy::Operator | VouchedBy::Witness => time + step,
                };
                let (due, doubt) = phase.due(rotated, at(wall, boot + step, vouched_by), daily(keep));
                prop_assert_eq!(doubt, None);
                rotated += due * DAY;
                prop_assert_eq!((rotated - LAST) % DAY, 0);
                prop_assert!(rotated <= time + step, "no host is ahead");
                if vouched_by == VouchedBy::Witness {
                    prop_assert!(time + step < rotated + DAY, "no host is behind");
                }
            }
            (time, boot) = (time + length, boot + length);
        }
    }

    /// Whatever a clock does for which an operator or a witness vouches: no rotations are made but those of the clock
    /// that is never set, and `keep` more.
    #[test]
    fn no_clock_makes_more_than_keep(
        looks in proptest::collection::vec((0..2 * DAY, any::<u64>(), LAST..LAST + 90 * DAY, 0..3_usize), 1..60),
        keep in 1_usize..10,
    ) {
        let (mut phase, mut rotated, mut boot) = (started(0), LAST, 0);
        phase.due(LAST, at(LAST, 0, VouchedBy::Witness), daily(keep));
        for (later, any, near, who) in looks {
            boot += later;
            for wall in [any, near] {
                rotated += phase.due(rotated, at(wall, boot, EACH[who]), daily(keep)).0 * DAY;
                prop_assert!((rotated - LAST) / DAY <= boot / DAY + keep as u64);
            }
        }
    }
}
