//! Finding the roots of polynomials over finite fields, which is how a repeated nonce gives a key away.
//!
//! Nothing here is constant in time: the adversary has no secret of its own. Nothing is fast either; the polynomials of
//! an NTP packet have a handful of terms.

pub mod binary;
pub mod polynomial;
pub mod prime;
pub mod roots;

use authentick_crypto::Entropy;

use self::polynomial::Polynomial;

/// A finite field, and the two maps that root finding needs of it.
pub trait Field: Clone + PartialEq + std::fmt::Debug + Sized {
    /// The neutral element of addition.
    fn zero() -> Self;

    /// The neutral element of multiplication.
    fn one() -> Self;

    /// The sum.
    #[must_use]
    fn plus(&self, other: &Self) -> Self;

    /// The difference.
    #[must_use]
    fn minus(&self, other: &Self) -> Self;

    /// The product.
    #[must_use]
    fn times(&self, other: &Self) -> Self;

    /// What gives one in a product with this element; `None` for zero, which has no inverse.
    fn inverse(&self) -> Option<Self>;

    /// An element in which each is as likely as any other.
    fn random(entropy: &mut Entropy) -> Self;

    /// x^q - x modulo `modulus`, where q is the number of elements: it vanishes at each element of the field, and so
    /// has in common with `modulus` the roots of that, each once.
    fn all_roots(modulus: &Polynomial<Self>) -> Polynomial<Self>;

    /// A polynomial that vanishes at about half of the field's elements; at which is decided by `choice`.
    fn half_of_roots(choice: &Self, modulus: &Polynomial<Self>) -> Polynomial<Self>;
}
