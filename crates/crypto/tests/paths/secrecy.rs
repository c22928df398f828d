//! Whether a branch or an address depends on a secret, as valgrind's memcheck sees it: see `authentick_lanes::secrecy`.
//! Without valgrind these tests only compute. `cargo xtask ci --only memcheck` runs them under it, on all paths that it
//! knows. What is absent is the opening of AEADs on the portable path, where a crate branches on whether a tag is
//! right: see [`super::complaints`].

use authentick_crypto::aead::{Algorithm, CachedKey, Key, KeyRef, Open, Seal};
use authentick_crypto::gcm::{GcmKey, GcmOpen, GcmOpenBatch, GcmSeal, gcm_seal_on};
use authentick_crypto::kdf::{HmacTag, HmacTagBatch, HmacVerify, HmacVerifyBatch};
use authentick_crypto::mac::{self, MacAlgorithm, Tag, Verify};
use authentick_crypto::{HashPath, Path, run_batch_on};
use authentick_lanes::secrecy::make_secret;

/// The first and the last octet of a tag: where a comparison that ends early takes the shortest and the longest time.
pub(crate) fn ends(size: usize) -> [usize; 2] {
    [0, size - 1]
}

/// Seals under secret keys secret texts of these sizes, and opens them again where the comparison is ours.
fn seal_and_open(path: Path, algorithm: Option<Algorithm>, sizes: &[usize]) {
    let mut octets = [0x3c; 64];
    make_secret(&mut octets);
    let master = CachedKey::new(octets.first_chunk().expect("64 octets begin with 32"));
    let session = algorithm.map(|algorithm| {
        Key::new(algorithm, &octets[..algorithm.key_size()]).expect("no key has more than 64 octets")
    });
    let key = || session.as_ref().map_or_else(|| KeyRef::from(&master), KeyRef::from);
    let nonce = &[5; 16][..algorithm.map_or(12, Algorithm::nonce_size)];
    let mut sealed: Vec<(Vec<u8>, [u8; 16])> = sizes.iter().map(|size| (vec![1; *size], [0; 16])).collect();
    sealed.iter_mut().for_each(|(text, _)| make_secret(text));
    let associated = [9; 88];
    run_batch_on(
        path,
        sealed.iter_mut().map(|(text, tag)| {
            let associated = algorithm.map(|_| &associated[..text.len() % 88]);
            Seal { key: key(), nonce, associated, text: text.as_mut_slice().into(), tag }
        }),
    );
    if path == Path::Portable {
        return;
    }
    let mut out: Vec<(Vec<u8>, bool)> = sealed.iter().map(|(text, _)| (text.clone(), false)).collect();
    run_batch_on(
        path,
        sealed.iter().zip(&mut out).map(|((text, tag), (opened, genuine))| {
            let associated = algorithm.map(|_| &associated[..text.len() % 88]);
            Open { key: key(), nonce, associated, text: opened.as_mut_slice().into(), tag, genuine }
        }),
    );
    assert!(out.iter().all(|(_, genuine)| *genuine));
    let (text, tag) = &sealed[0];
    for at in ends(tag.len()) {
        let (mut tag, mut text_out, mut genuine) = (*tag, text.clone(), true);
        tag[at] ^= 1;
        let associated = algorithm.map(|_| &associated[..text.len() % 88]);
        let (text, genuine_out) = (text_out.as_mut_slice().into(), &mut genuine);
        let job = Open { key: key(), nonce, associated, text, tag: &tag, genuine: genuine_out };
        run_batch_on(path, std::iter::once(job));
        assert!(!genuine);
    }
}

#[test]
fn no_branch_and_no_address_depends_on_a_secret() {
    for path in Path::ALL.into_iter().filter(|path| path.is_available()) {
        for algorithm in Algorithm::ALL.map(Some).into_iter().chain([None]) {
            for count in [1, 3, 8, 17] {
                seal_and_open(path, algorithm, &vec![104; count]);
                let sizes: Vec<usize> = (0..count).map(|lane| lane * 13).collect();
                seal_and_open(path, algorithm, &sizes);
            }
        }
    }
}

/// Computes the tags of secret messages of these sizes under secret keys, and verifies them.
fn tag_and_verify(path: Path, algorithm: MacAlgorithm, is_one_key: bool, sizes: &[usize]) {
    let octets = |index: usize| vec![index as u8; (*algorithm.key_sizes().end()).min(32)];
    let key = |index: usize| {
        let mut octets = octets(index);
        make_secret(&mut octets);
        mac::MacKey::new(algorithm, &octets).expect("no other size is taken")
    };
    let keys: Vec<mac::MacKey> = (0..if is_one_key { 1 } else { sizes.len() }).map(key).collect();
    let mut messages: Vec<Vec<u8>> = sizes.iter().map(|size| vec![1; *size]).collect();
    messages.iter_mut().for_each(|message| make_secret(message));
    let nonce = algorithm.nonce_size().map(|size| &[5; 12][..size]);
    let mut tags = vec![vec![0; algorithm.tag_size()]; sizes.len()];
    let jobs = || keys.iter().cycle().zip(&messages);
    run_batch_on(path, jobs().zip(&mut tags).map(|((key, message), tag)| Tag { key, nonce, message, tag }));
    let [first, last] = ends(algorithm.tag_size());
    for (wrong, at) in [(None, 0), (Some(0), first), (Some(sizes.len() - 1), last)] {
        let mut claimed = tags.clone();
        if let Some(wrong) = wrong {
            claimed[wrong][at] ^= 1;
        }
        let mut genuine = vec![false; sizes.len()];
        let claims = jobs().zip(&claimed).zip(&mut genuine);
        run_batch_on(
            path,
            claims.map(|(((key, message), tag), genuine)| Verify { key, nonce, message, tag, genuine }),
        );
        let expected: Vec<bool> = (0..sizes.len()).map(|index| Some(index) != wrong).collect();
        assert_eq!(genuine, expected);
    }
}

#[test]
fn no_branch_and_no_address_of_a_mac_depends_on_a_secret() {
    for path in Path::ALL.into_iter().filter(|path| path.is_available()) {
        for algorithm in MacAlgorithm::ALL {
            for (count, is_one_key) in
                [1, 3, 8, 17].into_iter().flat_map(|count| [(count, true), (count, false)])
            {
                tag_and_verify(path, algorithm, is_one_key, &vec![48; count]);
                let sizes: Vec<usize> = (0..count).map(|lane| lane * 13).collect();
                tag_and_verify(path, algorithm, is_one_key, &sizes);
            }
        }
    }
}

/// Computes and verifies HMAC-SHA256 of secret texts of these sizes under secret keys of 16 octets.
fn tag_and_verify_hmac(path: HashPath, sizes: &[usize]) {
    let secret = |size: usize| {
        let mut octets = vec![7; size];
        make_secret(&mut octets);
        octets
    };
    let keys: Vec<Vec<u8>> = sizes.iter().map(|_| secret(16)).collect();
    let texts: Vec<Vec<u8>> = sizes.iter().map(|size| secret(*size)).collect();
    let lists: Vec<[&[u8]; 2]> = texts.iter().map(|text| [&b"label"[..], text]).collect();
    let mut tags = vec![[0; 32]; sizes.len()];
    let mut batch = HmacTagBatch::on(path);
    for ((key, parts), tag) in keys.iter().zip(&lists).zip(&mut tags) {
        batch.push(HmacTag { key, parts, tag });
    }
    batch.run();
    for (wrong, at) in [(None, 0), (Some(0), 0), (Some(sizes.len() - 1), 31)] {
        let mut claimed = tags.clone();
        if let Some(wrong) = wrong {
            claimed[wrong][at] ^= 1;
        }
        let mut genuine = vec![false; sizes.len()];
        let mut batch = HmacVerifyBatch::on(path);
        for (((key, parts), tag), genuine) in keys.iter().zip(&lists).zip(&claimed).zip(&mut genuine) {
            batch.push(HmacVerify { key, parts, tag, genuine });
        }
        batch.run();
        let expected: Vec<bool> = (0..sizes.len()).map(|index| Some(index) != wrong).collect();
        assert_eq!(genuine, expected);
    }
}

#[test]
fn no_branch_and_no_address_of_an_hmac_depends_on_a_secret() {
    for path in HashPath::ALL.into_iter().filter(|path| path.is_available()) {
        for count in [1, 3, 8, 17] {
            tag_and_verify_hmac(path, &vec![225; count]);
            tag_and_verify_hmac(path, &(0..count).map(|lane| lane * 29).collect::<Vec<_>>());
        }
    }
}

/// Seals secret texts of these sizes under a secret key with AES-128-GCM, and opens them again.
fn seal_and_open_gcm(path: Path, associated: &[u8], sizes: &[usize]) {
    let mut octets = [0x3c; 16];
    make_secret(&mut octets);
    let key = GcmKey::new(&octets);
    let mut texts: Vec<Vec<u8>> = sizes.iter().map(|size| vec![1; *size]).collect();
    texts.iter_mut().for_each(|text| make_secret(text));
    let mut tags = vec![[0; 16]; sizes.len()];
    for (text, tag) in texts.iter_mut().zip(&mut tags) {
        gcm_seal_on(path, GcmSeal { key: &key, nonce: &[5; 12], associated, text, tag });
    }
    let open = |tags: &[[u8; 16]]| {
        let (mut opened, mut genuine) = (texts.clone(), vec![false; sizes.len()]);
        let mut batch = GcmOpenBatch::on(path);
        for ((text, tag), genuine) in opened.iter_mut().zip(tags).zip(&mut genuine) {
            let (nonce, text) = (&[5; 12], (&mut text[..]).into());
            batch.push(GcmOpen { key: &key, nonce, associated, text, tag, genuine });
        }
        batch.run();
        genuine
    };
    assert_eq!(open(&tags), vec![true; sizes.len()]);
    for at in ends(16) {
        let mut wrong = tags.clone();
        wrong[0][at] ^= 1;
        let expected: Vec<bool> = (0..sizes.len()).map(|index| index != 0).collect();
        assert_eq!(open(&wrong), expected);
    }
}

/// Octets of what is associated with C1 and C2 of ANTP, and of their texts.
pub(crate) const STATES: [(usize, usize); 2] = [(29, 40), (13, 28)];

#[test]
fn no_branch_and_no_address_of_gcm_depends_on_a_secret() {
    for path in Path::ALL.into_iter().filter(|path| path.is_available()) {
        for count in [1, 3, 8, 17] {
            for (associated, text) in STATES {
                seal_and_open_gcm(path, &vec![9; associated], &vec![text; count]);
            }
            seal_and_open_gcm(path, &[9; 13], &(0..count).map(|lane| lane * 13).collect::<Vec<_>>());
        }
    }
}
