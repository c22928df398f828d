//! Why the bench of MACs did not come to its end.

use std::io;

use authentick_crypto::mac::MacAlgorithm;

use crate::Fault;

/// Why the bench of MACs did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// Somebody computes another tag than we do, so there is nothing to compare.
    #[error("{algorithm}: {who} computes another tag than we do, so there is nothing to compare")]
    OtherTag {
        /// By which algorithm.
        algorithm: MacAlgorithm,
        /// Who.
        who: &'static str,
    },
    /// OpenSSL refuses an algorithm, and says why.
    #[error("OpenSSL cannot compute {0} here: {1}")]
    OpenSsl(MacAlgorithm, String),
    /// The process without AES and SHA instructions does not measure, and why.
    #[error("the process without AES and SHA instructions does not measure: {0}")]
    Masked(String),
    /// That process was given an order that it does not know: this one.
    #[error("no order of a bench: {0:?}")]
    Order(String),
    /// The system refused what is allowed and possible otherwise.
    #[error("{0}")]
    System(#[from] io::Error),
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
