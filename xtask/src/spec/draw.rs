//! Ten rows drawn at random, so that somebody can break their code and see whether their tests fail.

use std::fmt::Write as _;

use super::Spec;

const COUNT: usize = 10;

/// The rows that `seed` draws among those that are met, with the places of their code and tests.
pub(super) fn text(spec: &Spec, seed: u64) -> String {
    let mut rows: Vec<_> = spec.rows().map(|(_, row)| row).filter(|row| spec.is_met(&row.id)).collect();
    rows.sort_by(|one, other| one.id.cmp(&other.id));
    let mut state = seed;
    let mut text = String::new();
    for _ in 0..COUNT.min(rows.len()) {
        let index = next(&mut state) % rows.len() as u64;
        let row = rows.remove(index as usize);
        let _ = writeln!(text, "{}: {}", row.id, row.text);
        for (in_test, kind) in [(false, "code"), (true, "test")] {
            for place in spec.places(&row.id, in_test) {
                let _ = writeln!(text, "  {kind} {}:{}", place.path, place.line);
            }
        }
    }
    text
}

/// SplitMix64: the same rows for the same seed on every host.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}
