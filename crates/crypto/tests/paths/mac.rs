//! MACs of jobs that own what they refer to, made from a seed, and run as one batch on a path.

mod differential;
mod forgery;
mod wycheproof;

use authentick_crypto::mac::{MacAlgorithm, MacKey, Tag, Verify, tag_batch_on, verify_batch_on};
use authentick_crypto::{Entropy, Path};

/// A packet to authenticate.
pub(crate) struct Case {
    pub(crate) key: MacKey,
    pub(crate) nonce: Option<[u8; 12]>,
    pub(crate) message: Vec<u8>,
    pub(crate) tag_size: usize,
}

/// A random case of an algorithm, with a message of `size` octets.
pub(crate) fn case(entropy: &mut Entropy, algorithm: MacAlgorithm, size: usize) -> Case {
    let sizes = algorithm.key_sizes();
    // Around the blocks of a digest, and below them.
    let key_size =
        (1 + usize::from(u16::from_le_bytes(entropy.array())) % 150).clamp(*sizes.start(), *sizes.end());
    let mut octets = vec![0; key_size];
    entropy.fill(&mut octets);
    let mut message = vec![0; size];
    entropy.fill(&mut message);
    let excess = algorithm.tag_size() - 16;
    Case {
        key: MacKey::new(algorithm, &octets).unwrap(),
        nonce: algorithm.nonce_size().map(|_| entropy.array()),
        message,
        tag_size: 16 + usize::from(entropy.array::<1>()[0]) % (excess + 1),
    }
}

/// `count` cases of any algorithm and size.
pub(crate) fn cases(entropy: &mut Entropy, count: usize) -> Vec<Case> {
    let make = |_| {
        let [algorithm, size, limit] = entropy.array::<3>().map(usize::from);
        let size = if limit % 2 == 0 { size % 50 } else { 4 * size };
        case(entropy, MacAlgorithm::ALL[algorithm % MacAlgorithm::ALL.len()], size)
    };
    (0..count).map(make).collect()
}

/// The tags of all cases, as one batch.
pub(crate) fn tags(path: Path, cases: &[Case]) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = cases.iter().map(|case| vec![0; case.tag_size]).collect();
    let jobs = cases.iter().zip(&mut out).map(|(case, tag)| {
        let (key, nonce) = (&case.key, case.nonce.as_ref().map(|nonce| &nonce[..]));
        Tag { key, nonce, message: &case.message, tag }
    });
    tag_batch_on(path, jobs);
    out
}

/// Which tags are genuine, as one batch.
pub(crate) fn verify(path: Path, cases: &[Case], tags: &[Vec<u8>]) -> Vec<bool> {
    // What is there before is the opposite of what is right for the one or the other.
    let mut out: Vec<bool> = (0..cases.len()).map(|index| index % 2 == 0).collect();
    let jobs = cases.iter().zip(tags).zip(&mut out).map(|((case, tag), genuine)| {
        let (key, nonce) = (&case.key, case.nonce.as_ref().map(|nonce| &nonce[..]));
        Verify { key, nonce, message: &case.message, tag, genuine }
    });
    verify_batch_on(path, jobs);
    out
}
