//! Jobs that own what they refer to, made from a seed, and run as one batch on a path.

use authentick_crypto::{
    Algorithm, CachedKey, Entropy, Key, KeyRef, Open, Path, Seal, TAG_SIZE, Text, run_batch_on,
};

/// The key of a case.
pub(crate) enum CaseKey {
    Session(Key),
    /// Index into the kept keys.
    Kept(usize),
}

/// A text to seal.
pub(crate) struct Case {
    pub(crate) key: CaseKey,
    pub(crate) nonce: Vec<u8>,
    pub(crate) associated: Option<Vec<u8>>,
    pub(crate) text: Vec<u8>,
}

/// A sealed text and its tag.
pub(crate) type Sealed = (Vec<u8>, [u8; TAG_SIZE]);

/// Three keys that are kept expanded.
pub(crate) fn kept_keys(entropy: &mut Entropy) -> [CachedKey; 3] {
    std::array::from_fn(|_| CachedKey::new(&entropy.array()))
}

/// How the cases of a batch resemble one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One algorithm and equal sizes: what a server sees.
    Even,
    /// Six of these, taking turns: more than are collected at once.
    Few,
    /// Any algorithm, session and kept keys, sizes from nothing to a large packet.
    Mixed,
}

/// `count` random cases.
pub(crate) fn cases(entropy: &mut Entropy, count: usize, shape: Shape) -> Vec<Case> {
    let mut draw = |entropy: &mut Entropy, limit: usize| {
        usize::try_from(u64::from_le_bytes(entropy.array()) % limit as u64).unwrap()
    };
    // Short sizes have branches of their own, so half of the sizes are short.
    let size = |entropy: &mut Entropy, draw: &mut dyn FnMut(&mut Entropy, usize) -> usize| {
        let limit = if draw(entropy, 2) == 0 { 50 } else { 1501 };
        draw(entropy, limit)
    };
    let mut plan = |entropy: &mut Entropy| {
        let algorithm = draw(entropy, 5);
        // SIV takes long ones too, which nobody sends but a tester.
        let nonce_limit = if draw(entropy, 8) == 0 { 600 } else { 40 };
        let nonce_size = 1 + draw(entropy, nonce_limit);
        let associated_size = (draw(entropy, 4) > 0).then(|| size(entropy, &mut draw));
        (algorithm, nonce_size, associated_size, size(entropy, &mut draw))
    };
    let plan_count = match shape {
        Shape::Even => 1,
        Shape::Few => 6,
        Shape::Mixed => count,
    };
    let plans: Vec<_> = (0..plan_count).map(|_| plan(entropy)).collect();
    let make = |index: usize| {
        let (algorithm, nonce_size, associated_size, text_size) = plans[index % plan_count];
        let mut octets = |size: usize| {
            let mut octets = vec![0; size];
            entropy.fill(&mut octets);
            octets
        };
        let (key, nonce_size) = match Algorithm::ALL.get(algorithm) {
            Some(&algorithm) => {
                let key = Key::new(algorithm, &octets(algorithm.key_size())).unwrap();
                let is_free = algorithm.accepts_nonce(nonce_size);
                (CaseKey::Session(key), if is_free { nonce_size } else { algorithm.nonce_size() })
            }
            None => (CaseKey::Kept(usize::from(octets(1)[0]) % 3), nonce_size),
        };
        let associated = associated_size.map(&mut octets);
        Case { key, nonce: octets(nonce_size), associated, text: octets(text_size) }
    };
    (0..count).map(make).collect()
}

fn key<'a>(case: &'a Case, kept: &'a [CachedKey; 3]) -> KeyRef<'a> {
    match &case.key {
        CaseKey::Session(key) => key.into(),
        CaseKey::Kept(index) => (&kept[*index]).into(),
    }
}

/// Every other text is read from `source` and written to `text`, whose octets are made to mean nothing.
fn in_place_or_apart<'a>(index: usize, source: &'a [u8], text: &'a mut Vec<u8>) -> Text<'a> {
    if index.is_multiple_of(2) {
        return text.as_mut_slice().into();
    }
    text.fill(0xee);
    Text::new(source, text).unwrap()
}

/// Seals all cases in one batch.
pub(crate) fn seal(path: Path, cases: &[Case], kept: &[CachedKey; 3]) -> Vec<Sealed> {
    let mut out: Vec<Sealed> = cases.iter().map(|case| (case.text.clone(), [0; TAG_SIZE])).collect();
    run_batch_on(
        path,
        cases.iter().zip(&mut out).enumerate().map(|(index, (case, (text, tag)))| Seal {
            key: key(case, kept),
            nonce: &case.nonce,
            associated: case.associated.as_deref(),
            text: in_place_or_apart(index, &case.text, text),
            tag,
        }),
    );
    out
}

/// Opens all texts in one batch; the text is returned also where it is not genuine.
pub(crate) fn open(
    path: Path,
    cases: &[Case],
    kept: &[CachedKey; 3],
    sealed: &[Sealed],
) -> Vec<(Vec<u8>, bool)> {
    let mut out: Vec<(Vec<u8>, bool)> = sealed.iter().map(|(text, _)| (text.clone(), false)).collect();
    run_batch_on(
        path,
        cases.iter().zip(sealed).zip(&mut out).enumerate().map(
            |(index, ((case, (source, tag)), (text, genuine)))| Open {
                key: key(case, kept),
                nonce: &case.nonce,
                associated: case.associated.as_deref(),
                text: in_place_or_apart(index, source, text),
                tag,
                genuine,
            },
        ),
    );
    out
}
