//! Each path gives what RustCrypto gives, over random keys, sizes and batches.

use authentick_crypto::{Entropy, Path};
use proptest::prelude::*;

use super::case::{Shape, cases, kept_keys, open, seal};
use super::paths;

fn agrees(seed: u64, count: usize, shape: Shape) {
    let mut entropy = Entropy::from_seed(seed);
    let kept = kept_keys(&mut entropy);
    let cases = cases(&mut entropy, count, shape);
    let expected = seal(Path::Portable, &cases, &kept);
    for path in paths() {
        let sealed = seal(path, &cases, &kept);
        for (index, (sealed, expected)) in sealed.iter().zip(&expected).enumerate() {
            assert_eq!(sealed, expected, "{path}, seed {seed}, {count} cases {shape:?}, case {index}");
        }
        for (index, ((text, genuine), case)) in
            open(path, &cases, &kept, &sealed).iter().zip(&cases).enumerate()
        {
            let is_right = *genuine && *text == case.text;
            assert!(is_right, "{path}, seed {seed}, {count} cases {shape:?}, case {index}");
        }
    }
}

proptest! {
    #[test]
    fn even_batches_equal_rustcrypto(seed: u64, count in 1..=64_usize) {
        agrees(seed, count, Shape::Even);
    }

    #[test]
    fn batches_of_few_shapes_equal_rustcrypto(seed: u64, count in 1..=64_usize) {
        agrees(seed, count, Shape::Few);
    }

    #[test]
    fn mixed_batches_equal_rustcrypto(seed: u64, count in 1..=64_usize) {
        agrees(seed, count, Shape::Mixed);
    }
}

/// All shapes, each batch size.
#[test]
fn batches_of_each_size_equal_rustcrypto() {
    for count in (1..=64).chain([65, 127, 128, 129]) {
        agrees(count as u64, count, Shape::Even);
        agrees(count as u64, count, Shape::Few);
        agrees(count as u64, count, Shape::Mixed);
    }
}
