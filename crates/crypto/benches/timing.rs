//! Does the time of a batch tell anything about its secrets?
//!
//! Goal: for each path and AEAD, Welch's t between the times of two classes of secrets, as in "dude, is my code
//! constant time?" (Reparaz, Balasch, Verbauwhede, 2017): a fixed key against random keys, a fixed text against random
//! texts, a tag that is wrong in its first octet against one that is wrong in its last. Below 4.5 in magnitude nothing
//! is seen; far above, and again above in a second run, something is there. Non-goal: proof. What memcheck follows
//! (`src/lanes/secrecy.rs`) is stronger where it works; this one also sees AVX-512.
//!
//! Run with `cargo bench -p authentick-crypto --bench timing`; among the tests it runs once, with few samples. The
//! control compares texts of 104 octets with texts of 120: it shows what a difference looks like.

use std::hint::black_box;
use std::time::Instant;

use authentick_crypto::{Algorithm, Entropy, Key, Open, Path, Seal, TAG_SIZE, open_batch_on, seal_batch_on};

const BATCH: usize = 16;
const TEXT_SIZE: usize = 104;
const LONGER_TEXT_SIZE: usize = 120;

/// What differs between the two classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    Key,
    Text,
    WrongOctetOfTag,
    /// The control, which is public.
    TextSize,
}

const DIFFERENCES: [Difference; 4] =
    [Difference::Key, Difference::Text, Difference::WrongOctetOfTag, Difference::TextSize];

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let sample_count = if full { 60_000 } else { 200 };
    println!("Welch's t between two classes, {sample_count} batches of {BATCH}; below 4.5 nothing is seen");
    print!("{:<14} {:<9}", "AEAD", "path");
    DIFFERENCES.iter().for_each(|difference| print!(" {:>16}", format!("{difference:?}")));
    println!();
    for algorithm in [Algorithm::SivCmac256, Algorithm::Aes128GcmSiv] {
        for path in Path::ALL.into_iter().filter(|path| path.is_available()) {
            print!("{:<14} {path:<9}", format!("{algorithm:?}"));
            for difference in DIFFERENCES {
                print!(" {:>16.1}", welch(&mut samples(path, algorithm, difference, sample_count)));
            }
            println!();
        }
    }
}

/// Nanoseconds of a batch, and whether it was of the second class.
type Sample = (f64, bool);

/// What a batch works on. All of it is written anew for each sample, in either class.
struct Batch {
    algorithm: Algorithm,
    keys: Vec<Key>,
    texts: Vec<[u8; LONGER_TEXT_SIZE]>,
    tags: Vec<[u8; TAG_SIZE]>,
    genuine: [bool; BATCH],
}

fn samples(path: Path, algorithm: Algorithm, difference: Difference, count: usize) -> Vec<Sample> {
    let mut entropy = Entropy::from_seed(1);
    let fixed: [u8; 64] = entropy.array();
    let fixed_text: [u8; LONGER_TEXT_SIZE] = entropy.array();
    let mut batch = Batch {
        algorithm,
        keys: vec![Key::new(algorithm, &fixed[..algorithm.key_size()]).expect("the size is right"); BATCH],
        texts: vec![fixed_text; BATCH],
        tags: vec![[0; TAG_SIZE]; BATCH],
        genuine: [false; BATCH],
    };
    batch.seal(path, TEXT_SIZE);
    let (ciphertexts, tags) = (batch.texts.clone(), batch.tags.clone());
    let mut key_sources = vec![[fixed; 2]; BATCH];
    let mut text_sources = vec![[fixed_text; 2]; BATCH];
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        let is_second = entropy.array::<1>()[0] & 1 == 1;
        // Both classes are written from a place of one kind, by one piece of code: else that is what is measured.
        let (is_random_key, is_random_text) =
            (is_second && difference == Difference::Key, is_second && difference == Difference::Text);
        for (key, source) in batch.keys.iter_mut().zip(&mut key_sources) {
            source[1] = entropy.array();
            let octets = black_box(&source[usize::from(is_random_key)]);
            *key = Key::new(algorithm, &octets[..algorithm.key_size()]).expect("the size is right");
        }
        for (text, source) in batch.texts.iter_mut().zip(&mut text_sources) {
            source[1] = entropy.array();
            *text = *black_box(&source[usize::from(is_random_text)]);
        }
        let is_opened = difference == Difference::WrongOctetOfTag;
        if is_opened {
            batch.texts.copy_from_slice(&ciphertexts);
            batch.tags.copy_from_slice(&tags);
            let wrong = if is_second { TAG_SIZE - 1 } else { 0 };
            batch.tags.iter_mut().for_each(|tag| tag[wrong] ^= 0x10);
        }
        let is_long = is_second && difference == Difference::TextSize;
        let text_size = if is_long { LONGER_TEXT_SIZE } else { TEXT_SIZE };
        let start = Instant::now();
        match is_opened {
            true => batch.open(path, text_size),
            false => batch.seal(path, text_size),
        }
        out.push((start.elapsed().as_nanos() as f64, is_second));
        assert!(!batch.genuine.contains(&true), "every tag is wrong");
    }
    out
}

impl Batch {
    #[inline(never)]
    fn seal(&mut self, path: Path, text_size: usize) {
        let nonce = &[3; 16][..self.algorithm.nonce_size()];
        let jobs = self.keys.iter().zip(&mut self.texts).zip(&mut self.tags).map(|((key, text), tag)| {
            let text = &mut text[..text_size];
            Seal { key: key.into(), nonce, associated: Some(&[4; 84]), text: text.into(), tag }
        });
        seal_batch_on(path, jobs);
    }

    #[inline(never)]
    fn open(&mut self, path: Path, text_size: usize) {
        let nonce = &[3; 16][..self.algorithm.nonce_size()];
        let jobs = self.keys.iter().zip(&mut self.texts).zip(&self.tags).zip(&mut self.genuine);
        let jobs = jobs.map(|(((key, text), tag), genuine)| {
            let text = &mut text[..text_size];
            Open { key: key.into(), nonce, associated: Some(&[4; 84]), text: text.into(), tag, genuine }
        });
        open_batch_on(path, jobs);
    }
}

/// Welch's t of the fastest nine tenths of all samples: what is slower was interrupted.
fn welch(samples: &mut [Sample]) -> f64 {
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let kept = &samples[..samples.len() * 9 / 10];
    let [first, second] = [false, true].map(|class| {
        let values = || kept.iter().filter(|sample| sample.1 == class).map(|sample| sample.0);
        let count = values().count() as f64;
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    });
    (first.0 - second.0) / (first.1 + second.1).sqrt()
}
