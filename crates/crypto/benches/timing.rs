//! Does the time of a batch tell anything about its secrets?
//!
//! Goal: for each path and AEAD, and for HMAC-SHA256 on each path of hashes, Welch's t between the times of two classes
//! of secrets, as in "dude, is my code constant time?" (Reparaz, Balasch, Verbauwhede, 2017): a fixed key against
//! random keys, a fixed text against random texts, a tag that is wrong in its first octet against one that is wrong in
//! its last. Below 4.5 in magnitude nothing is seen. What is above is looked at twice more, with other random octets:
//! above 4.5 with one sign in three runs of three, something is there, and the bench fails.
//! Non-goal: proof. What memcheck follows (`tests/paths/secrecy.rs`) is stronger where it works; this one also sees
//! AVX-512.
//!
//! Run with `cargo bench -p authentick-crypto --bench timing`; among the tests it runs once, with few samples. The
//! control compares texts of 104 octets with texts of 120, which must be seen in the same way, else the bench fails
//! too: what does not see that sees nothing.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use authentick_crypto::kdf::{HASH_SIZE, HmacTag, HmacTagBatch, HmacVerify, HmacVerifyBatch};
use authentick_crypto::{Algorithm, Entropy, HashPath, Key, Open, Path, Seal, TAG_SIZE, run_batch_on};

const BATCH: usize = 16;
const TEXT_SIZE: usize = 104;
const LONGER_TEXT_SIZE: usize = 120;

/// What is timed.
#[derive(Clone, Copy)]
enum Subject {
    Aead(Algorithm, Path),
    Hmac(HashPath),
}

impl Subject {
    /// The algorithm whose keys are used: an HMAC takes those of the first.
    fn keys(self) -> Algorithm {
        match self {
            Subject::Aead(algorithm, _) => algorithm,
            Subject::Hmac(_) => Algorithm::SivCmac256,
        }
    }

    fn names(self) -> [String; 2] {
        match self {
            Subject::Aead(algorithm, path) => [format!("{algorithm:?}"), path.to_string()],
            Subject::Hmac(path) => ["HMAC-SHA256".to_owned(), path.to_string()],
        }
    }
}

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

/// Above this, in magnitude, a difference is seen. Reparaz, Balasch, Verbauwhede, section 3.
const THRESHOLD: f64 = 4.5;
/// In so many runs of as many it is seen before it is believed.
const RUN_COUNT: usize = 3;

/// What runs showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Too little, or now one class was the slower and now the other.
    Nothing,
    /// In each run the same class was the slower.
    Difference,
}

/// Looks until a run shows nothing, or [`RUN_COUNT`] of them the same. `run` gives t.
fn look(mut run: impl FnMut() -> f64) -> (Verdict, Vec<f64>) {
    let mut seen: Vec<f64> = Vec::new();
    for _ in 0..RUN_COUNT {
        let t = run();
        seen.push(t);
        // What is no number was measured on nothing.
        if t.is_nan() || t.abs() <= THRESHOLD || t.signum() != seen[0].signum() {
            return (Verdict::Nothing, seen);
        }
    }
    (Verdict::Difference, seen)
}

/// A control must be seen, and nothing else may be.
fn is_as_wanted(difference: Difference, verdict: Verdict) -> bool {
    (verdict == Verdict::Difference) == (difference == Difference::TextSize)
}

/// What [`look`] and [`is_as_wanted`] say of runs that are made up.
fn check_the_judge() {
    let verdict = |runs: [f64; RUN_COUNT]| {
        let mut runs = runs.into_iter();
        look(|| runs.next().expect("no more than three are asked for")).0
    };
    for difference in DIFFERENCES {
        let is_control = difference == Difference::TextSize;
        for runs in [[4.6, 5.0, 300.0], [-9.0, -4.6, -5.0]] {
            assert_eq!(is_as_wanted(difference, verdict(runs)), is_control, "{runs:?}");
        }
        for runs in [[4.4, 9.0, 9.0], [9.0, 9.0, -9.0], [9.0, 9.0, 4.4], [-9.0, 9.0, 9.0], [f64::NAN; 3]] {
            assert_eq!(is_as_wanted(difference, verdict(runs)), !is_control, "{runs:?}");
        }
    }
}

fn main() -> ExitCode {
    check_the_judge();
    let full = std::env::args().any(|argument| argument == "--bench");
    let sample_count = if full { 60_000 } else { 200 };
    println!(
        "Welch's t between two classes, {sample_count} batches of {BATCH}; above {THRESHOLD} with one sign in \
         {RUN_COUNT} runs, something is seen"
    );
    let mut problems = Vec::new();
    print!("{:<14} {:<9}", "AEAD", "path");
    DIFFERENCES.iter().for_each(|difference| print!(" {:>16}", format!("{difference:?}")));
    println!();
    let paths = || Path::ALL.into_iter().filter(|path| path.is_available());
    let aeads = [Algorithm::SivCmac256, Algorithm::Aes128GcmSiv]
        .into_iter()
        .flat_map(|algorithm| paths().map(move |path| Subject::Aead(algorithm, path)));
    let hash_paths = HashPath::ALL.into_iter().filter(|path| path.is_available());
    for subject in aeads.chain(hash_paths.map(Subject::Hmac)) {
        let [name, path] = subject.names();
        print!("{name:<14} {path:<9}");
        for difference in DIFFERENCES {
            let mut seed = 0;
            let (verdict, seen) = look(|| {
                seed += 1;
                welch(&mut samples(subject, difference, sample_count, seed))
            });
            let mark = if verdict == Verdict::Difference { "!" } else { " " };
            print!(" {:>15.1}{mark}", seen[0]);
            if !is_as_wanted(difference, verdict) {
                problems.push(format!("{name}, {path}, {difference:?}: {verdict:?}, t {seen:.1?}"));
            }
        }
        println!();
    }
    // So few samples show nothing of anything.
    if !full || problems.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("not as it must be:");
    problems.iter().for_each(|problem| println!("    {problem}"));
    ExitCode::FAILURE
}

/// Nanoseconds of a batch, and whether it was of the second class.
type Sample = (f64, bool);

/// What a batch works on. All of it is written anew for each sample, in either class.
struct Batch {
    subject: Subject,
    keys: Vec<Key>,
    texts: Vec<[u8; LONGER_TEXT_SIZE]>,
    tags: Vec<[u8; TAG_SIZE]>,
    hashes: Vec<[u8; HASH_SIZE]>,
    genuine: [bool; BATCH],
}

fn samples(subject: Subject, difference: Difference, count: usize, seed: u64) -> Vec<Sample> {
    let algorithm = subject.keys();
    let mut entropy = Entropy::from_seed(seed);
    let fixed: [u8; 64] = entropy.array();
    let fixed_text: [u8; LONGER_TEXT_SIZE] = entropy.array();
    let mut batch = Batch {
        subject,
        keys: vec![Key::new(algorithm, &fixed[..algorithm.key_size()]).expect("the size is right"); BATCH],
        texts: vec![fixed_text; BATCH],
        tags: vec![[0; TAG_SIZE]; BATCH],
        hashes: vec![[0; HASH_SIZE]; BATCH],
        genuine: [false; BATCH],
    };
    batch.seal(TEXT_SIZE);
    let (ciphertexts, tags, hashes) = (batch.texts.clone(), batch.tags.clone(), batch.hashes.clone());
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
            batch.hashes.copy_from_slice(&hashes);
            let wrong = |size: usize| if is_second { size - 1 } else { 0 };
            batch.tags.iter_mut().for_each(|tag| tag[wrong(TAG_SIZE)] ^= 0x10);
            batch.hashes.iter_mut().for_each(|hash| hash[wrong(HASH_SIZE)] ^= 0x10);
        }
        let is_long = is_second && difference == Difference::TextSize;
        let text_size = if is_long { LONGER_TEXT_SIZE } else { TEXT_SIZE };
        let start = Instant::now();
        match is_opened {
            true => batch.open(text_size),
            false => batch.seal(text_size),
        }
        out.push((start.elapsed().as_nanos() as f64, is_second));
        assert!(!batch.genuine.contains(&true), "every tag is wrong");
    }
    out
}

impl Batch {
    #[inline(never)]
    fn seal(&mut self, text_size: usize) {
        let (algorithm, path) = match self.subject {
            Subject::Aead(algorithm, path) => (algorithm, path),
            Subject::Hmac(path) => return self.tag(path, text_size),
        };
        let nonce = &[3; 16][..algorithm.nonce_size()];
        let jobs = self.keys.iter().zip(&mut self.texts).zip(&mut self.tags).map(|((key, text), tag)| {
            let text = &mut text[..text_size];
            Seal { key: key.into(), nonce, associated: Some(&[4; 84]), text: text.into(), tag }
        });
        run_batch_on(path, jobs);
    }

    #[inline(never)]
    fn open(&mut self, text_size: usize) {
        let (algorithm, path) = match self.subject {
            Subject::Aead(algorithm, path) => (algorithm, path),
            Subject::Hmac(path) => return self.verify(path, text_size),
        };
        let nonce = &[3; 16][..algorithm.nonce_size()];
        let jobs = self.keys.iter().zip(&mut self.texts).zip(&self.tags).zip(&mut self.genuine);
        let jobs = jobs.map(|(((key, text), tag), genuine)| {
            let text = &mut text[..text_size];
            Open { key: key.into(), nonce, associated: Some(&[4; 84]), text: text.into(), tag, genuine }
        });
        run_batch_on(path, jobs);
    }

    fn tag(&mut self, path: HashPath, text_size: usize) {
        let lists: Vec<[&[u8]; 1]> = self.texts.iter().map(|text| [&text[..text_size]]).collect();
        let mut batch = HmacTagBatch::on(path);
        for ((key, parts), tag) in self.keys.iter().zip(&lists).zip(&mut self.hashes) {
            batch.push(HmacTag { key: key.expose(), parts, tag });
        }
        batch.run();
    }

    fn verify(&mut self, path: HashPath, text_size: usize) {
        let lists: Vec<[&[u8]; 1]> = self.texts.iter().map(|text| [&text[..text_size]]).collect();
        let mut batch = HmacVerifyBatch::on(path);
        let jobs = self.keys.iter().zip(&lists).zip(&self.hashes).zip(&mut self.genuine);
        for (((key, parts), tag), genuine) in jobs {
            batch.push(HmacVerify { key: key.expose(), parts, tag, genuine });
        }
        batch.run();
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
