//! What memcheck complains of: the controls of [`super::secrecy`], without which its silence proves nothing, and the
//! openings in which a crate compares tags by itself.
//!
//! The crates of AES-SIV and AES-GCM-SIV compare in constant time, and then branch on whether the tag was right, which
//! is public, but not ours to declare so. These complaints are counted: there are as many for any text and for any
//! wrong octet of a tag as for an empty text, so nothing else is branched on.
//!
//! Complaints are those of the whole process, so `cargo xtask ci --only memcheck` runs these tests one at a time, apart
//! from all others. Without valgrind there are none, and nothing to test.

use std::hint::black_box;

use authentick_crypto::aead::{Algorithm, CachedKey, Key, KeyRef, Open, Seal};
use authentick_crypto::gcm::{GcmKey, GcmOpen, GcmSeal, gcm_seal_on};
use authentick_crypto::kdf::{HmacTag, HmacTagBatch, HmacVerify, HmacVerifyBatch};
use authentick_crypto::mac::{MacAlgorithm, MacKey, Tag, Verify};
use authentick_crypto::{HashPath, Path, run_batch_on};
use authentick_lanes::secrecy::{complaint_count, make_secret};

use super::secrecy::{STATES, ends};

/// How often memcheck complains of `run`.
fn complaints(run: impl FnOnce()) -> u64 {
    let before = complaint_count();
    run();
    complaint_count() - before
}

/// Branches once on each octet; how often that is complained of.
fn branches(octets: &[u8]) -> u64 {
    #[inline(never)]
    fn note() {
        black_box(());
    }
    complaints(|| {
        for octet in octets {
            if black_box(*octet) & 1 == 1 {
                note();
            }
        }
    })
}

fn secret(octet: u8, size: usize) -> Vec<u8> {
    let mut octets = vec![octet; size];
    make_secret(&mut octets);
    octets
}

fn paths() -> impl Iterator<Item = Path> {
    Path::ALL.into_iter().filter(|path| path.is_available())
}

#[test]
#[ignore = "counts complaints of memcheck"]
fn branch_and_address_of_a_secret_are_complained_of() {
    assert_eq!(branches(&[1; 4]), 0);
    assert_eq!(branches(&secret(1, 4)), 4);
    let (table, at) = (black_box([7_u8; 256]), secret(1, 1));
    assert_eq!(
        complaints(|| {
            black_box(table[usize::from(at[0])]);
        }),
        1
    );
}

/// The keys that an AEAD is tried under: one of a session, or the server's own for its cookies.
struct Sealing {
    algorithm: Option<Algorithm>,
    session: Option<Key>,
    master: CachedKey,
    sealed: Vec<u8>,
    tag: [u8; 16],
}

const NONCE: [u8; 16] = [5; 16];

impl Sealing {
    /// A secret text under a secret key; `None` stands for the server's own.
    fn new(path: Path, algorithm: Option<Algorithm>, octet: u8, size: usize) -> Self {
        let key = secret(0x3c, 64);
        let mut sealing = Sealing {
            algorithm,
            session: algorithm
                .map(|one| Key::new(one, &key[..one.key_size()]).expect("64 octets are enough")),
            master: CachedKey::new(key.first_chunk().expect("64 octets begin with 32")),
            sealed: secret(octet, size),
            tag: [0; 16],
        };
        let (mut text, mut tag) = (sealing.sealed.clone(), [0; 16]);
        let (key, nonce) = (sealing.key(), sealing.nonce());
        let seal = Seal { key, nonce, associated: None, text: (&mut text[..]).into(), tag: &mut tag };
        run_batch_on(path, std::iter::once(seal));
        (sealing.sealed, sealing.tag) = (text, tag);
        sealing
    }

    fn key(&self) -> KeyRef<'_> {
        self.session.as_ref().map_or_else(|| KeyRef::from(&self.master), KeyRef::from)
    }

    fn nonce(&self) -> &'static [u8] {
        &NONCE[..self.algorithm.map_or(16, Algorithm::nonce_size)]
    }

    /// Opens the text, with an octet of the tag wrong if one is named; the complaints meanwhile, and the text.
    fn open(&self, path: Path, wrong: Option<usize>) -> (u64, Vec<u8>) {
        let (mut tag, mut text, mut genuine) = (self.tag, self.sealed.clone(), wrong.is_some());
        wrong.into_iter().for_each(|at| tag[at] ^= 1);
        let (key, nonce) = (self.key(), self.nonce());
        let count = complaints(|| {
            let text = (&mut text[..]).into();
            let open = Open { key, nonce, associated: None, text, tag: &tag, genuine: &mut genuine };
            run_batch_on(path, std::iter::once(open));
        });
        assert_eq!(branches(&[u8::from(genuine)]), 0, "whether a tag is right is public");
        assert_eq!(genuine, wrong.is_none());
        (count, text)
    }
}

fn algorithms() -> impl Iterator<Item = Option<Algorithm>> {
    Algorithm::ALL.into_iter().map(Some).chain([None])
}

/// Else nothing would be followed any further: what is public is the verdict alone.
#[test]
#[ignore = "counts complaints of memcheck"]
fn texts_that_were_opened_and_tags_that_were_computed_are_secret_still() {
    for path in paths() {
        for algorithm in algorithms() {
            let sealing = Sealing::new(path, algorithm, 1, 24);
            assert_eq!([branches(&sealing.sealed), branches(&sealing.tag)], [24, 16], "{path}");
            assert_eq!(branches(&sealing.open(path, None).1), 24, "{path}, {algorithm:?}");
        }
        let key = GcmKey::new(secret(1, 16).first_chunk().expect("there are 16"));
        for (associated, size) in STATES {
            let (associated, mut text, mut tag, mut genuine) =
                (vec![9; associated], secret(1, size), [0; 16], false);
            let nonce = &[5; 12];
            gcm_seal_on(
                path,
                GcmSeal { key: &key, nonce, associated: &associated, text: &mut text, tag: &mut tag },
            );
            assert_eq!([branches(&text), branches(&tag)], [size as u64, 16], "{path}");
            let (associated, text_out) = (&associated[..], (&mut text[..]).into());
            let open =
                GcmOpen { key: &key, nonce, associated, text: text_out, tag: &tag, genuine: &mut genuine };
            run_batch_on(path, std::iter::once(open));
            assert!(genuine);
            assert_eq!(branches(&text), size as u64, "{path}");
        }
        for algorithm in MacAlgorithm::ALL {
            let octets = secret(1, (*algorithm.key_sizes().end()).min(32));
            let key = &MacKey::new(algorithm, &octets).expect("no other size is taken");
            let nonce = algorithm.nonce_size().map(|size| &NONCE[..size]);
            let (message, mut tag, mut genuine) = (&[4; 48][..], vec![0; algorithm.tag_size()], false);
            run_batch_on(path, std::iter::once(Tag { key, nonce, message, tag: &mut tag }));
            assert_eq!(branches(&tag), tag.len() as u64, "{path}, {algorithm}");
            let verify = Verify { key, nonce, message, tag: &tag, genuine: &mut genuine };
            assert_eq!(complaints(|| run_batch_on(path, std::iter::once(verify))), 0, "{path}, {algorithm}");
            assert!(genuine);
        }
    }
    for path in HashPath::ALL.into_iter().filter(|path| path.is_available()) {
        let (key, mut tag, mut genuine) = (&secret(1, 16), [0; 32], false);
        let mut batch = HmacTagBatch::on(path);
        batch.push(HmacTag { key, parts: &[b"text"], tag: &mut tag });
        batch.run();
        assert_eq!(branches(&tag), 32, "{path}");
        let mut batch = HmacVerifyBatch::on(path);
        batch.push(HmacVerify { key, parts: &[b"text"], tag: &tag, genuine: &mut genuine });
        assert_eq!(complaints(|| batch.run()), 0, "{path}");
        assert!(genuine);
    }
}

/// How often a crate may branch on whether a tag is right: once, and once more where it asserts that this is one or
/// zero.
const VERDICT_MAX: u64 = 2;

/// Whether complaints of openings are those of a verdict alone, if the first is that of an empty text.
fn are_of_a_verdict(counts: &[u64]) -> bool {
    (1..=VERDICT_MAX).contains(&counts[0]) && counts.iter().all(|count| *count == counts[0])
}

#[test]
#[ignore = "counts complaints of memcheck"]
fn portable_openings_branch_on_nothing_but_whether_the_tag_is_right() {
    for algorithm in algorithms() {
        let mut texts = vec![Sealing::new(Path::Portable, algorithm, 0, 0)];
        for size in [1, 15, 16, 40, 104] {
            texts.extend([0, 1, 0xff].map(|octet| Sealing::new(Path::Portable, algorithm, octet, size)));
        }
        let counts = |wrong: Option<usize>| -> Vec<u64> {
            texts.iter().map(|text| text.open(Path::Portable, wrong).0).collect()
        };
        let right = counts(None);
        assert!(are_of_a_verdict(&right), "{algorithm:?}: {right:?}");
        let wrong: Vec<u64> = ends(16).into_iter().flat_map(|at| counts(Some(at))).collect();
        assert!(are_of_a_verdict(&wrong), "{algorithm:?}: {wrong:?}");
    }
}

/// The control of the test above.
#[test]
#[ignore = "counts complaints of memcheck"]
fn openings_that_compare_one_octet_after_another_or_look_at_the_text_are_told() {
    let is_equal = |a: &[u8], b: &[u8]| {
        // Ends at the first difference.
        complaints(|| {
            for (a, b) in a.iter().zip(b) {
                if black_box(a ^ b) != 0 {
                    black_box(());
                    break;
                }
            }
        })
    };
    let computed = secret(1, 16);
    let counts: Vec<u64> = ends(16)
        .into_iter()
        .map(|at| {
            let mut claimed = [1; 16];
            claimed[at] ^= 1;
            is_equal(&computed, &claimed)
        })
        .collect();
    assert_eq!(counts, [1, 16]);
    assert!(!are_of_a_verdict(&counts));
    // One verdict each, and the first octet of a text if it has any.
    let counts: Vec<u64> = [0, 1, 16].map(|size| 1 + branches(&secret(1, size.min(1)))).into();
    assert_eq!(counts, [1, 2, 2]);
    assert!(!are_of_a_verdict(&counts));
}
