//! Steps as each thing that may limit one makes them, and the only verdict that is right.

use authentick_report::load::{AntpFigures, Backlog, Drops, Percentiles, Stalls};

use super::*;

mod counters;

/// 10,000 requests in two seconds, all answered, by a generator that had little to do.
fn step() -> Step {
    Step {
        loss_valid: false,
        offered_rps: Some(5000.0),
        seconds: 2.0,
        tally: Tally { scheduled: 10_000, sent: 10_000, answered: 10_000, ..Tally::default() },
        accompanying: None,
        background: None,
        background_accompanying: None,
        remarks: Vec::new(),
        valid: true,
        why_invalid: None,
        limit: None,
        evidence: Some(Evidence { idle_share: Some(0.96), ..Evidence::default() }),
        series: Vec::new(),
        generator_busy_share: Some(0.04),
        lateness_us: Some(late(20.0)),
        request_size: 48,
        response_size: 48,
        server: None,
        antp: None,
        spans: None,
        hosts: Vec::new(),
    }
}

fn late(p99: f64) -> Percentiles {
    Percentiles { p50: 1.0, p90: 2.0, p99, p999: p99, max: p99, ..Percentiles::default() }
}

/// So many of the requests fail for this reason.
fn fail(step: &mut Step, cause: Cause, number: u64) {
    let tally = &mut step.tally;
    tally.answered -= number;
    *tally.causes.entry(cause).or_default() += number;
    *(if cause.is_invalid() { &mut tally.invalid } else { &mut tally.lost }) += number;
    assert!(tally.adds_up());
}

/// So many do not begin.
fn skip(step: &mut Step, cause: Cause, number: u64) {
    let tally = &mut step.tally;
    (tally.skipped, tally.sent, tally.answered) = (number, tally.sent - number, tally.answered - number);
    tally.causes.insert(cause, number);
    step.valid = false;
    assert!(tally.adds_up());
}

fn evidence(step: &mut Step) -> &mut Evidence {
    step.evidence.as_mut().unwrap()
}

/// A server that was hardly busy, and what its host counted.
fn server(read: u64, full: u64, sent: u64) -> ServerUse {
    ServerUse {
        busiest_thread_share: Some(0.1),
        waiting_share: Some(0.02),
        throttled_share: Some(0.0),
        stopped_share: Some(0.0),
        traffic: Some(Traffic { read, full, sent, ..Traffic::default() }),
        ..ServerUse::default()
    }
}

fn closed(step: &mut Step) {
    step.offered_rps = None;
    step.lateness_us = None;
    step.tally.latency_us = Some(Percentiles { p50: 250.0, ..late(300.0) });
}

/// A row: what was done, the step that it gave, the verdict, and what the first reason says.
type Row = (&'static str, fn(&mut Step), Limit, &'static str);

fn check(rows: &[Row]) {
    for &(name, change, by, why) in rows {
        let mut step = step();
        change(&mut step);
        let found = judge(&step);
        assert_eq!(found.by, by, "{name}: {found:?}");
        assert!(found.why[0].contains(why), "{name}: {found:?}");
        assert!(found.why.iter().all(|why| !why.is_empty()), "{name}: {found:?}");
    }
}

#[test]
fn generator_that_was_slowed_is_named() {
    check(SLOWED);
}

const SLOWED: &[Row] = &[
    (
        "a quota",
        |step| {
            step.lateness_us = Some(late(40_000.0));
            *evidence(step) = Evidence {
                idle_share: Some(0.02),
                preempted_share: Some(0.8),
                stalls: Stalls { count: 20, longest_us: 80_000.0, total_us: 1_600_000.0 },
                ..Evidence::default()
            };
        },
        Limit::Generator,
        "1 % of requests left 40.00 ms late or more: something else had its processor, other threads or a \
         quota for 80 % of the time; it stood still 20 times",
    ),
    (
        "a stop of 400 ms",
        |step| {
            skip(step, Cause::FellBehind, 1500);
            step.lateness_us = Some(late(98_000.0));
            evidence(step).stalls = Stalls { count: 1, longest_us: 400_000.0, total_us: 400_000.0 };
        },
        Limit::Generator,
        "and 1,500 were given up though the busiest sending thread was idle 96 % of the time: something else had its \
             processor; it stood still 1 time, for 400.00 ms at the longest; free the processor",
    ),
    (
        "a host that is busy otherwise",
        |step| {
            step.lateness_us = Some(late(12_000.0));
            evidence(step).preempted_share = Some(0.07);
        },
        Limit::Generator,
        "more --workers do not help",
    ),
    (
        "a hypervisor that has others",
        |step| {
            step.lateness_us = Some(late(12_000.0));
            evidence(step).idle_share = Some(0.3);
            evidence(step).steal_share = Some(0.2);
        },
        Limit::Generator,
        "the hypervisor for 20 %",
    ),
    (
        "more than it can send",
        |step| {
            step.lateness_us = Some(late(12_000.0));
            evidence(step).idle_share = Some(0.0);
        },
        Limit::Generator,
        "had work 100 % of the time; offer less, or use more --workers or hosts",
    ),
    (
        "more than it can send, by an agent that tells no more",
        |step| {
            step.lateness_us = Some(late(12_000.0));
            step.evidence = None;
        },
        Limit::Generator,
        "1 % of requests left 12.00 ms late or more; offer less",
    ),
    ("no buffers", |step| skip(step, Cause::LocalBuffer, 1), Limit::Generator, "no room for 1 operation;"),
    ("no ports", |step| skip(step, Cause::LocalPort, 9), Limit::Generator, "left for 9 operations"),
    ("no memory", |step| skip(step, Cause::LocalMemory, 7), Limit::Generator, "did not begin 7 operations"),
    ("no cookies", |step| skip(step, Cause::NoCookie, 101), Limit::Generator, "for 101 requests"),
    (
        "a full local queue",
        |step| {
            fail(step, Cause::Timeout, 3000);
            evidence(step).drops = Drops { queue: 2990, send_buffer: 2990, ..Drops::default() };
        },
        Limit::Generator,
        "its host dropped 2,990 requests before they left, of 3,000 lost",
    ),
    (
        "answers that it did not read, though the server lost requests too",
        |step| {
            fail(step, Cause::Timeout, 3000);
            evidence(step).drops.unread = 2;
            step.server = Some(server(8000, 2000, 8000));
        },
        Limit::Generator,
        "its sockets had no room for 2 answers",
    ),
    (
        "a clock that is set",
        |step| evidence(step).clock_jumps = 1,
        Limit::Generator,
        "its clock was set 1 time",
    ),
    (
        "a reason that only the ledger knows",
        |step| (step.valid, step.why_invalid) = (false, Some("it had no room for 7 datagrams".to_owned())),
        Limit::Generator,
        "it had no room for 7 datagrams",
    ),
];

#[test]
fn losses_are_those_of_the_side_that_lost_them() {
    check(LOST);
}

const LOST: &[Row] = &[
    ("nothing at all", |_| {}, Limit::Nothing, "10,000 of 10,000 were answered"),
    ("a handful is lost", |step| fail(step, Cause::Timeout, 9), Limit::Nothing, "9,991 of 10,000"),
    (
        "drops of others in the queue",
        |step| {
            fail(step, Cause::Timeout, 100);
            evidence(step).drops.queue = 3;
            step.server = Some(server(10_000, 0, 9_900));
        },
        Limit::Server,
        "server: 100 were read by the server and not answered",
    ),
    (
        "a token bucket on the way, and nothing known of the server",
        |step| fail(step, Cause::Timeout, 3000),
        Limit::Unknown,
        "unknown: 3,000 got no answer in time",
    ),
    (
        "the same before the server's host",
        |step| {
            fail(step, Cause::Timeout, 3000);
            step.server = Some(server(7000, 0, 7000));
        },
        Limit::Path,
        "path: 3,000 never came to the server",
    ),
    (
        "the same on the way back",
        |step| {
            fail(step, Cause::Timeout, 3000);
            step.server = Some(server(10_003, 0, 10_003));
        },
        Limit::Path,
        "path: 3,000 were answered by the server, and the answer did not come",
    ),
    (
        "a server that is not fast enough",
        |step| {
            fail(step, Cause::Timeout, 3000);
            step.server = Some(server(7000, 2900, 7000));
        },
        Limit::Server,
        "server: 2,900 found its socket full",
    ),
    (
        "one answer in 200 dropped, with the process named",
        |step| {
            fail(step, Cause::Timeout, 50);
            step.server = Some(server(10_000, 0, 9950));
        },
        Limit::Server,
        "server: 50 were read by the server and not answered",
    ),
    (
        "the same without",
        |step| fail(step, Cause::Timeout, 50),
        Limit::Unknown,
        "unknown: 50 got no answer in time",
    ),
    (
        "a server that nobody runs",
        |step| fail(step, Cause::Refused, 10_000),
        Limit::Server,
        "server: 10,000 found nobody listening",
    ),
    ("kisses", |step| fail(step, Cause::Kiss, 400), Limit::Server, "server: 400 were refused"),
    ("no route", |step| fail(step, Cause::Unreachable, 400), Limit::Path, "path: 400 could not reach"),
    (
        "both alike",
        |step| {
            fail(step, Cause::Timeout, 200);
            step.server = Some(server(9900, 0, 9800));
        },
        Limit::Unknown,
        "100",
    ),
];

#[test]
fn server_that_was_kept_from_running_is_named() {
    check(KEPT);
}

const KEPT: &[Row] = &[
    (
        "a quota, and counters that do not tell",
        |step| {
            fail(step, Cause::Timeout, 3000);
            let (running, waiting, throttled) = (Some(0.2), Some(0.79), Some(0.75));
            let traffic = None;
            step.server = Some(ServerUse {
                busiest_thread_share: running,
                waiting_share: waiting,
                throttled_share: throttled,
                traffic,
                ..server(0, 0, 0)
            });
        },
        Limit::Server,
        "server: 3,000 got no answer in time",
    ),
    (
        "a stop of 200 ms a second that delays answers",
        |step| step.server = Some(ServerUse { stopped_share: Some(0.2), ..server(10_000, 0, 10_000) }),
        Limit::Server,
        "was stopped 20 % of the time: requests waited",
    ),
    (
        "a stop of 200 ms a second that loses some and delays others",
        |step| {
            fail(step, Cause::Timeout, 900);
            fail(step, Cause::Late, 600);
            step.server = Some(ServerUse { stopped_share: Some(0.2), ..server(9100, 900, 9100) });
        },
        Limit::Server,
        "server: 900 found its socket full",
    ),
    (
        // Seen with a twentieth of a processor, by a kernel that does not tell what a quota takes.
        "answers that waited in the server's socket, many of them for longer than two timeouts",
        |step| {
            fail(step, Cause::Timeout, 3700);
            fail(step, Cause::Late, 3000);
            step.tally.surplus = 1250;
            let traffic = Traffic { read: 7600, full: 400, sent: 7550, unread: 2000, ..Traffic::default() };
            step.server = Some(ServerUse {
                busiest_thread_share: Some(0.05),
                waiting_share: Some(0.887),
                throttled_share: None,
                traffic: Some(traffic),
                ..server(0, 0, 0)
            });
        },
        Limit::Server,
        "server: 4,250 got no answer in time",
    ),
    (
        "answers that came late from a server that had time left and an empty socket",
        |step| {
            fail(step, Cause::Late, 3000);
            step.server = Some(server(10_000, 0, 10_000));
        },
        Limit::Unknown,
        "unknown: 3,000 got no answer in time",
    ),
    (
        "a server that is busy all the time, under key exchanges",
        |step| {
            fail(step, Cause::ConnectionTimedOut, 3000);
            step.tally.operation = Operation::KeyExchange;
            step.server = Some(ServerUse { busiest_thread_share: Some(0.97), ..server(0, 0, 0) });
        },
        Limit::Server,
        "server: 3,000 got no answer in time",
    ),
    (
        "a server of key exchanges that has time",
        |step| {
            fail(step, Cause::ConnectionTimedOut, 3000);
            step.tally.operation = Operation::KeyExchange;
            step.server = Some(server(0, 0, 0));
        },
        Limit::Unknown,
        "unknown: 3,000 got no answer in time",
    ),
    (
        "alerts",
        |step| {
            fail(step, Cause::TlsAlert, 100);
            step.tally.operation = Operation::KeyExchange;
        },
        Limit::Server,
        "server: 100 were refused",
    ),
];

#[test]
fn backlog_that_grows_is_a_limit_before_anything_is_lost() {
    fn grow(step: &mut Step) {
        step.tally.backlog = Backlog { start: 0, middle: 300, end: 1700 };
    }
    check(&[
        (
            "no backlog that chance does not explain",
            |step| step.tally.backlog.end = 9,
            Limit::Nothing,
            "all requests",
        ),
        (
            "a backlog that stays",
            |step| step.tally.backlog = Backlog { start: 0, middle: 1700, end: 1700 },
            Limit::Nothing,
            "",
        ),
        ("nothing is known of the server", grow, Limit::Unknown, "answers did not keep up: 300 waited"),
        (
            "the server has little to do",
            |step| {
                grow(step);
                step.server = Some(server(10_000, 0, 10_000));
            },
            Limit::Unknown,
            "answers did not keep up: 300 waited for theirs in the middle of the step, and 1,700 at its end",
        ),
        (
            "the server is busy",
            |step| {
                grow(step);
                step.server =
                    Some(ServerUse { busiest_thread_share: Some(0.97), ..server(10_000, 0, 10_000) });
            },
            Limit::Server,
            "answers did not keep up: 300 waited",
        ),
        (
            "requests are lost",
            |step| {
                grow(step);
                fail(step, Cause::BadTag, 100);
            },
            Limit::Server,
            "100 were refused or answered wrongly",
        ),
    ]);
}

#[test]
fn closed_loop_says_who_set_its_rate() {
    check(CLOSED_LOOP);
}

const CLOSED_LOOP: &[Row] = &[
    (
        "a generator without a pause",
        |step| {
            closed(step);
            evidence(step).idle_share = Some(0.01);
        },
        Limit::Generator,
        "was idle 1 % of the time, so the rate is what this generator can do, not what the server can",
    ),
    (
        "the same against a server that has none either",
        |step| {
            closed(step);
            evidence(step).idle_share = Some(0.01);
            let server = server(10_000, 0, 10_000);
            step.server = Some(ServerUse { busiest_thread_share: Some(0.99), ..server });
        },
        Limit::Server,
        "ran 99 % of the time",
    ),
    (
        "the same against one that is preempted",
        |step| {
            closed(step);
            let server = server(10_000, 0, 10_000);
            let (running, waiting) = (Some(0.6), Some(0.37));
            step.server = Some(ServerUse { busiest_thread_share: running, waiting_share: waiting, ..server });
        },
        Limit::Host,
        "the server waited for its processor 37 % of the time, as other work had it",
    ),
    ("nobody is busy, for all that is known", closed, Limit::Unknown, "was idle 96 % of the time"),
    (
        "nobody is busy",
        |step| {
            closed(step);
            step.server = Some(server(10_000, 0, 10_000));
        },
        Limit::Path,
        "the window and the latency of 250.0 us set the rate",
    ),
    (
        "answers are lost",
        |step| {
            closed(step);
            fail(step, Cause::Timeout, 100);
            step.server = Some(server(9900, 0, 9900));
        },
        Limit::Path,
        "path: 100 never came to the server",
    ),
    (
        "no ports",
        |step| {
            closed(step);
            skip(step, Cause::LocalPort, 1);
        },
        Limit::Generator,
        "left for 1 operation",
    ),
    (
        "nothing was sent",
        |step| {
            closed(step);
            step.tally = Tally::default();
        },
        Limit::Unknown,
        "nothing was sent",
    ),
];
