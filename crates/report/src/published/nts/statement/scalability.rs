//! What the paper says of the loaded server: section V, and what section VI makes of it.

use super::super::curves::{Step, steps};
use super::super::recompute::{
    Agreement, at, figure_7_increase_ms, first_failure_rps, mean, mean_of_drawn, past_capacity,
};
use super::{Answer, Part, Place, Statement, Tag, data, printed};

/// Both ladders.
const LADDERS: Answer = Answer::Measured(&[Part::LadderWholeCore, Part::LadderToScale]);

/// How far a mean of curves may be from what was printed: curves have four digits.
const CURVES: Agreement = Agreement::Within(0.05);

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        id: "figure-7",
        places: &[Place::Section("V"), Place::Figure(7)],
        printed: Some(
            "From 2,000 a second on, the median of d_CKE grows by 50.09 ms and the 95th percentile by 744.64 ms, on \
             average.",
        ),
        data: "The curves are not percentiles: they are means of the fastest half and of the fastest 95 %. Their \
               averages over 2,100 to 8,000, less 3.3905 ms, the mean of an earlier unloaded run, are what was \
               printed. The percentiles of those steps are 101 ms and 6.21 s on average. At 2,000 the median is 2.57 \
               ms.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Figure, Tag::Source],
        answer: LADDERS,
        recomputations: &[
            printed(
                "the mean of the fastest half past 2,000, less the earlier mean",
                "ms",
                50.09,
                CURVES,
                || figure_7_increase_ms(|curve| curve.fastest_50),
            ),
            printed(
                "the mean of the fastest 95 % past 2,000, less the earlier mean",
                "ms",
                744.64,
                CURVES,
                || figure_7_increase_ms(|curve| curve.fastest_95),
            ),
            data("the mean over the steps of the median", "ms", 101.0, Agreement::Rounded(1.0), || {
                mean(past_capacity(), |step| step.d_cke_ms.p50)
            }),
            data(
                "the mean over the steps of the 95th percentile",
                "s",
                6.21,
                Agreement::Rounded(0.01),
                || mean(past_capacity(), |step| step.d_cke_ms.p95) / 1e3,
            ),
            data("the median at 2,000", "ms", 2.57, Agreement::Rounded(0.01), || {
                at(2_000, |step| step.d_cke_ms.p50)
            }),
        ],
    },
    Statement {
        id: "slow-tails-below-the-knee",
        places: &[Place::Section("V"), Place::Figure(7)],
        printed: Some("d_CKE is said to grow from 2,000 a second on."),
        data: "The 95th percentile is 4.9 s at 500, 5.7 s at 800, 4.6 s at 900 and 4.9 s at 1,200 already. Means of \
               the fastest 95 % hide the slowest twentieth, and show it as 0.2 to 0.6 s.",
        tags: &[Tag::Printed, Tag::Raw],
        answer: LADDERS,
        recomputations: &[
            data("the 95th percentile at 500", "s", 4.9, Agreement::Rounded(0.1), || {
                at(500, |step| step.d_cke_ms.p95) / 1e3
            }),
            data("the 95th percentile at 800", "s", 5.7, Agreement::Rounded(0.1), || {
                at(800, |step| step.d_cke_ms.p95) / 1e3
            }),
            data("the 95th percentile at 900", "s", 4.6, Agreement::Rounded(0.1), || {
                at(900, |step| step.d_cke_ms.p95) / 1e3
            }),
            data("the 95th percentile at 1,200", "s", 4.9, Agreement::Rounded(0.1), || {
                at(1_200, |step| step.d_cke_ms.p95) / 1e3
            }),
            data("the curve called 95th percentile at 500", "s", 0.2, Agreement::Rounded(0.1), || {
                at(500, |step| step.figure_7_ms.fastest_95) / 1e3
            }),
            data("the curve called 95th percentile at 1,200", "s", 0.6, Agreement::Rounded(0.1), || {
                at(1_200, |step| step.figure_7_ms.fastest_95) / 1e3
            }),
        ],
    },
    Statement {
        id: "figure-8",
        places: &[Place::Section("V"), Place::Figure(8)],
        printed: Some("Errors begin at 2,300 a second; the figure has percentages of requests."),
        data: "The first 6 are timeouts at 2,200. At 2,300 9.2 % of the requests fail. The percentages that were \
               drawn are of the successes: at 8,000 42.7 %, where 29.9 % of the requests failed.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Figure, Tag::Source],
        answer: LADDERS,
        recomputations: &[
            data("the first step with a failure", "/s", 2_200.0, Agreement::Exact, first_failure_rps),
            data("timeouts at 2,200", "", 6.0, Agreement::Exact, || {
                at(2_200, |step| f64::from(step.timed_out))
            }),
            data("failures at 2,300, over requests", "%", 9.2, Agreement::Rounded(0.1), || {
                at(2_300, Step::failed_percent)
            }),
            data("failures at 8,000, over successes", "%", 42.7, Agreement::Rounded(0.1), || {
                at(8_000, Step::failed_over_answered_percent)
            }),
            data("the same as it was drawn", "%", 42.7, Agreement::Rounded(0.1), || {
                at(8_000, |step| step.figure_8_percent.iter().sum())
            }),
            data("failures at 8,000, over requests", "%", 29.9, Agreement::Rounded(0.1), || {
                at(8_000, Step::failed_percent)
            }),
        ],
    },
    Statement {
        id: "figure-8-classes",
        places: &[Place::Section("V"), Place::Figure(8)],
        printed: Some(
            "A connection timed out if no cookie came within ten seconds; the resource was temporarily unavailable \
             if the request could not be processed.",
        ),
        data: "The client waits 15 s to connect, and 15 s for each read and write. Error 11 is what a read reports \
               on Linux when such a deadline passes: so both classes are deadlines, of connecting and, as an \
               inference, of waiting for data. Answered exchanges last up to 25.7 s.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Source],
        answer: LADDERS,
        recomputations: &[data("the longest d_CKE of all steps", "s", 25.7, Agreement::Rounded(0.1), || {
            let longest = past_capacity().map(|step| step.d_cke_ms.max).fold(f64::NAN, f64::max);
            longest / 1e3
        })],
    },
    Statement {
        id: "unaccounted-at-3200",
        places: &[Place::Data],
        printed: None,
        data: "In each step the client's successes and errors add up to what it was to ask for, but at 3,200: there \
               96 of 4,000 are in no class.",
        tags: &[Tag::Raw],
        answer: Answer::Recomputed,
        recomputations: &[
            data("exchanges that the client was to make at 3,200", "", 4_000.0, Agreement::Exact, || {
                at(3_200, |step| f64::from(step.asked()))
            }),
            data("those that the results do not have", "", 96.0, Agreement::Exact, || {
                at(3_200, |step| f64::from(step.asked() - step.requests()))
            }),
        ],
    },
    Statement {
        id: "figure-9",
        places: &[Place::Section("V"), Place::Section("VI"), Place::Figure(9)],
        printed: Some(
            "Load does not affect d_CNTS: it stays near 0.7 ms, as the performance study had it, with few outliers.",
        ),
        data: "The curve called median, the mean of the fastest half, is 0.700 ms on average; the performance study \
               had 0.87 ms. The curve called 95th percentile reaches 36.2 ms at 4,400 and 51.2 ms at 5,300.",
        tags: &[Tag::Printed, Tag::Figure],
        answer: LADDERS,
        recomputations: &[
            printed(
                "the mean over all steps of the fastest half",
                "ms",
                0.7,
                Agreement::Rounded(0.1),
                || mean_of_drawn(|step| step.figure_9_ms),
            ),
            data("the same", "ms", 0.700, Agreement::Rounded(0.001), || {
                mean_of_drawn(|step| step.figure_9_ms)
            }),
            data("the fastest 95 % at 4,400", "ms", 36.2, Agreement::Rounded(0.1), || {
                at(4_400, |step| step.figure_9_ms.fastest_95)
            }),
            data("the fastest 95 % at 5,300", "ms", 51.2, Agreement::Rounded(0.1), || {
                at(5_300, |step| step.figure_9_ms.fastest_95)
            }),
        ],
    },
    Statement {
        id: "too-few-transfers",
        places: &[Place::Section("V")],
        printed: Some(
            "It is supposed that d_CNTS is unaffected as clients, each with its key exchange, send too few requests.",
        ),
        data: "The data cannot tell: no step has more transfers than three for each exchange.",
        tags: &[Tag::Printed],
        answer: Answer::Measured(&[Part::TransfersPerExchange, Part::TransfersAlone]),
        recomputations: &[],
    },
    Statement {
        id: "figure-10",
        places: &[Place::Section("V"), Place::Section("VI"), Place::Figure(10)],
        printed: Some("Load does not affect d_SKE."),
        data: "The curve called median is 12.25 us on average, which is below the 18.13 us without load, and stays \
               within 11.84 and 13.04 us. The real medians, too, are below it.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Figure],
        answer: LADDERS,
        recomputations: &[
            data(
                "the mean over all steps of the fastest half",
                "us",
                12.25,
                Agreement::Rounded(0.01),
                || mean_of_drawn(|step| step.figure_10_us),
            ),
            data("its smallest value", "us", 11.84, Agreement::Rounded(0.01), || {
                let values = steps().iter().map(|step| step.figure_10_us.fastest_50);
                values.fold(f64::NAN, f64::min)
            }),
            data("its largest value", "us", 13.04, Agreement::Rounded(0.01), || {
                let values = steps().iter().map(|step| step.figure_10_us.fastest_50);
                values.fold(f64::NAN, f64::max)
            }),
        ],
    },
    Statement {
        id: "figure-11",
        places: &[Place::Section("V"), Place::Section("VI"), Place::Figure(11)],
        printed: Some("Load does not affect d_SNTP."),
        data: "The curve called median is 0.682 us on average, a third of the 2.03 us without load.",
        tags: &[Tag::Printed, Tag::Figure],
        answer: LADDERS,
        recomputations: &[data(
            "the mean over all steps of the fastest half",
            "us",
            0.682,
            Agreement::Rounded(0.001),
            || mean_of_drawn(|step| step.figure_11_us),
        )],
    },
    Statement {
        id: "figure-12",
        places: &[Place::Section("V"), Place::Section("VI"), Place::Figure(12)],
        printed: Some("Load does not affect d_SNTS."),
        data: "The curve called median is 60.7 us on average, below the 80.80 us without load.",
        tags: &[Tag::Printed, Tag::Figure],
        answer: LADDERS,
        recomputations: &[data(
            "the mean over all steps of the fastest half",
            "us",
            60.7,
            Agreement::Rounded(0.1),
            || mean_of_drawn(|step| step.figure_12_us),
        )],
    },
    Statement {
        id: "future-work",
        places: &[Place::Section("V"), Place::Section("VI")],
        printed: Some(
            "Left to others: more requests, more transfers for each cookie, other implementations, and transfers \
             that go on.",
        ),
        data: "The settings of this commit ask for 30 transfers for each cookie, but none of the results that were \
               at hand are of that.",
        tags: &[Tag::Printed, Tag::Source],
        answer: Answer::Measured(&[Part::TransfersPerExchange, Part::TransfersAlone, Part::Field]),
        recomputations: &[],
    },
];
