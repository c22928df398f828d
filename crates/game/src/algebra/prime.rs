//! The integers modulo 2^130 - 5, in which Poly1305 computes. RFC 8439 section 2.5.

use std::fmt;
use std::sync::LazyLock;

use authentick_crypto::Entropy;
use num_bigint::BigUint;

use super::Field;
use super::polynomial::Polynomial;

/// 2^130 - 5.
static MODULUS: LazyLock<BigUint> = LazyLock::new(|| (BigUint::from(1_u8) << 130_u32) - 5_u8);

/// An integer below 2^130 - 5.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prime(BigUint);

impl Prime {
    /// The number in these octets, the lowest first, modulo 2^130 - 5.
    #[must_use]
    pub fn from_octets(octets: &[u8]) -> Self {
        Prime(BigUint::from_bytes_le(octets) % &*MODULUS)
    }

    /// `value` * 2^128, modulo 2^130 - 5.
    #[must_use]
    pub fn carry(value: u32) -> Self {
        Prime((BigUint::from(value) << 128_u32) % &*MODULUS)
    }

    /// The number modulo 2^128, the lowest octet first.
    #[must_use]
    pub fn low_octets(&self) -> [u8; 16] {
        let mut octets = [0; 16];
        let all = self.0.to_bytes_le();
        let size = all.len().min(16);
        octets[..size].copy_from_slice(&all[..size]);
        octets
    }

    /// Whether the number is below 2^128, so that [`low_octets`](Self::low_octets) are all that it has.
    #[must_use]
    pub fn fits_16_octets(&self) -> bool {
        self.0.bits() <= 128
    }
}

impl Field for Prime {
    fn zero() -> Self {
        Prime(BigUint::ZERO)
    }

    fn one() -> Self {
        Prime(BigUint::from(1_u8))
    }

    fn plus(&self, other: &Self) -> Self {
        Prime((&self.0 + &other.0) % &*MODULUS)
    }

    fn minus(&self, other: &Self) -> Self {
        Prime((&self.0 + &*MODULUS - &other.0) % &*MODULUS)
    }

    fn times(&self, other: &Self) -> Self {
        Prime((&self.0 * &other.0) % &*MODULUS)
    }

    fn inverse(&self) -> Option<Self> {
        self.0.modinv(&MODULUS).map(Prime)
    }

    fn random(entropy: &mut Entropy) -> Self {
        // 126 bits more than the modulus has: what the remainder favours cannot be noticed.
        Self::from_octets(&entropy.array::<32>())
    }

    fn all_roots(modulus: &Polynomial<Self>) -> Polynomial<Self> {
        let x = Polynomial::x();
        power(&x, &MODULUS, modulus).minus(&x).divided_by(modulus).1
    }

    /// (x + `choice`)^((p-1)/2) - 1, as half of all numbers are squares.
    fn half_of_roots(choice: &Self, modulus: &Polynomial<Self>) -> Polynomial<Self> {
        let base = Polynomial::new(vec![choice.clone(), Self::one()]);
        let half = (&*MODULUS - 1_u8) >> 1_u32;
        power(&base, &half, modulus).minus(&Polynomial::constant(Self::one()))
    }
}

/// `base`^`exponent` modulo `modulus`.
fn power(base: &Polynomial<Prime>, exponent: &BigUint, modulus: &Polynomial<Prime>) -> Polynomial<Prime> {
    let one = Polynomial::constant(Prime::one()).divided_by(modulus).1;
    (0..exponent.bits()).rev().fold(one, |power, bit| {
        let square = power.squared_modulo(modulus);
        if exponent.bit(bit) { square.times(base).divided_by(modulus).1 } else { square }
    })
}

impl fmt::Debug for Prime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_axioms_hold_for_random_elements() {
        let mut entropy = Entropy::from_seed(4);
        for _ in 0..50 {
            let [a, b, c] = std::array::from_fn(|_| Prime::random(&mut entropy));
            assert_eq!(a.times(&b).times(&c), a.times(&b.times(&c)));
            assert_eq!(a.plus(&b).times(&c), a.times(&c).plus(&b.times(&c)));
            assert_eq!(a.minus(&b).plus(&b), a);
            assert_eq!(a.inverse().map(|inverse| inverse.times(&a)), Some(Prime::one()));
        }
        assert_eq!(Prime::zero().inverse(), None);
    }

    #[test]
    fn two_to_the_130_is_five() {
        assert_eq!(Prime::carry(4), Prime::from_octets(&[5]));
        assert!(Prime::carry(4).fits_16_octets() && !Prime::carry(1).fits_16_octets());
        assert_eq!(Prime::carry(1).plus(&Prime::from_octets(&[7])).low_octets()[..2], [7, 0]);
    }
}
