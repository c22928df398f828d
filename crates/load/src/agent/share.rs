//! Dividing a run among agents, and combining their reports. Pure functions.

use authentick_generator::selection::Selection;
use authentick_report::load::{Evidence, Histogram, HostPart, Tally};

use super::limits::{JOINABLE_COUNT_MAX, OPERATION_COUNT_MAX, SECOND_COUNT_MAX};
use crate::plan::{Joinable, Order, Part, Plan};

/// The order of each of `count` hosts. Rates differ by little, and add up exactly to the total; a closed loop has the
/// same window everywhere. Empty for no hosts.
#[must_use]
pub fn split(order: &Order, count: usize) -> Vec<Order> {
    let rates = order.rate_rps.map(|rate| split_rate(rate, count));
    let background = split_rate(order.background_rps, count);
    let each = |index: usize| Order {
        rate_rps: rates.as_ref().map(|rates| rates[index]),
        background_rps: background[index],
        ..*order
    };
    (0..count).map(each).collect()
}

/// Whole operations a second where that changes no share by more than a hundredth, so that whole seconds have whole
/// shares; finer ones otherwise. The remainder goes to the last host. All shares and sums are multiples of the rate's
/// last binary place, so nothing is rounded.
fn split_rate(rate: f64, count: usize) -> Vec<f64> {
    const COARSE: f64 = 1.0;
    const FINE: f64 = 1.0 / 1_048_576.0;
    if count == 0 {
        return Vec::new();
    }
    let quantum = if rate >= 100.0 * count as f64 { COARSE } else { FINE };
    let quanta = (rate / quantum).floor();
    let (each, rest) = ((quanta / count as f64).floor(), quanta % count as f64);
    let mut shares: Vec<f64> =
        (0..count).map(|index| (each + if (index as f64) < rest { 1.0 } else { 0.0 }) * quantum).collect();
    let left = rate - quanta * quantum;
    shares[count - 1] += left;
    shares
}

/// The plan of each of `count` hosts: clients divided, a seed of its own.
///
/// # Errors
/// A sentence if there are fewer clients than hosts, or source addresses are given: nobody here knows whose they are.
pub(crate) fn split_plan(plan: &Plan, count: usize) -> Result<Vec<Plan>, String> {
    let hosts = u32::try_from(count).unwrap_or(u32::MAX);
    if plan.clients < hosts {
        return Err(format!(
            "{} clients cannot be divided among {count} agents; take more clients",
            plan.clients
        ));
    }
    if !plan.sources.is_empty() || !plan.background_sources.is_empty() {
        return Err("source addresses belong to one host and cannot be divided among agents; leave them out, and give \
                    each agent's host one address"
            .to_owned());
    }
    let share = |count: u32, index| count / hosts + u32::from(index < count % hosts);
    let each = |index: u32| Plan {
        clients: share(plan.clients, index),
        background_clients: share(plan.background_clients, index),
        seed: mix(plan.seed.wrapping_add(u64::from(index).wrapping_mul(GOLDEN))),
        ..plan.clone()
    };
    Ok((0..hosts).map(each).collect())
}

/// SplitMix64's increment, and below its finaliser: neighbouring seeds become unrelated ones.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Refuses a report that cannot be true: counts that do not add up, or are impossibly high; shares and times that no
/// clock can have shown; more seconds than a step has.
pub(crate) fn check(part: &Part) -> Result<(), String> {
    check_evidence(part)?;
    let tallies = std::iter::once(&part.tally)
        .chain(&part.accompanying)
        .chain(&part.background)
        .chain(&part.background_accompanying);
    for tally in tallies {
        if !tally.adds_up() {
            return Err(format!(
                "its counts do not add up: scheduled {}, skipped {}, sent {}, answered {}, lost {}, invalid {}",
                tally.scheduled, tally.skipped, tally.sent, tally.answered, tally.lost, tally.invalid
            ));
        }
        let Tally { histograms, strays, scheduled, surplus, .. } = tally;
        let times = [&histograms.latency_ns, &histograms.from_send_ns, &histograms.offset_ns];
        let counts = times.map(Histogram::count).into_iter().chain(strays.values().copied());
        let largest = counts.chain([*scheduled, *surplus]).max().unwrap_or(0);
        if largest > OPERATION_COUNT_MAX {
            return Err(format!("it counts {largest} operations, which nobody can have done"));
        }
        // A record with such a tally would be refused by whoever reads it.
        tally.check()?;
    }
    Ok(())
}

/// The part of [`check`] that is not about operations.
fn check_evidence(part: &Part) -> Result<(), String> {
    let Evidence { idle_share, preempted_share, steal_share, stalls, drops, syn_repeats, .. } =
        &part.evidence;
    let shares = [part.busy_share, *idle_share, *preempted_share, *steal_share];
    if let Some(share) = shares.into_iter().flatten().find(|share| !(0.0..=1.0).contains(share)) {
        return Err(format!("it reports a share of {share}, which is not within 0 to 1"));
    }
    let mut times = [part.seconds, stalls.longest_us, stalls.total_us].into_iter();
    if let Some(time) = times.find(|time| !time.is_finite() || *time < 0.0) {
        return Err(format!("it reports a time of {time}, which is none"));
    }
    if part.series.len() > SECOND_COUNT_MAX {
        return Err(format!("it reports {} seconds, which no step has", part.series.len()));
    }
    if part.series_ns.len() > part.series.len() {
        return Err("it reports latencies of seconds that it does not report".to_owned());
    }
    let latencies = part.series_ns.iter().map(Histogram::count);
    let seconds = part.series.iter().flat_map(|second| [second.sent, second.answered, second.failed]);
    let repeats = syn_repeats.unwrap_or(0);
    let counts = [stalls.count, drops.unread, drops.send_buffer, drops.queue, repeats].into_iter();
    match counts.chain(seconds).chain(latencies).max() {
        Some(most) if most > OPERATION_COUNT_MAX => {
            Err(format!("it counts {most} of something, which cannot have happened"))
        }
        _ => Ok(()),
    }
}

/// Keeps a sample of the single operations if there are more than a report has room for, and counts the others.
pub(crate) fn bound(part: &mut Part) {
    let mut sample = Selection::new(JOINABLE_COUNT_MAX);
    sample.extend(std::mem::take(&mut part.joinables));
    keep(part, sample);
}

/// What a sample kept is all that a report has.
fn keep(part: &mut Part, mut sample: Selection<Joinable>) {
    let (kept, left_out) = sample.take();
    part.joinables = kept;
    part.joinables_left_out = part.joinables_left_out.saturating_add(left_out);
}

/// The combined report of all hosts, from parts that [`check`] accepted, with a row for each host. `None` if there is
/// no part, or hosts did not count the same operations.
pub(crate) fn merge(parts: Vec<(HostPart, Part)>) -> Option<(Part, Vec<HostPart>)> {
    let mut sample = Selection::new(JOINABLE_COUNT_MAX);
    let mut rows = Vec::with_capacity(parts.len());
    let mut whole: Option<Part> = None;
    for (row, mut part) in parts {
        for why in [&mut part.why_invalid, &mut part.why_late].into_iter().flatten() {
            *why = format!("{}: {why}", row.name);
        }
        sample.extend(std::mem::take(&mut part.joinables));
        rows.push(row);
        match &mut whole {
            None => whole = Some(part),
            Some(whole) => add(whole, part)?,
        }
    }
    let mut whole = whole?;
    keep(&mut whole, sample);
    Some((whole, rows))
}

/// Adds the part of another host, if it counts the same operations.
fn add(whole: &mut Part, part: Part) -> Option<()> {
    let same = |mine: Option<&Tally>, other: Option<&Tally>| {
        mine.zip(other).is_none_or(|(mine, other)| mine.operation == other.operation)
    };
    let alike = same(Some(&whole.tally), Some(&part.tally))
        && same(whole.accompanying.as_ref(), part.accompanying.as_ref())
        && same(whole.background.as_ref(), part.background.as_ref())
        && same(whole.background_accompanying.as_ref(), part.background_accompanying.as_ref());
    alike.then(|| whole.merge(part))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::Duration;

    use authentick_report::load::{Cause, Drops, Operation, Second, Stray};
    use proptest::prelude::*;

    use super::super::tests::{order, plan, tally};
    use super::*;

    fn row(name: &str, part: &Part) -> HostPart {
        HostPart {
            name: name.to_owned(),
            offered_rps: None,
            tally: part.tally.without_histograms(),
            valid: part.why_invalid.is_none(),
            why_invalid: part.why_invalid.clone(),
            ..HostPart::default()
        }
    }

    fn merged(parts: &[(&str, Part)]) -> Option<(Part, Vec<HostPart>)> {
        merge(parts.iter().map(|(name, part)| (row(name, part), part.clone())).collect())
    }

    fn joinables(count: usize, port: u16) -> Vec<Joinable> {
        let source = ([127, 0, 0, 1], port).into();
        (0..count as u64).map(|n| Joinable { source, transmit: Some(n), whole_ns: n }).collect()
    }

    #[test]
    fn remainders_go_to_the_first_hosts() {
        let rates = |rate, count| {
            split(&order(rate, 1.0), count).iter().map(|order| order.rate_rps.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(rates(10_000.0, 3), [3334.0, 3333.0, 3333.0]);
        assert_eq!(rates(1000.5, 2), [500.0, 500.5]);
        assert_eq!(rates(0.0, 2), [0.0, 0.0]);
        assert!(
            rates(1.0, 3).iter().all(|share| (share - 1.0 / 3.0).abs() < 1e-5),
            "slow rates are even too"
        );
        let closed = Order { background_rps: 7.0, duration: Duration::from_secs(2), ..Order::default() };
        assert_eq!(split(&closed, 1), [closed]);
        assert!(split(&closed, 2).iter().all(|order| order.rate_rps.is_none() && order.background_rps > 3.4));
        assert_eq!(split(&closed, 0), []);
    }

    #[test]
    fn clients_are_divided_and_seeds_differ() {
        let plans = split_plan(&Plan { clients: 11, ..plan() }, 3).unwrap();
        assert_eq!(plans.iter().map(|plan| plan.clients).collect::<Vec<_>>(), [4, 4, 3]);
        assert!(plans[0].seed != plans[1].seed && plans[1].seed != plans[2].seed);
        assert_eq!(
            plans,
            split_plan(&Plan { clients: 11, ..plan() }, 3).unwrap(),
            "a run repeats from its seed"
        );
        assert!(split_plan(&Plan { clients: 2, ..plan() }, 3).is_err());
        let sources: Vec<IpAddr> = vec!["127.0.0.1".parse().unwrap()];
        for plan in
            [Plan { sources: sources.clone(), ..plan() }, Plan { background_sources: sources, ..plan() }]
        {
            assert!(split_plan(&plan, 3).unwrap_err().contains("belong to one host"));
        }
    }

    #[test]
    fn sums_hold_after_merging() {
        let part = Part {
            tally: tally(10, 4),
            accompanying: Some(tally(3, 1)),
            lateness_ns: vec![(5, 10)].into(),
            busy_share: Some(0.5),
            request_size: 48,
            response_size: 44,
            ..Part::default()
        };
        let other = Part {
            tally: tally(7, 2),
            background: Some(tally(2, 0)),
            busy_share: Some(0.9),
            why_invalid: Some("it fell behind".to_owned()),
            response_size: 48,
            ..part.clone()
        };
        let (whole, rows) = merged(&[("a", part.clone()), ("b", other.clone())]).unwrap();
        assert!(whole.tally.adds_up());
        assert_eq!((whole.tally.sent, whole.tally.answered, whole.tally.lost), (17, 11, 6));
        assert_eq!(whole.tally.count_of(Cause::Timeout), 6);
        assert_eq!(whole.tally.histograms.latency_ns.count(), 11);
        assert_eq!(whole.accompanying.unwrap().sent, 6);
        assert_eq!(whole.background, other.background);
        assert_eq!(whole.lateness_ns.pairs(), [(5, 20)]);
        assert_eq!((whole.busy_share, whole.request_size, whole.response_size), (Some(0.9), 48, 48));
        assert_eq!(whole.why_invalid.as_deref(), Some("b: it fell behind"));
        assert_eq!(rows.iter().map(|row| row.tally.sent).sum::<u64>(), 17);
        assert!(rows[0].valid && !rows[1].valid);
        assert_eq!(merged(&[]), None);
    }

    #[test]
    fn every_host_that_fell_behind_is_named() {
        let part = Part { why_invalid: Some("slow".to_owned()), ..Part::default() };
        let (whole, _) = merged(&[("a", part.clone()), ("b", part)]).unwrap();
        assert_eq!(whole.why_invalid.as_deref(), Some("a: slow; b: slow"));
    }

    #[test]
    fn different_operations_are_not_added() {
        let exchange = Tally { operation: Operation::KeyExchange, ..Tally::default() };
        let part = Part { tally: exchange, ..Part::default() };
        assert_eq!(merged(&[("a", Part::default()), ("b", part)]), None);
    }

    #[test]
    fn single_operations_are_bounded_and_those_of_all_hosts_stay_alike() {
        let part = |mark, count| Part { joinables: joinables(count, mark), ..Part::default() };
        let (whole, _) = merged(&[("a", part(1, 3)), ("b", part(2, JOINABLE_COUNT_MAX - 3))]).unwrap();
        assert_eq!((whole.joinables.len(), whole.joinables_left_out), (JOINABLE_COUNT_MAX, 0));
        let (whole, _) = merged(&[("a", part(1, 60_000)), ("b", part(2, 120_000))]).unwrap();
        let kept = whole.joinables.len();
        assert_eq!(kept as u64 + whole.joinables_left_out, 180_000);
        assert!((80_000..100_000).contains(&kept), "{kept}");
        let of_first = whole.joinables.iter().filter(|joinable| joinable.source.port() == 1).count();
        assert!(of_first.abs_diff(kept / 3) < 1_000, "{of_first} of {kept}");
        let mut alone = part(1, JOINABLE_COUNT_MAX + 1);
        bound(&mut alone);
        let kept = alone.joinables.len();
        assert!((60_000..70_000).contains(&kept), "{kept}");
        assert_eq!(kept as u64 + alone.joinables_left_out, JOINABLE_COUNT_MAX as u64 + 1);
    }

    #[test]
    fn impossible_counts_are_refused_before_they_are_added() {
        assert_eq!(check(&Part { tally: tally(10, 4), ..Part::default() }), Ok(()));
        let mut wrong = tally(10, 4);
        wrong.answered += 1;
        assert!(
            check(&Part { accompanying: Some(wrong), ..Part::default() }).unwrap_err().contains("add up")
        );
        let huge = tally(u64::MAX, 0);
        assert!(huge.adds_up());
        assert!(check(&Part { tally: huge, ..Part::default() }).unwrap_err().contains("nobody"));
        let surplus = Tally { surplus: u64::MAX, ..Tally::default() };
        assert!(check(&Part { background: Some(surplus), ..Part::default() }).is_err());
        let stray = |count, surplus| Part {
            tally: Tally { strays: [(Stray::Duplicate, count)].into(), surplus, ..Tally::default() },
            ..Part::default()
        };
        assert_eq!(check(&stray(3, 3)), Ok(()));
        assert!(check(&stray(3, 2)).unwrap_err().contains("strays"), "they are the surplus by kind");
        assert!(check(&stray(u64::MAX, 3)).unwrap_err().contains("nobody"));
        let obstacles = Tally { strays: [(Stray::Obstacle, u64::MAX)].into(), ..Tally::default() };
        assert!(check(&Part { accompanying: Some(obstacles), ..Part::default() }).is_err());
    }

    #[test]
    fn times_that_do_not_fit_the_counts_are_refused() {
        for change in [
            (|tally| tally.histograms.latency_ns = vec![(5, 9)].into()) as fn(&mut Tally),
            |tally| tally.histograms.from_send_ns = vec![(5, 7)].into(),
            |tally| tally.histograms.offset_ns = vec![(5, 7)].into(),
        ] {
            let mut wrong = tally(10, 4);
            change(&mut wrong);
            assert!(check(&Part { tally: wrong, ..Part::default() }).unwrap_err().contains("histograms"));
        }
    }

    #[test]
    fn impossible_evidence_is_refused() {
        let good = Part {
            busy_share: Some(1.0),
            seconds: 2.0,
            evidence: Evidence { idle_share: Some(0.0), steal_share: Some(1.0), ..Evidence::default() },
            series: vec![Second { sent: 5, answered: 5, ..Second::default() }; 2],
            ..Part::default()
        };
        assert_eq!(check(&good), Ok(()));
        let wrong: [fn(&mut Part); 13] = [
            |part| part.busy_share = Some(-0.1),
            |part| part.busy_share = Some(f64::NAN),
            |part| part.evidence.idle_share = Some(1.01),
            |part| part.evidence.preempted_share = Some(f64::INFINITY),
            |part| part.evidence.stalls.longest_us = f64::NAN,
            |part| part.evidence.stalls.total_us = -1.0,
            |part| part.evidence.drops.unread = u64::MAX,
            |part| part.evidence.syn_repeats = Some(u64::MAX),
            |part| part.series[1].failed = u64::MAX,
            |part| part.series_ns = vec![Histogram::default(); 3],
            |part| part.series_ns = vec![Histogram::from(vec![(1, u64::MAX)])],
            |part| part.series = vec![Second::default(); SECOND_COUNT_MAX + 1],
            |part| part.seconds = -1.0,
        ];
        for (index, change) in wrong.into_iter().enumerate() {
            let mut part = good.clone();
            change(&mut part);
            assert!(check(&part).is_err(), "{index}");
        }
    }

    #[test]
    fn evidence_of_hosts_is_merged_and_the_worst_counts() {
        let part = |idle_share, unread| Part {
            evidence: Evidence {
                idle_share: Some(idle_share),
                drops: Drops { unread, ..Drops::default() },
                ..Evidence::default()
            },
            ..Part::default()
        };
        let (whole, _) = merged(&[("a", part(0.9, 1)), ("b", part(0.2, 2))]).unwrap();
        assert_eq!((whole.evidence.idle_share, whole.evidence.drops.unread), (Some(0.2), 3));
    }

    proptest! {
        #[test]
        fn shares_add_up_exactly(rate in prop_oneof![0.0..1e7, 0.0..10.0, (0u32..2_000_000).prop_map(f64::from)],
            count in 1usize..65,
        ) {
            let shares = split_rate(rate, count);
            prop_assert_eq!(shares.len(), count);
            prop_assert_eq!(shares.iter().sum::<f64>(), rate);
            prop_assert_eq!(shares.iter().rev().sum::<f64>(), rate);
            for share in shares {
                prop_assert!((share - rate / count as f64).abs() <= (rate / count as f64 * 0.02).max(2e-6));
            }
        }
    }
}
