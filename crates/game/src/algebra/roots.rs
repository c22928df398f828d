//! The roots of a polynomial that lie in its field, by Cantor and Zassenhaus: first what it has in common with
//! x^q - x, then random halves of that until each part has one root.

use authentick_crypto::Entropy;

use super::Field;
use super::polynomial::Polynomial;

/// Draws for one factor. One draw parts two roots with probability 1/2, so that all of them fail with 2^-128.
const DRAWS_MAX: u32 = 128;

/// All roots of `polynomial`, each once; none for the zero polynomial, of which every element is a root.
///
/// `entropy` decides how the search goes, and in which order the roots are found, but not which there are.
pub fn roots<F: Field>(polynomial: &Polynomial<F>, entropy: &mut Entropy) -> Vec<F> {
    if polynomial.degree().is_none_or(|degree| degree == 0) {
        return Vec::new();
    }
    let mut parts = vec![polynomial.common_divisor(&F::all_roots(polynomial))];
    let mut roots = Vec::new();
    // A part of n roots is divided n - 1 times, so the loop ends.
    while let Some(part) = parts.pop() {
        match part.degree() {
            None | Some(0) => {}
            Some(1) => roots.push(F::zero().minus(&part.monic().coefficient(0))),
            Some(_) => parts.extend(halves(&part, entropy).into_iter().flatten()),
        }
    }
    roots
}

/// `part` as the product of two; `None` if no draw divides it.
fn halves<F: Field>(part: &Polynomial<F>, entropy: &mut Entropy) -> Option<[Polynomial<F>; 2]> {
    (0..DRAWS_MAX).find_map(|_| {
        let half = part.common_divisor(&F::half_of_roots(&F::random(entropy), part));
        let is_proper = half.degree() > Some(0) && half.degree() < part.degree();
        is_proper.then(|| {
            let (rest, _) = part.divided_by(&half);
            [half, rest]
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::binary::Binary;
    use super::super::prime::Prime;
    use super::*;

    fn with_roots<F: Field>(roots: &[F]) -> Polynomial<F> {
        roots.iter().fold(Polynomial::constant(F::one()), |product, root| {
            product.times(&Polynomial::new(vec![F::zero().minus(root), F::one()]))
        })
    }

    fn all_roots_are_found_and_no_others<F: Field + Ord>() {
        let mut entropy = Entropy::from_seed(5);
        for count in 1..=6 {
            let mut expected: Vec<F> = (0..count).map(|_| F::random(&mut entropy)).collect();
            let polynomial = with_roots(&expected).scaled(&F::random(&mut entropy));
            let mut found = roots(&polynomial, &mut entropy);
            expected.sort();
            found.sort();
            assert_eq!(found, expected);
        }
    }

    /// Of all cubics, some have roots and some have none; what is found is a root, and a factor that has none stays.
    fn found_roots_are_roots<F: Field + Ord>() {
        let mut entropy = Entropy::from_seed(6);
        let mut counts = [0; 4];
        for _ in 0..40 {
            let cubic = Polynomial::new((0..4).map(|_| F::random(&mut entropy)).collect());
            let found = roots(&cubic, &mut entropy);
            assert!(found.iter().all(|root| cubic.at(root) == F::zero()));
            counts[found.len()] += 1;
        }
        // A third has none, half have one, a sixth have three; two take a double root.
        assert!(counts[0] > 0 && counts[1] > 0 && counts[3] > 0, "{counts:?}");
    }

    #[test]
    fn all_roots_are_found_and_no_others_in_both_fields() {
        all_roots_are_found_and_no_others::<Binary>();
        all_roots_are_found_and_no_others::<Prime>();
    }

    #[test]
    fn found_roots_are_roots_in_both_fields() {
        found_roots_are_roots::<Binary>();
        found_roots_are_roots::<Prime>();
    }

    #[test]
    fn double_root_is_found_once() {
        let mut entropy = Entropy::from_seed(7);
        let [a, b] = std::array::from_fn(|_| Binary::random(&mut entropy));
        let mut found = roots(&with_roots(&[a, a, b]), &mut entropy);
        let mut expected = [a, b];
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn constants_have_no_roots_and_x_has_zero() {
        let mut entropy = Entropy::from_seed(8);
        assert_eq!(roots(&Polynomial::constant(Prime::one()), &mut entropy), []);
        assert_eq!(roots(&Polynomial::<Prime>::new(Vec::new()), &mut entropy), []);
        assert_eq!(roots(&Polynomial::<Prime>::x(), &mut entropy), [Prime::zero()]);
    }
}
