//! What the paper says before it measures: its subject, its measures, and what it measured on.

use super::super::capture::{EXCHANGE_ROUND_TRIP_COUNT, ROUND_TRIPS_NS, median_ms, response_size};
use super::super::recompute::{
    Agreement, WithExchange, asked_rps, at, average_ms, d_cntp_ms, published_knee, strict_knee,
};
use super::super::{
    AUX_COUNT, AUX_RPS, AUX_TRANSFERS_PER_EXCHANGE, MEASURED_RPS_MAX, Measure, TRANSFERS_PER_EXCHANGE,
    UNLOADED_COUNT, WARM_UPS,
};
use super::{Answer, Part, Place, Statement, Tag, data, printed};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        id: "abstract-116-percent",
        places: &[Place::Abstract],
        printed: Some("An individual authenticated transfer takes about 116 % longer than a plain one."),
        data: "No formula yields 116. Sections IV and VI print 117, which one does; the increase is 297 %.",
        tags: &[Tag::Printed, Tag::Raw],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations: &[data(
            "the increase from d_CNTP to d_CKE and d_CNTS",
            "%",
            297.0,
            Agreement::Rounded(1.0),
            || WithExchange::IncreaseAuthenticated.percent(),
        )],
    },
    Statement {
        id: "capacity-2000",
        places: &[Place::Abstract, Place::Section("V"), Place::Section("VI")],
        printed: Some(
            "Key exchange keeps up to about 2,000 a second; beyond, it takes substantially longer.",
        ),
        data: "The last normal step is 2,000. At 2,100 the median is 11.5 ms, five times the unloaded one, and of \
               the 59 later steps 58 exceed twice the unloaded median. A rule that asks for every later step would \
               say 2,400, as 2,300 falls back to 2.9 ms.",
        tags: &[Tag::Printed, Tag::Raw],
        answer: Answer::Measured(&[Part::LadderWholeCore, Part::LadderToScale]),
        recomputations: &[
            printed("the last step before the knee", "/s", 2_000.0, Agreement::Exact, || {
                published_knee().map_or(f64::NAN, |knee| f64::from(knee.offered_rps - 100))
            }),
            data("the knee", "/s", 2_100.0, Agreement::Exact, || {
                published_knee().map_or(f64::NAN, |knee| f64::from(knee.offered_rps))
            }),
            data("later steps that exceed the limit, too", "", 58.0, Agreement::Exact, || {
                published_knee().map_or(f64::NAN, |knee| knee.exceeding_count as f64)
            }),
            data("the knee if every later step had to", "/s", 2_400.0, Agreement::Exact, || {
                strict_knee().map_or(f64::NAN, |knee| f64::from(knee.offered_rps))
            }),
            data("the median of d_CKE at 2,100", "ms", 11.5, Agreement::Rounded(0.1), || {
                at(2_100, |step| step.d_cke_ms.p50)
            }),
            data("the median of d_CKE at 2,300", "ms", 2.9, Agreement::Rounded(0.1), || {
                at(2_300, |step| step.d_cke_ms.p50)
            }),
        ],
    },
    Statement {
        id: "isolated-operations",
        places: &[Place::Section("I")],
        printed: Some(
            "The TLS exchange, the making of cookies and the signing of messages are measured apart.",
        ),
        data: "No span of the source has one of them alone. The handshake is in d_CKE only; d_SKE makes eight \
               cookies and lays out the response; d_SNTS opens, verifies, makes a cookie and seals.",
        tags: &[Tag::Printed, Tag::Source],
        answer: Answer::Measured(&[Part::Operations]),
        recomputations: &[],
    },
    Statement {
        id: "key-establishment",
        places: &[Place::Section("II"), Place::Figure(1)],
        printed: Some(
            "A key exchange yields a cookie. Keys of 16 octets in memcached seal cookies, and the time server reads \
             them there.",
        ),
        data: "An exchange yields eight cookies: its response has 854 octets, by the TLS record that it fills. Keys \
               are of an hour each, 24 old and 2 future ones are kept; both roles copy them from memcached into a \
               hash map, and use that.",
        tags: &[Tag::Printed, Tag::Source, Tag::Capture],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations: &[data(
            "octets of a response with eight cookies of 100 octets",
            "octets",
            854.0,
            Agreement::Exact,
            || f64::from(response_size(8, 100)),
        )],
    },
    Statement {
        id: "close-notify",
        places: &[Place::Section("II")],
        printed: Some("Each end sends close_notify right after its message."),
        data: "Neither does in the capture: the server's last record has the length of its response and no more, and \
               the client, having read it, shuts down its half of the TCP connection.",
        tags: &[Tag::Printed, Tag::Source, Tag::Capture],
        answer: Answer::Settled(
            "Our ends send it, as RFC 8915, section 4, asks for; our client waits with it until it has the response.",
        ),
        recomputations: &[],
    },
    Statement {
        id: "fresh-cookies",
        places: &[Place::Section("II"), Place::Section("III"), Place::Section("V")],
        printed: Some(
            "Section II: the server gives a fresh cookie with each answer. Sections III and V: this program does not.",
        ),
        data: "The source makes one for each authenticated answer, within d_SNTS. The client does not keep it.",
        tags: &[Tag::Printed, Tag::Source],
        answer: Answer::Measured(&[Part::Unloaded, Part::TransfersPerExchange]),
        recomputations: &[],
    },
    Statement {
        id: "clock-and-warm-ups",
        places: &[Place::Section("III")],
        printed: Some(
            "Time is read by Rust's Instant::now(). Ten exchanges and transfers warm up. Key exchange and NTP share a \
             host.",
        ),
        data: "Source and settings agree. The server's results have the warm-ups in them all the same: 3,030 values \
               are three times 1,010.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Source],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations: &[data(
            "values of three runs with their warm-ups",
            "",
            3_030.0,
            Agreement::Exact,
            || 3.0 * f64::from(UNLOADED_COUNT + WARM_UPS),
        )],
    },
    Statement {
        id: "timing-diagram",
        places: &[Place::Section("III"), Place::Figure(2)],
        printed: Some("Ten instants, t1 to t10, at client and server."),
        data: "The drawing ends d_CNTS at t9 and has no t10, which equation (2) takes.",
        tags: &[Tag::Printed, Tag::Figure],
        answer: Answer::Settled(
            "By our reading t9 is t10: the client has the answer, and has authenticated it.",
        ),
        recomputations: &[],
    },
    Statement {
        id: "d-cke-and-d-cnts",
        places: &[Place::Equation(1), Place::Equation(2)],
        printed: Some("d_CKE is t4 - t1, and d_CNTS is t10 - t5."),
        data: "Both begin before the look-up of the server's name. d_CKE has the set-up of TLS in it and the \
               half-close at the end; d_CNTS has a new socket in it.",
        tags: &[Tag::Printed, Tag::Source, Tag::Capture],
        answer: Answer::Measured(&[Part::Unloaded, Part::LookUp]),
        recomputations: &[],
    },
    Statement {
        id: "d-ske",
        places: &[Place::Section("III"), Place::Equation(3)],
        printed: Some(
            "d_SKE is t3 - t2: from the arrival of the request, with handshake and key store, to the finished cookie.",
        ),
        data: "The span begins when the request has been parsed, after the handshake, and ends when the response with \
               eight cookies is built.",
        tags: &[Tag::Printed, Tag::Source],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations: &[],
    },
    Statement {
        id: "d-snts-and-d-sntp",
        places: &[Place::Section("III"), Place::Equation(4), Place::Equation(5)],
        printed: Some(
            "d_SNTS is t8 - t7, and makes no cookie; d_SNTP is t7 - t6, and makes the header. Together they are the \
             server's time.",
        ),
        data: "d_SNTP has the parsing of the request in it, too. d_SNTS begins where d_SNTP ends: it reads a YAML \
               file of settings for each request, opens the cookie, parses again, verifies, makes a fresh cookie and \
               seals.",
        tags: &[Tag::Printed, Tag::Source],
        answer: Answer::Measured(&[Part::Unloaded, Part::Operations]),
        recomputations: &[],
    },
    Statement {
        id: "d-cntp",
        places: &[Place::Section("III"), Place::Equation(6)],
        printed: Some("A plain transfer takes d_CNTS - d_SNTS."),
        data: "What is left, 0.7892 ms by Table II, keeps the name look-up, the new socket and the client's own \
               cryptography. No plain transfer was measured.",
        tags: &[Tag::Printed, Tag::Source],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations: &[data(
            "d_CNTP by equation (6)",
            "ms",
            0.7892,
            Agreement::Rounded(0.0001),
            d_cntp_ms,
        )],
    },
    Statement {
        id: "definitions",
        places: &[Place::Table("I")],
        printed: Some("Six measures are defined; d_SKE is the time to create an encrypted cookie."),
        data: "Of d_SKE the table's definition fits the source, and the one in the text of section III, with the \
               handshake, does not.",
        tags: &[Tag::Printed, Tag::Source],
        answer: Answer::Measured(&[Part::Unloaded]),
        recomputations: &[],
    },
    Statement {
        id: "names-of-measures",
        places: &[
            Place::Section("III"),
            Place::Section("V"),
            Place::Table("I"),
            Place::Table("II"),
            Place::Figure(4),
            Place::Figure(5),
            Place::Figure(11),
        ],
        printed: Some(
            "One measure is d_SNTNTP, d_SNTP and d_SNTTP. Figure 4 and Table II say d_CNTP where d_CNTS was measured. \
             Section V names d_SNTS twice for Figures 10 to 12.",
        ),
        data: "The results are in files of their own, and the program that drew the figures tells which is which: \
               d_SNTP; d_CNTS; and d_SKE, d_SNTP and d_SNTS.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Source],
        answer: Answer::Settled("Here each measure has one name; d_CNTP is only what equation (6) yields."),
        recomputations: &[],
    },
    Statement {
        id: "hardware",
        places: &[Place::Section("III"), Place::Section("IV"), Place::Section("V")],
        printed: Some(
            "Server: i5-2500K, four cores at 3.3 GHz, 24 GB. Measured client: virtual machine, eight cores, 16 GB. 15 \
             auxiliary clients: four cores and 8 GB each.",
        ),
        data: "The data do not tell the hardware. In the capture a round trip of the path took 0.12 ms.",
        tags: &[Tag::Printed, Tag::Capture],
        answer: Answer::NotHere(
            "One machine with two cores is server and clients here: so shapes and ratios are compared, and the path's \
             round trip is set to theirs.",
        ),
        recomputations: &[data("the median round trip of TCP", "ms", 0.12, Agreement::Rounded(0.01), || {
            median_ms(&ROUND_TRIPS_NS)
        })],
    },
    Statement {
        id: "ladder",
        places: &[Place::Section("V"), Place::Figure(6)],
        printed: Some(
            "One client can send about 1,500 requests a second. The measured one asks for 100 to 500 by 100, 20 s \
             each, and 15 auxiliary ones for 500 each, up to 8,000. They start first, and all machines are switched \
             off and on between steps.",
        ),
        data: "The steps are as told. Pauses between requests are rounded to whole milliseconds, so that a client \
               told 300 and one told 400 both ask for 333 a second at most; its count of requests is as told. \
               Between steps the scripts reboot all hosts.",
        tags: &[Tag::Printed, Tag::Raw, Tag::Source],
        answer: Answer::Measured(&[Part::LadderWholeCore, Part::LadderToScale]),
        recomputations: &[
            printed("the highest load", "/s", 8_000.0, Agreement::Exact, || {
                f64::from(AUX_COUNT * AUX_RPS + MEASURED_RPS_MAX)
            }),
            data("the rate of a client that is told 300", "/s", 333.0, Agreement::Rounded(1.0), || {
                asked_rps(300.0)
            }),
            data("the rate of a client that is told 400", "/s", 333.0, Agreement::Rounded(1.0), || {
                asked_rps(400.0)
            }),
        ],
    },
    Statement {
        id: "power-cycles",
        places: &[Place::Section("V")],
        printed: Some("All machines are power-cycled between steps."),
        data: "The scripts reboot server and clients after each step, over SSH.",
        tags: &[Tag::Printed, Tag::Source],
        answer: Answer::NotHere(
            "The host of a study cannot be switched off by the study: server and generator are restarted before each \
             step, with ten warm-ups.",
        ),
        recomputations: &[],
    },
    Statement {
        id: "measured-client-only",
        places: &[Place::Section("V")],
        printed: Some("At client and server only requests of the measured client are recorded."),
        data: "The server takes a request for the measured client's if the address that it saw last is that \
               client's: the last one of the whole process, and not that of the request. Its results are cut into \
               steps by the client's count of lines.",
        tags: &[Tag::Printed, Tag::Source],
        answer: Answer::Measured(&[Part::LadderWholeCore, Part::LadderToScale]),
        recomputations: &[],
    },
    Statement {
        id: "three-transfers",
        places: &[Place::Section("V")],
        printed: Some(
            "Three transfers follow each key exchange, with one cookie, as the scalability study found an exchange \
             to take about three times as long as an authenticated transfer.",
        ),
        data: "The performance study is meant, and there the ratio to d_CNTS is 2.60. Auxiliary clients make one \
               transfer for each exchange.",
        tags: &[Tag::Printed, Tag::Source],
        answer: Answer::Measured(&[Part::LadderWholeCore, Part::LadderToScale, Part::TransfersPerExchange]),
        recomputations: &[data("d_CKE over d_CNTS", "", 2.60, Agreement::Rounded(0.01), || {
            average_ms(Measure::Cke) / average_ms(Measure::Cnts)
        })],
    },
    Statement {
        id: "transfers-offered",
        places: &[Place::Figure(9), Place::Figure(11), Place::Figure(12)],
        printed: Some(
            "The axes of Figures 9, 11 and 12 are three times the load, up to 24,000 requests a second.",
        ),
        data: "As auxiliary clients make one transfer for each exchange, at most 9,000 were asked for.",
        tags: &[Tag::Printed, Tag::Figure, Tag::Source],
        answer: Answer::Measured(&[Part::TransfersAlone]),
        recomputations: &[
            printed(
                "three transfers for each exchange of the highest load",
                "/s",
                24_000.0,
                Agreement::Exact,
                || f64::from((AUX_COUNT * AUX_RPS + MEASURED_RPS_MAX) * TRANSFERS_PER_EXCHANGE),
            ),
            data("transfers that all clients were to make", "/s", 9_000.0, Agreement::Exact, || {
                f64::from(
                    AUX_COUNT * AUX_RPS * AUX_TRANSFERS_PER_EXCHANGE
                        + MEASURED_RPS_MAX * TRANSFERS_PER_EXCHANGE,
                )
            }),
        ],
    },
    Statement {
        id: "round-trips-of-an-exchange",
        places: &[Place::Section("IV")],
        printed: Some("A key exchange takes three round trips of the network, and a transfer one."),
        data: "The capture agrees: three, of 0.12 ms each, so 0.36 of d_CKE's 2.26 ms.",
        tags: &[Tag::Printed, Tag::Capture],
        answer: Answer::Measured(&[Part::RoundTrips]),
        recomputations: &[data(
            "round trips of a key exchange",
            "ms",
            0.36,
            Agreement::Rounded(0.01),
            || f64::from(EXCHANGE_ROUND_TRIP_COUNT) * median_ms(&ROUND_TRIPS_NS),
        )],
    },
];
