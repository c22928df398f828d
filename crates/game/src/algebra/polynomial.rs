//! Polynomials in one variable over a [`Field`]: what Euclid's algorithm needs, and no more.

use super::Field;

/// A polynomial; the coefficient of x^i stands at i, and the last one is not zero. The zero polynomial has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Polynomial<F>(Vec<F>);

impl<F: Field> Polynomial<F> {
    /// The polynomial with these coefficients, that of x^i at i.
    #[must_use]
    pub fn new(coefficients: Vec<F>) -> Self {
        let mut polynomial = Polynomial(coefficients);
        polynomial.trim();
        polynomial
    }

    /// x.
    #[must_use]
    pub fn x() -> Self {
        Polynomial(vec![F::zero(), F::one()])
    }

    /// `value`, everywhere.
    #[must_use]
    pub fn constant(value: F) -> Self {
        Self::new(vec![value])
    }

    /// The highest power of x; `None` for the zero polynomial.
    #[must_use]
    pub fn degree(&self) -> Option<usize> {
        self.0.len().checked_sub(1)
    }

    /// The coefficient of x^`power`.
    #[must_use]
    pub fn coefficient(&self, power: usize) -> F {
        self.0.get(power).cloned().unwrap_or_else(F::zero)
    }

    /// The value at `x`, by Horner's rule.
    #[must_use]
    pub fn at(&self, x: &F) -> F {
        self.0.iter().rev().fold(F::zero(), |sum, coefficient| sum.times(x).plus(coefficient))
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.by_power(other, F::plus)
    }

    /// The difference.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.by_power(other, F::minus)
    }

    /// The product.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let size = (self.0.len() + other.0.len()).saturating_sub(1);
        let mut product = vec![F::zero(); size];
        for (i, a) in self.0.iter().enumerate() {
            for (j, b) in other.0.iter().enumerate() {
                product[i + j] = product[i + j].plus(&a.times(b));
            }
        }
        Self::new(product)
    }

    /// The product with one element of the field.
    #[must_use]
    pub fn scaled(&self, factor: &F) -> Self {
        Self::new(self.0.iter().map(|coefficient| coefficient.times(factor)).collect())
    }

    /// The square, modulo `modulus`.
    #[must_use]
    pub fn squared_modulo(&self, modulus: &Self) -> Self {
        self.times(self).divided_by(modulus).1
    }

    /// Quotient and remainder.
    ///
    /// # Panics
    /// If `divisor` is the zero polynomial.
    #[must_use]
    pub fn divided_by(&self, divisor: &Self) -> (Self, Self) {
        let inverse = divisor.0.last().and_then(F::inverse).expect("the divisor is not zero");
        let size = divisor.0.len();
        let mut remainder = self.0.clone();
        let mut quotient = vec![F::zero(); (remainder.len() + 1).saturating_sub(size)];
        for at in (0..quotient.len()).rev() {
            let factor = remainder[at + size - 1].times(&inverse);
            for (i, coefficient) in divisor.0.iter().enumerate() {
                remainder[at + i] = remainder[at + i].minus(&coefficient.times(&factor));
            }
            quotient[at] = factor;
        }
        (Self::new(quotient), Self::new(remainder))
    }

    /// The same roots, with 1 before the highest power; the zero polynomial stays what it is.
    #[must_use]
    pub fn monic(&self) -> Self {
        match self.0.last().and_then(F::inverse) {
            Some(inverse) => self.scaled(&inverse),
            None => self.clone(),
        }
    }

    /// The greatest common divisor, monic.
    #[must_use]
    pub fn common_divisor(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.clone(), other.clone());
        while b.degree().is_some() {
            let remainder = a.divided_by(&b).1;
            (a, b) = (b, remainder);
        }
        a.monic()
    }

    fn by_power(&self, other: &Self, apply: impl Fn(&F, &F) -> F) -> Self {
        let size = self.0.len().max(other.0.len());
        Self::new((0..size).map(|power| apply(&self.coefficient(power), &other.coefficient(power))).collect())
    }

    fn trim(&mut self) {
        let zero = F::zero();
        while self.0.last() == Some(&zero) {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::binary::Binary;
    use super::super::prime::Prime;
    use super::*;
    use authentick_crypto::Entropy;

    fn random<F: Field>(entropy: &mut Entropy, size: usize) -> Polynomial<F> {
        Polynomial::new((0..size).map(|_| F::random(entropy)).collect())
    }

    fn division_is_undone_by_multiplication<F: Field>() {
        let mut entropy = Entropy::from_seed(1);
        for (a_size, b_size) in (0..6).flat_map(|a| (1..6).map(move |b| (a, b))) {
            let (a, b) = (random::<F>(&mut entropy, a_size), random::<F>(&mut entropy, b_size));
            let (quotient, remainder) = a.divided_by(&b);
            assert_eq!(quotient.times(&b).plus(&remainder), a);
            assert!(remainder.degree() < b.degree(), "{a_size} {b_size}");
        }
    }

    fn common_factor_is_found<F: Field>() {
        let mut entropy = Entropy::from_seed(2);
        let [a, b, c] = std::array::from_fn(|_| random::<F>(&mut entropy, 3));
        assert_eq!(a.times(&c).common_divisor(&b.times(&c)), c.monic());
        assert_eq!(a.common_divisor(&b), Polynomial::constant(F::one()));
        assert_eq!(a.common_divisor(&Polynomial::new(Vec::new())), a.monic());
    }

    #[test]
    fn division_is_undone_by_multiplication_in_both_fields() {
        division_is_undone_by_multiplication::<Binary>();
        division_is_undone_by_multiplication::<Prime>();
    }

    #[test]
    fn common_factor_is_found_in_both_fields() {
        common_factor_is_found::<Binary>();
        common_factor_is_found::<Prime>();
    }

    #[test]
    fn zeros_at_the_end_are_no_coefficients() {
        let polynomial = Polynomial::new(vec![Prime::one(), Prime::zero(), Prime::zero()]);
        assert_eq!((polynomial.degree(), polynomial.coefficient(7)), (Some(0), Prime::zero()));
        assert_eq!(polynomial.minus(&polynomial).degree(), None);
    }
}
