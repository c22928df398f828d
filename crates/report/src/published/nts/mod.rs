//! Leclerc and Bartos, "Experimental Analysis of the Performance and Scalability of Network Time Security for the
//! Network Time Protocol": what it printed, and what its authors' own raw data say.
//!
//! The authors published their instrumented CFNTS with raw results, vector figures and a packet capture. So each
//! number of the paper can be put beside the data that it was made of: [`recompute`] does that, and [`statement`]
//! lists all that the paper says with a number or a claim. [`curves`] has the scalability experiment step by step,
//! [`unloaded`] the distributions without load. No code of theirs is here.

pub mod capture;
pub mod curves;
pub mod recompute;
pub mod statement;
mod table;
pub mod unloaded;

use strum::{EnumCount, VariantArray};

pub use table::Malformed;

/// How the paper is cited.
pub const SOURCE: &str = "Leclerc, Bartos, \u{201c}Experimental Analysis of the Performance and Scalability of \
                          Network Time Security for the Network Time Protocol\u{201d}";

/// How its authors' data are cited: raw results, vector figures, a capture, and the source of what made them.
pub const DATA_SOURCE: &str = "github.com/GriffinLeclerc/cfnts, commit 247c733";

/// What is measured, by the paper's Table I.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, VariantArray)]
pub enum Measure {
    /// d_CKE.
    Cke,
    /// d_CNTP.
    Cntp,
    /// d_CNTS.
    Cnts,
    /// d_SKE.
    Ske,
    /// d_SNTP.
    Sntp,
    /// d_SNTS.
    Snts,
}

impl Measure {
    /// All of them, in the order of Table I.
    pub const ALL: [Measure; Measure::COUNT] =
        *Measure::VARIANTS.first_chunk().expect("as many as there are");

    /// Its name, the same everywhere here. The paper also has others: [`Measure::other_symbols`].
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Measure::Cke => "d_CKE",
            Measure::Cntp => "d_CNTP",
            Measure::Cnts => "d_CNTS",
            Measure::Ske => "d_SKE",
            Measure::Sntp => "d_SNTP",
            Measure::Snts => "d_SNTS",
        }
    }

    /// Under what other names the paper has it.
    #[must_use]
    pub const fn other_symbols(self) -> &'static [&'static str] {
        match self {
            // In the caption of Figure 4 and in Table II.
            Measure::Cnts => &["d_CNTP"],
            // In the text, equation (5) and Table I; in the caption of Figure 11.
            Measure::Sntp => &["d_SNTNTP", "d_SNTTP"],
            Measure::Cke | Measure::Cntp | Measure::Ske | Measure::Snts => &[],
        }
    }

    /// What it is by Table I.
    #[must_use]
    pub const fn definition(self) -> &'static str {
        match self {
            Measure::Cke => "time until a client has its first encrypted cookie",
            Measure::Cntp => "approximate time of a transfer without authentication, computed",
            Measure::Cnts => "time that a client needs for an authenticated transfer",
            Measure::Ske => "time that a key exchange server needs to create an encrypted cookie",
            Measure::Sntp => "time that a time server needs to create an NTPv4 header",
            Measure::Snts => "time that a time server needs to process a cookie and authenticate a message",
        }
    }

    /// The unit in which the paper tells it.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Measure::Cke | Measure::Cntp | Measure::Cnts => Unit::Milliseconds,
            Measure::Ske | Measure::Sntp | Measure::Snts => Unit::Microseconds,
        }
    }
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// ms.
    Milliseconds,
    /// us.
    Microseconds,
}

impl Unit {
    /// How many nanoseconds it has.
    #[must_use]
    pub const fn ns(self) -> f64 {
        match self {
            Unit::Milliseconds => 1e6,
            Unit::Microseconds => 1e3,
        }
    }

    /// How it is written.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
        }
    }
}

/// A cell of Table II, "Average unloaded performance measures". They are medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// The head of its column.
    pub heading: &'static str,
    /// What it is of.
    pub measure: Measure,
    /// The figure, in the measure's unit.
    pub value: f64,
}

/// Table II as it was printed.
pub const TABLE_2: [Average; 5] = [
    Average { heading: "d_CKE", measure: Measure::Cke, value: 2.26 },
    Average { heading: "d_CNTP", measure: Measure::Cnts, value: 0.87 },
    Average { heading: "d_SNTP", measure: Measure::Sntp, value: 2.03 },
    Average { heading: "d_SKE", measure: Measure::Ske, value: 18.13 },
    Average { heading: "d_SNTS", measure: Measure::Snts, value: 80.80 },
];

/// The ends of a distribution, as a figure has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// What it is of.
    pub measure: Measure,
    /// The smallest value, in the measure's unit.
    pub min: f64,
    /// The largest value, in the measure's unit.
    pub max: f64,
}

/// The ends in Figure 4, "Cumulative Distribution Functions of client side measurements d_CNTP and d_CKE"; the first is
/// d_CNTS.
pub const FIGURE_4: [Ends; 2] = [
    Ends { measure: Measure::Cnts, min: 0.74, max: 2.44 },
    Ends { measure: Measure::Cke, min: 2.02, max: 5.49 },
];

/// The ends in Figure 5, "Cumulative Distribution Functions of server side measurements d_SKE, d_SNTP, and d_SNTS".
pub const FIGURE_5: [Ends; 3] = [
    Ends { measure: Measure::Sntp, min: 0.75, max: 31.54 },
    Ends { measure: Measure::Ske, min: 12.30, max: 31.35 },
    Ends { measure: Measure::Snts, min: 62.53, max: 115.93 },
];

/// d_CNTP in section IV, in milliseconds.
pub const D_CNTP_MS: f64 = 0.79;

/// What an authenticated transfer takes longer than a plain one, in percent (section IV).
pub const TRANSFER_INCREASE_PERCENT: f64 = 9.73;

/// The same with the key exchange, in percent (sections IV and VI).
pub const EXCHANGE_INCREASE_PERCENT: f64 = 117.0;

/// The same in the abstract, in percent.
pub const ABSTRACT_INCREASE_PERCENT: f64 = 116.0;

/// How many times as long as d_CNTP d_CKE takes, approximately (section IV).
pub const CKE_OVER_CNTP: f64 = 3.0;

/// Key exchanges a second up to which the server keeps up, approximately (abstract, sections V and VI).
pub const CAPACITY_RPS: u32 = 2_000;

/// The load at which errors begin (section V).
pub const FIRST_ERRORS_RPS: u32 = 2_300;

/// What the "median" and the "95th percentile" of d_CKE grow by past the capacity, in milliseconds (section V).
pub const FIGURE_7_INCREASE_MS: [f64; 2] = [50.09, 744.64];

/// Seconds of a step (section V).
pub const STEP_SECONDS: u32 = 20;

/// Key exchanges a second from one step to the next (section V).
pub const LOAD_STEP_RPS: u32 = 100;

/// The most that the measured client asks for, in key exchanges a second (section V).
pub const MEASURED_RPS_MAX: u32 = 500;

/// What an auxiliary client asks for, in key exchanges a second (section V).
pub const AUX_RPS: u32 = 500;

/// How many auxiliary clients there were (section V).
pub const AUX_COUNT: u32 = 15;

/// What one client could send at most, in key exchanges a second, approximately (section V).
pub const CLIENT_LIMIT_RPS: u32 = 1_500;

/// Transfers of the measured client for each of its key exchanges (section V).
pub const TRANSFERS_PER_EXCHANGE: u32 = 3;

/// Transfers of an auxiliary client for each of its key exchanges, by the source.
pub const AUX_TRANSFERS_PER_EXCHANGE: u32 = 1;

/// The end of the axes of Figures 9, 11 and 12, in transfers a second.
pub const TRANSFER_AXIS_END_RPS: u32 = (AUX_COUNT * AUX_RPS + MEASURED_RPS_MAX) * TRANSFERS_PER_EXCHANGE;

/// What all clients were to ask for there at most, in transfers a second, by the source.
pub const TRANSFERS_ASKED_RPS_MAX: u32 =
    AUX_COUNT * AUX_RPS * AUX_TRANSFERS_PER_EXCHANGE + MEASURED_RPS_MAX * TRANSFERS_PER_EXCHANGE;

/// Exchanges and transfers before a run counts (section III).
pub const WARM_UPS: u32 = 10;

/// Values of the unloaded experiment (section IV).
pub const UNLOADED_COUNT: u32 = 1_000;

/// The figure of a measure in Table II, in its unit; `None` of d_CNTP, which is not in it.
#[must_use]
pub fn table_2(measure: Measure) -> Option<f64> {
    TABLE_2.into_iter().find(|average| average.measure == measure).map(|average| average.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measure_has_a_name_of_its_own() {
        for (index, measure) in Measure::ALL.into_iter().enumerate() {
            let others = &Measure::ALL[index + 1..];
            assert!(others.iter().all(|other| other.symbol() != measure.symbol()), "{measure:?}");
            assert!(others.iter().all(|other| other.definition() != measure.definition()), "{measure:?}");
        }
    }

    #[test]
    fn table_2_has_what_was_measured_and_not_what_was_computed() {
        for measure in Measure::ALL {
            assert_eq!(table_2(measure).is_some(), unloaded::distribution(measure).is_some(), "{measure:?}");
        }
        // One heading is another measure's name.
        let misnamed: Vec<&str> = TABLE_2
            .into_iter()
            .filter(|average| average.heading != average.measure.symbol())
            .map(|average| average.heading)
            .collect();
        assert_eq!(misnamed, ["d_CNTP"]);
    }
}
