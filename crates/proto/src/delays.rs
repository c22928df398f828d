//! Delays for one test: a step made a millisecond slower must show in its own span and in no other.
//!
//! Without the feature `delays` the call below compiles to nothing.

/// A step of the responder or of key exchange that can be slowed down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Opening cookies.
    OpenCookies,
    /// Building response headers.
    BuildHeaders,
    /// Sealing cookies.
    SealCookies,
}

#[cfg(feature = "delays")]
static DELAYS_US: [std::sync::atomic::AtomicU64; 3] = [const { std::sync::atomic::AtomicU64::new(0) }; 3];

/// Makes every later `step` take `microseconds` longer, in the whole process.
#[cfg(feature = "delays")]
pub fn set(step: Step, microseconds: u64) {
    DELAYS_US[step as usize].store(microseconds, std::sync::atomic::Ordering::SeqCst);
}

/// Sleeps as long as `set` said for `step`.
#[cfg(feature = "delays")]
pub(crate) fn pause(step: Step) {
    let delay = DELAYS_US[step as usize].load(std::sync::atomic::Ordering::SeqCst);
    if delay > 0 {
        std::thread::sleep(std::time::Duration::from_micros(delay));
    }
}

#[cfg(not(feature = "delays"))]
#[inline(always)]
pub(crate) fn pause(_: Step) {}
