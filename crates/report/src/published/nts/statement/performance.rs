//! What the paper says of one client and an unloaded server: section IV, and what section VI makes of it.

use super::super::Measure;
use super::super::capture::{LOOK_UPS_NS, TRANSFERS_NS, median_ms};
use super::super::recompute::{
    Agreement, WithExchange, average_ms, d_cntp_ms, file_read_us, increase_percent,
    symmetric_difference_percent, unloaded,
};
use super::{Answer, Part, Place, Recomputation, Statement, Tag, data, printed};

/// A median of Table II, which it calls an average, to the last digit that it printed.
const fn median(unit: &'static str, stated: f64, compute: fn() -> f64) -> Recomputation {
    printed("the median of the raw results", unit, stated, Agreement::Rounded(0.01), compute)
}

/// An end of a distribution of Figures 4 and 5.
const fn end(what: &'static str, unit: &'static str, stated: f64, compute: fn() -> f64) -> Recomputation {
    printed(what, unit, stated, Agreement::Rounded(0.01), compute)
}

/// A row of Table II.
const fn average(
    id: &'static str,
    printed: &'static str,
    data: &'static str,
    recomputations: &'static [Recomputation],
) -> Statement {
    Statement {
        id,
        places: &[Place::Table("II")],
        printed: Some(printed),
        data,
        tags: &[Tag::Printed, Tag::Raw],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations,
    }
}

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        id: "unloaded-setup",
        places: &[Place::Section("IV"), Place::Figure(3)],
        printed: Some("One client makes one key exchange and one transfer a second, 1,000 of each."),
        data: "The client's results have 1,000 values of each. The server's have 3,030 of d_SKE and 3,029 of d_SNTP \
               and d_SNTS: three runs, of which the client's show one.",
        tags: &[Tag::Printed, Tag::Raw],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations: &[],
    },
    Statement {
        id: "figure-4",
        places: &[Place::Figure(4)],
        printed: Some(
            "d_CNTS, which the caption calls d_CNTP, has 0.74 to 2.44 ms; d_CKE has 2.02 to 5.49 ms.",
        ),
        data: "Raw results and drawing agree.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Figure],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations: &[
            end("the smallest d_CNTS", "ms", 0.74, || unloaded(Measure::Cnts, 0)),
            end("the largest d_CNTS", "ms", 2.44, || unloaded(Measure::Cnts, 100)),
            end("the smallest d_CKE", "ms", 2.02, || unloaded(Measure::Cke, 0)),
            end("the largest d_CKE", "ms", 5.49, || unloaded(Measure::Cke, 100)),
        ],
    },
    Statement {
        id: "figure-5",
        places: &[Place::Figure(5)],
        printed: Some("d_SNTP has 0.75 to 31.54 us, d_SKE 12.30 to 31.35 us, d_SNTS 62.53 to 115.93 us."),
        data: "Raw results and drawing agree.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Figure],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations: &[
            end("the smallest d_SNTP", "us", 0.75, || unloaded(Measure::Sntp, 0)),
            end("the largest d_SNTP", "us", 31.54, || unloaded(Measure::Sntp, 100)),
            end("the smallest d_SKE", "us", 12.30, || unloaded(Measure::Ske, 0)),
            end("the largest d_SKE", "us", 31.35, || unloaded(Measure::Ske, 100)),
            end("the smallest d_SNTS", "us", 62.53, || unloaded(Measure::Snts, 0)),
            end("the largest d_SNTS", "us", 115.93, || unloaded(Measure::Snts, 100)),
        ],
    },
    average(
        "table-2-d-cke",
        "d_CKE is 2.26 ms on average.",
        "That is the median; the mean is 2.289 ms.",
        &[median("ms", 2.26, || unloaded(Measure::Cke, 50))],
    ),
    average(
        "table-2-d-cntp",
        "d_CNTP is 0.87 ms on average.",
        "That is the median of d_CNTS, whose mean is 0.876 ms. d_CNTP was not measured.",
        &[median("ms", 0.87, || unloaded(Measure::Cnts, 50))],
    ),
    average(
        "table-2-d-sntp",
        "d_SNTP is 2.03 us on average.",
        "That is the median; the mean is 2.420 us.",
        &[median("us", 2.03, || unloaded(Measure::Sntp, 50))],
    ),
    average(
        "table-2-d-ske",
        "d_SKE is 18.13 us on average.",
        "That is the median; the mean is 17.956 us.",
        &[median("us", 18.13, || unloaded(Measure::Ske, 50))],
    ),
    average(
        "table-2-d-snts",
        "d_SNTS is 80.80 us on average.",
        "That is the median; the mean is 85.771 us.",
        &[median("us", 80.80, || unloaded(Measure::Snts, 50))],
    ),
    Statement {
        id: "d-cntp-0-79-ms",
        places: &[Place::Section("IV")],
        printed: Some("d_CNTP, a plain transfer, takes 0.79 ms on average."),
        data: "It is computed by equation (6) from Table II: 0.87 ms less 0.0808 ms.",
        tags: &[Tag::Printed, Tag::Raw],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations: &[printed("d_CNTP by equation (6)", "ms", 0.79, Agreement::Rounded(0.01), d_cntp_ms)],
    },
    Statement {
        id: "transfer-9-73-percent",
        places: &[Place::Section("IV")],
        printed: Some("An authenticated transfer alone takes 9.73 % longer than a plain one."),
        data: "The increase is 10.24 %. 9.73 is the symmetric difference, over the mean of both: 9.7396, cut off.",
        tags: &[Tag::Printed, Tag::Raw],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations: &[
            printed(
                "the symmetric difference of d_CNTP and d_CNTS",
                "%",
                9.73,
                Agreement::Truncated(0.01),
                || symmetric_difference_percent(d_cntp_ms(), average_ms(Measure::Cnts)),
            ),
            data("the same", "%", 9.7396, Agreement::Rounded(0.0001), || {
                symmetric_difference_percent(d_cntp_ms(), average_ms(Measure::Cnts))
            }),
            data("the increase from d_CNTP to d_CNTS", "%", 10.24, Agreement::Rounded(0.01), || {
                increase_percent(d_cntp_ms(), average_ms(Measure::Cnts))
            }),
        ],
    },
    Statement {
        id: "exchange-117-percent",
        places: &[Place::Section("IV"), Place::Section("VI")],
        printed: Some("With the key exchange, it takes 117 % longer than a plain transfer."),
        data: "117.757, cut off, is the symmetric difference of d_CNTP, and d_CKE and d_CNTP; the transfer after the \
               exchange is a plain one in it. With d_CNTS in its place it is 119.45. The increase is 286 % with a \
               plain and 297 % with an authenticated transfer, and 105.7 % where three transfers share an \
               exchange.",
        tags: &[Tag::Printed, Tag::Raw],
        answer: Answer::Measured(&[Part::Unloaded, Part::TransfersPerExchange]),
        recomputations: &[
            printed(
                "the symmetric difference of d_CNTP, and d_CKE and d_CNTP",
                "%",
                117.0,
                Agreement::Truncated(1.0),
                || WithExchange::DifferencePlain.percent(),
            ),
            data("the same", "%", 117.757, Agreement::Rounded(0.001), || {
                WithExchange::DifferencePlain.percent()
            }),
            data(
                "the symmetric difference of d_CNTP, and d_CKE and d_CNTS",
                "%",
                119.45,
                Agreement::Rounded(0.01),
                || WithExchange::DifferenceAuthenticated.percent(),
            ),
            data("the increase from d_CNTP to d_CKE and d_CNTP", "%", 286.0, Agreement::Rounded(1.0), || {
                WithExchange::IncreasePlain.percent()
            }),
            data("the increase from d_CNTP to d_CKE and d_CNTS", "%", 297.0, Agreement::Rounded(1.0), || {
                WithExchange::IncreaseAuthenticated.percent()
            }),
            data(
                "the increase from d_CNTP to a third of d_CKE and d_CNTS",
                "%",
                105.7,
                Agreement::Rounded(0.1),
                || WithExchange::IncreaseOneInThree.percent(),
            ),
        ],
    },
    Statement {
        id: "three-times-by-the-network",
        places: &[Place::Section("IV")],
        printed: Some(
            "d_CKE takes about 3 times as long as d_CNTP, and nearly all of it is latency of the network.",
        ),
        data: "The ratio is 2.86. By the capture, round trips are 0.36 ms of d_CKE's 2.26, or 16 %.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Capture],
        answer: Answer::Measured(&[Part::RoundTrips]),
        recomputations: &[
            data("d_CKE over d_CNTP", "", 2.86, Agreement::Rounded(0.01), || {
                average_ms(Measure::Cke) / d_cntp_ms()
            }),
            printed("the same, as about three", "", 3.0, Agreement::Rounded(1.0), || {
                average_ms(Measure::Cke) / d_cntp_ms()
            }),
            data("the share of three round trips in d_CKE", "%", 16.0, Agreement::Rounded(1.0), || {
                use super::super::capture::{EXCHANGE_ROUND_TRIP_COUNT, ROUND_TRIPS_NS};
                let trips = f64::from(EXCHANGE_ROUND_TRIP_COUNT) * median_ms(&ROUND_TRIPS_NS);
                trips / average_ms(Measure::Cke) * 100.0
            }),
        ],
    },
    Statement {
        id: "look-ups-in-the-capture",
        places: &[Place::Data],
        printed: None,
        data: "Before each exchange and before each transfer the client looks the server's name up, in 0.36 ms of \
               the 0.87 of d_CNTS. On the wire a transfer takes 0.21 ms from request to answer. Both are medians.",
        tags: &[Tag::Capture],
        answer: Answer::Measured(&[Part::LookUp]),
        recomputations: &[
            data("the median look-up", "ms", 0.36, Agreement::Rounded(0.01), || median_ms(&LOOK_UPS_NS)),
            data("the median transfer on the wire", "ms", 0.21, Agreement::Rounded(0.01), || {
                median_ms(&TRANSFERS_NS)
            }),
        ],
    },
    Statement {
        id: "like-ptp",
        places: &[Place::Section("IV")],
        printed: Some("The costs are in line with those of security for PTP, as reported in reference [9]."),
        data: "No figure of that work is quoted, so nothing can be compared.",
        tags: &[Tag::Printed],
        answer: Answer::NotHere("We have neither that work's figures nor an implementation of PTP."),
        recomputations: &[],
    },
    Statement {
        id: "preloaded-keys",
        places: &[Place::Section("IV")],
        printed: Some(
            "d_SNTS and d_SKE differ, as key exchange holds its keys in memory, while the time server asks memcached.",
        ),
        data: "Both hold them in memory. In an earlier run of theirs, before the server read a file for each \
               request, the medians were 20.13 us of d_SNTS and 24.85 us of d_SKE. By that ratio about 66 of the \
               80.80 us are the file, as an inference.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Source],
        answer: Answer::Measured(&[Part::Operations]),
        recomputations: &[data(
            "what reading the file takes, by inference",
            "us",
            66.0,
            Agreement::Rounded(1.0),
            file_read_us,
        )],
    },
    Statement {
        id: "server-overhead",
        places: &[Place::Section("VI")],
        printed: Some(
            "At the server a cookie costs 18.13 us in the exchange, and a request goes from 2.03 us to 80.8 us.",
        ),
        data: "That is a factor of 39.8. As d_SNTS begins where d_SNTP ends, a request with NTS takes both: 40.8 \
               times as long as a plain one. 18.13 us is for eight cookies.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Source],
        answer: Answer::Measured(&[Part::Unloaded, Part::Field]),
        recomputations: &[
            printed("the median of d_SKE", "us", 18.13, Agreement::Rounded(0.01), || {
                unloaded(Measure::Ske, 50)
            }),
            printed("the median of d_SNTP", "us", 2.03, Agreement::Rounded(0.01), || {
                unloaded(Measure::Sntp, 50)
            }),
            printed("the median of d_SNTS", "us", 80.8, Agreement::Rounded(0.1), || {
                unloaded(Measure::Snts, 50)
            }),
            data("d_SNTS over d_SNTP", "", 39.8, Agreement::Rounded(0.1), || {
                average_ms(Measure::Snts) / average_ms(Measure::Sntp)
            }),
            data("d_SNTP and d_SNTS over d_SNTP", "", 40.8, Agreement::Rounded(0.1), || {
                (average_ms(Measure::Sntp) + average_ms(Measure::Snts)) / average_ms(Measure::Sntp)
            }),
        ],
    },
];
