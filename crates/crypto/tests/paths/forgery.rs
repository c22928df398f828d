//! A wrong tag fails its own job, whichever lane that has, and no other; what fails leaves zeros.

use authentick_crypto::Entropy;

use super::case::{Shape, cases, kept_keys, open, seal};
use super::paths;

#[test]
fn wrong_tag_in_any_lane_fails_alone_and_leaves_zeros() {
    for path in paths() {
        for (seed, count) in [1, 2, 4, 5, 8, 9, 16, 17, 64].into_iter().enumerate() {
            for shape in [Shape::Even, Shape::Mixed] {
                let mut entropy = Entropy::from_seed(seed as u64);
                let kept = kept_keys(&mut entropy);
                let mut cases = cases(&mut entropy, count, shape);
                cases.iter_mut().for_each(|case| case.text.truncate(90));
                let sealed = seal(path, &cases, &kept);
                for victim in 0..count {
                    let mut sealed = sealed.clone();
                    let bit = (victim * 37 + seed) % 128;
                    sealed[victim].1[bit / 8] ^= 1 << (bit % 8);
                    let opened = open(path, &cases, &kept, &sealed);
                    for (index, ((text, genuine), case)) in opened.iter().zip(&cases).enumerate() {
                        assert_eq!(*genuine, index != victim, "{path}, {count} {shape:?}, {index}");
                        match *genuine {
                            true => assert_eq!(*text, case.text),
                            false => assert!(text.iter().all(|octet| *octet == 0)),
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn each_bit_of_a_tag_counts() {
    let mut entropy = Entropy::from_seed(7);
    let kept = kept_keys(&mut entropy);
    for shape in [Shape::Even, Shape::Mixed] {
        let cases = cases(&mut entropy, 16, shape);
        for path in paths() {
            let sealed = seal(path, &cases, &kept);
            for bit in 0..128 {
                let mut wrong = sealed.clone();
                wrong.iter_mut().for_each(|(_, tag)| tag[bit / 8] ^= 1 << (bit % 8));
                let opened = open(path, &cases, &kept, &wrong);
                assert!(opened.iter().all(|(_, genuine)| !genuine), "{path}, bit {bit}");
            }
        }
    }
}
