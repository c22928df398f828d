//! The time-stamp counter: the finest clock of x86-64, and how fast it runs. Elsewhere nanoseconds stand in for it.

use crate::clock::monotonic_ns;

/// How long the counter is compared with the clock.
#[cfg(target_arch = "x86_64")]
const CALIBRATION_NS: u64 = 100_000_000;

/// The counter, read after everything before it has been done and before anything behind it begins.
#[inline]
#[must_use]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_lfence, _rdtsc};
        // SAFETY: the fence is part of SSE2, which every x86-64 processor has.
        unsafe { _mm_lfence() };
        // SAFETY: reads a counter; Linux lets user programs read it unless a process asks otherwise of itself.
        let ticks = unsafe { _rdtsc() };
        // SAFETY: as above.
        unsafe { _mm_lfence() };
        ticks
    }
    #[cfg(not(target_arch = "x86_64"))]
    monotonic_ns()
}

/// Reference cycles a second: the counter runs at the processor's nominal frequency, however it is clocked just now.
/// Found by comparison with the monotonic clock, for a tenth of a second. `None` where [`now`] counts nanoseconds.
#[must_use]
pub fn reference_hz() -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    {
        let (ticks, start_ns) = (now(), monotonic_ns());
        let mut elapsed_ns = 0;
        while elapsed_ns < CALIBRATION_NS {
            elapsed_ns = monotonic_ns() - start_ns;
        }
        Some(now().wrapping_sub(ticks) as f64 * 1e9 / elapsed_ns as f64)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_goes_on_at_the_rate_that_was_found() {
        let hz = reference_hz().unwrap_or(1e9);
        assert!((1e8..1e11).contains(&hz), "{hz}");
        let (ticks, start_ns) = (now(), monotonic_ns());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (ticks, elapsed_ns) = ((now() - ticks) as f64, (monotonic_ns() - start_ns) as f64);
        // The two clocks are not read at one instant, and this thread may wait in between.
        let seconds = ticks / hz;
        assert!((seconds * 1e9 / elapsed_ns - 1.0).abs() < 0.5, "{seconds} s, {elapsed_ns} ns");
    }
}
