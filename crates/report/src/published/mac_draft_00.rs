//! draft-aanchal4-ntp-mac-00, "Message Authentication Codes for the Network Time Protocol" (2016): three tables. It
//! recommends GMAC, "because it has the best latency and throughput performance" (section 5).

use super::mac::{Column, Content, Lengths, Machine, Table};
use crate::mac::Algorithm;

const fn lengths(algorithm: Algorithm, key_size: u32, tag_size: u32, security_bits: Option<u32>) -> Lengths {
    Lengths { algorithm, key_size, tag_size, security_bits }
}

const DRAFT: &str = "draft-aanchal4-ntp-mac-00";
const PERFORMANCE: &str = "section 4, Performance Results";

/// The tables.
pub const TABLES: [Table; 3] = [
    Table {
        draft: DRAFT,
        section: "section 2, MAC Algorithms",
        title: "Input key length, output tag length (bytes), security level (bits)",
        content: Content::Lengths(
            &[
                lengths(Algorithm::Md5, 16, 16, None),
                lengths(Algorithm::HmacMd5, 16, 16, None),
                lengths(Algorithm::HmacSha224, 16, 28, Some(112)),
                lengths(Algorithm::Cmac128, 16, 16, Some(128)),
                lengths(Algorithm::Gmac128, 16, 16, Some(128)),
                lengths(Algorithm::Poly1305, 32, 16, Some(128)),
            ],
            true,
        ),
    },
    Table {
        draft: DRAFT,
        section: PERFORMANCE,
        title: "Throughput in terms of number of 48-byte NTP payload processed per second",
        content: Content::Throughput(&[
            Column { machine: Machine::XeonWith, figures: [3118.0, 2742.0, 1265.0, 7567.0, 16612.0, 2598.0] },
            Column {
                machine: Machine::XeonWithout,
                figures: [3165.0, 2749.0, 1267.0, 4388.0, 4627.0, 2398.0],
            },
        ]),
    },
    Table {
        draft: DRAFT,
        section: PERFORMANCE,
        title: "Latency in terms of number of CPU cycles per byte when processing a 48-byte NTP payload",
        content: Content::Cycles(&[
            Column { machine: Machine::XeonWith, figures: [16.03, 18.2, 39.4, 6.6, 3.009, 14.4] },
            Column { machine: Machine::XeonWithout, figures: [15.7, 18.1, 39.0, 11.3, 10.8, 15.0] },
        ]),
    },
];
