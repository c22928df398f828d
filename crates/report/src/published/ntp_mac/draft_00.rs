//! draft-aanchal4-ntp-mac-00, "Message Authentication Codes for the Network Time Protocol" (2016): three tables. It
//! recommends GMAC, "because it has the best latency and throughput performance" (section 5).

use super::{Column, Content, Lengths, Machine, Table, XEON_THROUGHPUT};
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
    Table::throughput(DRAFT, PERFORMANCE, &XEON_THROUGHPUT),
    Table::cycles(
        DRAFT,
        PERFORMANCE,
        &[
            Column::new(Machine::XeonWith, [16.03, 18.2, 39.4, 6.6, 3.009, 14.4]),
            Column::new(Machine::XeonWithout, [15.7, 18.1, 39.0, 11.3, 10.8, 15.0]),
        ],
    ),
];
