//! MACs of jobs that own what they refer to, made from a seed, and run as one batch on a path.

mod differential;
mod forgery;
mod wycheproof;

use std::rc::Rc;

use authentick_crypto::mac::{MacAlgorithm, MacKey, Tag, Verify};
use authentick_crypto::{Entropy, Path, run_batch_on};

/// A packet to authenticate.
pub(crate) struct Case {
    pub(crate) key: Rc<MacKey>,
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
        key: Rc::new(MacKey::new(algorithm, &octets).unwrap()),
        nonce: algorithm.nonce_size().map(|_| entropy.array()),
        message,
        tag_size: 16 + usize::from(entropy.array::<1>()[0]) % (excess + 1),
    }
}

/// How the cases of a batch resemble one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One algorithm and one size, a key for each.
    Even(MacAlgorithm),
    /// The same, and one key for all.
    OneKey(MacAlgorithm),
    /// Six algorithms and sizes that take turns, with three keys each: more than are collected at once.
    Few,
    /// Any algorithm and size, a key for each.
    Mixed,
}

/// The algorithms whose packets run side by side.
const SIDE_BY_SIDE: [MacAlgorithm; 4] =
    [MacAlgorithm::Cmac128, MacAlgorithm::Cmac256, MacAlgorithm::Gmac128, MacAlgorithm::GmacSiv128];

/// Every shape.
pub(crate) fn shapes() -> impl Iterator<Item = Shape> {
    let one =
        SIDE_BY_SIDE.into_iter().flat_map(|algorithm| [Shape::Even(algorithm), Shape::OneKey(algorithm)]);
    one.chain([Shape::Few, Shape::Mixed])
}

/// `count` random cases.
pub(crate) fn cases(entropy: &mut Entropy, count: usize, shape: Shape) -> Vec<Case> {
    let plan = |entropy: &mut Entropy| {
        let [choice, side_by_side, size, limit] = entropy.array::<4>().map(usize::from);
        let algorithm = match shape {
            Shape::Even(algorithm) | Shape::OneKey(algorithm) => algorithm,
            Shape::Few if side_by_side % 4 > 0 => SIDE_BY_SIDE[choice % SIDE_BY_SIDE.len()],
            Shape::Few | Shape::Mixed => MacAlgorithm::ALL[choice % MacAlgorithm::ALL.len()],
        };
        // Short sizes have branches of their own, so half of the sizes are short.
        (algorithm, if limit % 2 == 0 { size % 50 } else { 4 * size })
    };
    let (plan_count, key_count) = match shape {
        Shape::Even(_) => (1, count),
        Shape::OneKey(_) => (1, 1),
        Shape::Few => (6, 3),
        Shape::Mixed => (count, 1),
    };
    let plans: Vec<_> = (0..plan_count).map(|_| plan(entropy)).collect();
    let mut out: Vec<Case> = Vec::new();
    for index in 0..count {
        let (algorithm, size) = plans[index % plan_count];
        let mut new = case(entropy, algorithm, size);
        if let Some(before) = index.checked_sub(plan_count * key_count) {
            new.key = Rc::clone(&out[before].key);
        }
        out.push(new);
    }
    out
}

/// The tags of all cases, as one batch.
pub(crate) fn tags(path: Path, cases: &[Case]) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = cases.iter().map(|case| vec![0; case.tag_size]).collect();
    let jobs = cases.iter().zip(&mut out).map(|(case, tag)| {
        let (key, nonce) = (&case.key, case.nonce.as_ref().map(|nonce| &nonce[..]));
        Tag { key, nonce, message: &case.message, tag }
    });
    run_batch_on(path, jobs);
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
    run_batch_on(path, jobs);
    out
}
