//! GF(2^128) as GCM sees it: modulo x^128 + x^7 + x^2 + x + 1, and the first bit of the first octet is the coefficient
//! of x^0. NIST SP 800-38D section 6.3.

use std::fmt;

use authentick_crypto::Entropy;

use super::Field;
use super::polynomial::Polynomial;

/// x^7 + x^2 + x + 1, which is x^128 here.
const REDUCTION: u128 = 0xe1 << 120;

/// An element; its highest bit is the coefficient of x^0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Binary(u128);

impl Binary {
    /// The element in this block.
    #[must_use]
    pub const fn from_block(block: [u8; 16]) -> Self {
        Binary(u128::from_be_bytes(block))
    }

    /// The block of this element.
    #[must_use]
    pub const fn to_block(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The element whose square is this one: there is just one.
    #[must_use]
    pub fn square_root(&self) -> Self {
        (0..127).fold(*self, |power, _| power.times(&power))
    }
}

impl Field for Binary {
    fn zero() -> Self {
        Binary(0)
    }

    fn one() -> Self {
        Binary(1 << 127)
    }

    fn plus(&self, other: &Self) -> Self {
        Binary(self.0 ^ other.0)
    }

    fn minus(&self, other: &Self) -> Self {
        self.plus(other)
    }

    fn times(&self, other: &Self) -> Self {
        let (mut product, mut doubled) = (0, self.0);
        for power in 0..128 {
            if other.0 << power >> 127 == 1 {
                product ^= doubled;
            }
            doubled = (doubled >> 1) ^ if doubled & 1 == 1 { REDUCTION } else { 0 };
        }
        Binary(product)
    }

    /// a^(2^128 - 2), by Fermat.
    fn inverse(&self) -> Option<Self> {
        let mut square = *self;
        let mut product = Self::one();
        for _ in 1..128 {
            square = square.times(&square);
            product = product.times(&square);
        }
        (*self != Self::zero()).then_some(product)
    }

    fn random(entropy: &mut Entropy) -> Self {
        Self::from_block(entropy.array())
    }

    fn all_roots(modulus: &Polynomial<Self>) -> Polynomial<Self> {
        let x = Polynomial::x();
        let power = (0..128).fold(x.clone(), |power, _| power.squared_modulo(modulus));
        power.minus(&x).divided_by(modulus).1
    }

    /// The trace of `choice` * x, which is 0 or 1 everywhere.
    fn half_of_roots(choice: &Self, modulus: &Polynomial<Self>) -> Polynomial<Self> {
        let start = Polynomial::x().scaled(choice).divided_by(modulus).1;
        let (trace, _) = (1..128).fold((start.clone(), start), |(sum, power), _| {
            let power = power.squared_modulo(modulus);
            (sum.plus(&power), power)
        });
        trace
    }
}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hex_literal::hex;

    /// The product of GCM's test case 2: H times the only block of the ciphertext.
    #[test]
    fn product_is_that_of_gcm() {
        let h = Binary::from_block(hex!("66e94bd4ef8a2c3b884cfa59ca342b2e"));
        let block = Binary::from_block(hex!("0388dace60b6a392f328c2b971b2fe78"));
        assert_eq!(h.times(&block).to_block(), hex!("5e2ec746917062882c85b0685353deb7"));
    }

    #[test]
    fn field_axioms_hold_for_random_elements() {
        let mut entropy = Entropy::from_seed(3);
        for _ in 0..50 {
            let [a, b, c] = std::array::from_fn(|_| Binary::random(&mut entropy));
            assert_eq!(a.times(&b), b.times(&a));
            assert_eq!(a.times(&b).times(&c), a.times(&b.times(&c)));
            assert_eq!(a.plus(&b).times(&c), a.times(&c).plus(&b.times(&c)));
            assert_eq!(a.times(&Binary::one()), a);
            assert_eq!(a.inverse().map(|inverse| inverse.times(&a)), Some(Binary::one()));
            assert_eq!(a.square_root().times(&a.square_root()), a);
        }
        assert_eq!(Binary::zero().inverse(), None);
    }
}
