//! A delay of known length, which the controls plant.

use std::hint::black_box;
use std::time::Instant;

/// A chain of so many multiplications, none of which can begin before the one ahead of it.
#[inline(never)]
pub(crate) fn delay(steps: u32) {
    let mut product = black_box(1_u64);
    for _ in 0..steps {
        product = black_box(product.wrapping_mul(3));
    }
    black_box(product);
}

/// Nanoseconds of one step: the fastest of some measurements.
pub(crate) fn step_ns() -> f64 {
    const STEPS: u32 = 10_000;
    let measure = |_| {
        let start = Instant::now();
        delay(STEPS);
        start.elapsed().as_nanos() as f64 / f64::from(STEPS)
    };
    (0..20).map(measure).fold(f64::INFINITY, f64::min)
}

/// Steps of about so many nanoseconds.
pub(crate) fn steps_of(ns: f64, step_ns: f64) -> u32 {
    (ns / step_ns).ceil() as u32
}
