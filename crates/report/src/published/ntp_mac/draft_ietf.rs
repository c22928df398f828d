//! draft-ietf-ntp-mac, "Message Authentication Codes for the Network Time Protocol" (October 26, 2016): six tables. It
//! withdraws the recommendation of GMAC in favour of CMAC, as NTP cannot ensure that nonces never repeat (section 9).
//! It became RFC 8573.

use super::{Advantage, Column, Content, Lengths, Machine, Table, XEON_THROUGHPUT};
use crate::mac::Algorithm;

const fn lengths(algorithm: Algorithm, key_size: u32, tag_size: u32) -> Lengths {
    Lengths { algorithm, key_size, tag_size, security_bits: None }
}

const fn advantage(algorithm: Algorithm, formula: &'static str) -> Advantage {
    Advantage { algorithm, formula }
}

const DRAFT: &str = "draft-ietf-ntp-mac";
const PERFORMANCE: &str = "section 4, Performance Results";
const OTHERS: &str = "section 5, Other Hardware Platforms";

/// The tables.
pub const TABLES: [Table; 6] = [
    Table {
        draft: DRAFT,
        section: "section 2, MAC Algorithms",
        title: "Input key length, output tag length (bytes)",
        content: Content::Lengths(
            &[
                lengths(Algorithm::Md5, 16, 16),
                lengths(Algorithm::HmacMd5, 16, 16),
                lengths(Algorithm::HmacSha224, 16, 16),
                lengths(Algorithm::Cmac128, 16, 16),
                lengths(Algorithm::Gmac128, 16, 16),
                lengths(Algorithm::Poly1305, 32, 16),
            ],
            false,
        ),
    },
    Table::throughput(DRAFT, PERFORMANCE, &XEON_THROUGHPUT),
    Table::cycles(
        DRAFT,
        PERFORMANCE,
        &[
            Column::new(Machine::XeonWith, [16.0, 18.2, 39.4, 6.6, 3.0, 14.4]),
            Column::new(Machine::XeonWithout, [15.7, 18.1, 39.0, 11.3, 10.8, 15.0]),
        ],
    ),
    Table::throughput(
        DRAFT,
        OTHERS,
        &[
            Column::new(Machine::Ppc74xx, [600.0, 463.0, 276.0, 576.0, 681.0, 335.0]),
            Column::new(Machine::CortexA9, [543.0, 415.0, 245.0, 412.0, 1362.0, 379.0]),
            Column::new(Machine::CortexA53, [748.0, 864.0, 357.0, 614.0, 2193.0, 580.0]),
            Column::new(Machine::Marvell, [383.0, 438.0, 150.0, 246.0, 453.0, 273.0]),
        ],
    ),
    Table::cycles(
        DRAFT,
        OTHERS,
        &[
            Column::new(Machine::Ppc74xx, [52.1, 67.4, 113.3, 54.2, 50.0, 93.1]),
            Column::new(Machine::CortexA9, [38.4, 50.3, 85.2, 50.5, 15.3, 55.0]),
            Column::new(Machine::CortexA53, [33.4, 29.0, 70.1, 40.7, 11.4, 43.1]),
            Column::new(Machine::Marvell, [65.3, 57.1, 166.5, 101.2, 55.1, 91.7]),
        ],
    ),
    Table {
        draft: DRAFT,
        section: "section 6, Security Considerations",
        title: "Advantage of an adversary that wishes to forge a MAC in terms of number of queries (q)",
        content: Content::Advantages(&[
            advantage(Algorithm::HmacMd5, "q^2/2^{128}"),
            advantage(Algorithm::HmacSha224, "q^2/2^{224}"),
            advantage(Algorithm::Cmac128, "q^2/2^{128}"),
            advantage(Algorithm::Gmac128, "q^2/2^{128}"),
            advantage(Algorithm::Poly1305, "{e^{{q^2}/{2^{129}}}}/2^{103}"),
        ]),
    },
];
