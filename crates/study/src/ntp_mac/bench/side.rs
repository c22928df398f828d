//! One process: its subjects, and what it saw of the processor.

use authentick_crypto::mac::MacAlgorithm;
use authentick_report::mac::{Instructions, KeyUse, Side};

use super::rounds::Rounds;
use super::spread::Spreads;
use super::subject::{NONCE_SIZE, Subject, nonce, packet, stamp};
use super::{Extent, SIZE, aws_lc, ours};
use crate::Error;

/// A process that measures.
pub(super) struct SideRun {
    rounds: Rounds,
    spreads: Spreads,
    side: Side,
}

impl SideRun {
    /// Compares everybody's tags with ours and makes ready. `remarks` come with the figures.
    pub(super) fn new(
        extent: Extent,
        instructions: Instructions,
        remarks: Vec<String>,
        whose: Whose,
    ) -> Result<Self, Error> {
        compare_tags()?;
        let rounds = Rounds::new(subjects(whose)?, extent.turn);
        let mut singles = subjects(whose)?;
        singles.retain(|Subject { timing, .. }| timing.batch == 1 && timing.key == KeyUse::Kept);
        let spreads = Spreads::new(singles, extent.single_count);
        let side = Side {
            instructions,
            seen: seen(),
            path: match whose {
                Whose::All => authentick_crypto::path().to_string(),
                Whose::Others => "not measured".to_owned(),
            },
            remarks,
            timings: Vec::new(),
            spreads: Vec::new(),
        };
        Ok(SideRun { rounds, spreads, side })
    }

    /// One turn of each subject.
    pub(super) fn round(&mut self) {
        self.rounds.round();
        self.spreads.round();
    }

    /// What was measured.
    pub(super) fn finish(self, reference_hz: Option<f64>) -> Side {
        Side { timings: self.rounds.timings(), spreads: self.spreads.finish(reference_hz), ..self.side }
    }
}

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// Everybody.
    All,
    /// All but us: those who heed a mask of their own, where the processor cannot hide instructions from us.
    Others,
}

fn subjects(whose: Whose) -> Result<Vec<Subject>, Error> {
    let mut subjects = Vec::new();
    for algorithm in MacAlgorithm::ALL {
        if whose == Whose::All {
            subjects.extend(ours::subjects(algorithm));
        }
        #[cfg(feature = "openssl")]
        subjects
            .extend(super::openssl::subjects(algorithm).map_err(|error| openssl_failed(algorithm, &error))?);
        if algorithm == aws_lc::ALGORITHM {
            subjects.extend(aws_lc::subjects());
        }
    }
    Ok(subjects)
}

/// The instructions that matter here and that this process sees, by the kernel's names.
pub(super) fn seen() -> Vec<String> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let found = [
            ("aes", has!("aes")),
            ("pclmulqdq", has!("pclmulqdq")),
            ("vaes", has!("vaes")),
            ("vpclmulqdq", has!("vpclmulqdq")),
            ("sha_ni", has!("sha")),
        ];
        found.into_iter().filter(|(_, found)| *found).map(|(name, _)| name.to_owned()).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

/// Whoever computes another tag computes something else, and cannot be compared.
fn compare_tags() -> Result<(), Error> {
    const NUMBER: u64 = 0x0123_4567_89ab_cdef;
    let (mut message, nonce) = (packet(), nonce(NUMBER));
    stamp(&mut message, NUMBER);
    same(aws_lc::ALGORITHM, "aws-lc", &aws_lc::single(&nonce, &message), &nonce, &message)?;
    #[cfg(feature = "openssl")]
    for algorithm in MacAlgorithm::ALL {
        for key in [KeyUse::Kept, KeyUse::SetUp] {
            let found = super::openssl::single(algorithm, key, NUMBER, &message);
            if let Some(theirs) = found.map_err(|error| openssl_failed(algorithm, &error))? {
                same(algorithm, "OpenSSL", &theirs.tag, &nonce, &theirs.message)?;
            }
        }
    }
    debug_assert_eq!(message.len(), SIZE, "the comparison is of what is timed");
    Ok(())
}

fn same(
    algorithm: MacAlgorithm,
    who: &'static str,
    theirs: &[u8],
    nonce: &[u8; NONCE_SIZE],
    message: &[u8],
) -> Result<(), Error> {
    let ours = ours::single(algorithm, nonce, message);
    match theirs.starts_with(&ours) {
        true => Ok(()),
        false => Err(Error::OtherTag { algorithm, who }),
    }
}

#[cfg(feature = "openssl")]
fn openssl_failed(algorithm: MacAlgorithm, error: &openssl::error::ErrorStack) -> Error {
    Error::OpenSsl(algorithm, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_computes_our_tags() {
        compare_tags().unwrap();
        let (message, nonce) = (packet(), nonce(1));
        let error = same(MacAlgorithm::Cmac128, "somebody", &[0; 16], &nonce, &message).unwrap_err();
        assert!(error.to_string().contains("AES128: somebody computes another tag"), "{error}");
    }

    #[test]
    fn every_algorithm_is_measured_alone_in_batches_and_with_set_up() {
        let all = subjects(Whose::All).unwrap();
        let others = subjects(Whose::Others).unwrap();
        let of_ours = MacAlgorithm::ALL.len() * (ours::BATCHES.len() + 1);
        assert_eq!(all.len() - others.len(), of_ours);
        let rivals = if cfg!(feature = "openssl") { MacAlgorithm::ALL.len() } else { 1 };
        assert_eq!(others.len(), 2 * rivals);
    }
}
