//! Why the bench of MACs did not come to its end.

use std::fmt;
use std::io;

use authentick_crypto::mac::MacAlgorithm;

use crate::Fault;

/// Why the bench of MACs did not come to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum BenchError {
    /// Somebody computes another tag than we do, so there is nothing to compare.
    OtherTag {
        /// By which algorithm.
        algorithm: MacAlgorithm,
        /// Who.
        who: &'static str,
    },
    /// OpenSSL refuses an algorithm, and says why.
    OpenSsl(MacAlgorithm, String),
    /// The process without AES and SHA instructions does not measure, and why.
    Masked(String),
    /// That process was given an order that it does not know: this one.
    Order(String),
    /// The system refused what is allowed and possible otherwise.
    System(io::Error),
}

impl BenchError {
    /// By whose fault.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            BenchError::OtherTag { .. } | BenchError::Masked(_) => Fault::Program,
            BenchError::OpenSsl(..) | BenchError::System(_) => Fault::Host,
            BenchError::Order(_) => Fault::User,
        }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BenchError::OtherTag { algorithm, who } => {
                write!(
                    f,
                    "{algorithm}: {who} computes another tag than we do, so there is nothing to compare"
                )
            }
            BenchError::OpenSsl(algorithm, why) => {
                write!(f, "OpenSSL cannot compute {algorithm} here: {why}")
            }
            BenchError::Masked(why) => {
                write!(f, "the process without AES and SHA instructions does not measure: {why}")
            }
            BenchError::Order(order) => write!(f, "no order of a bench: {order:?}"),
            BenchError::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BenchError::System(error) => Some(error),
            BenchError::OtherTag { .. }
            | BenchError::OpenSsl(..)
            | BenchError::Masked(_)
            | BenchError::Order(_) => None,
        }
    }
}

impl From<io::Error> for BenchError {
    fn from(error: io::Error) -> Self {
        BenchError::System(error)
    }
}
