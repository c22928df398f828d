//! Delays for one test: a step made some milliseconds slower must show in its own span and in no other.
//!
//! Without the feature `delays` the call below compiles to nothing.

/// A step of the responder or of key exchange that can be slowed down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Requests become packets.
    Parse,
    /// Access and rate are checked.
    Admit,
    /// Opening cookies.
    OpenCookies,
    /// Verifying requests of NTS.
    VerifyRequests,
    /// Sealing fresh cookies into answers of NTS.
    SealFreshCookies,
    /// Building response headers.
    BuildHeaders,
    /// Sealing answers of NTS.
    SealResponses,
    /// The TLS handshake of a key exchange.
    ShakeHands,
    /// Choosing the algorithm of a key exchange.
    ChooseAlgorithm,
    /// Exporting keys.
    ExportKeys,
    /// Sealing the cookies of a key exchange.
    SealCookies,
    /// Writing the response of a key exchange.
    WriteResponse,
}

#[cfg(feature = "delays")]
const STEP_COUNT: usize = Step::WriteResponse as usize + 1;

#[cfg(feature = "delays")]
static DELAYS_US: [std::sync::atomic::AtomicU64; STEP_COUNT] =
    [const { std::sync::atomic::AtomicU64::new(0) }; STEP_COUNT];

/// Makes every later `step` take `microseconds` longer, in the whole process.
#[cfg(feature = "delays")]
pub fn set(step: Step, microseconds: u64) {
    DELAYS_US[step as usize].store(microseconds, std::sync::atomic::Ordering::SeqCst);
}

/// Sleeps as long as `set` said for `step`.
#[cfg(feature = "delays")]
pub fn pause(step: Step) {
    let delay = DELAYS_US[step as usize].load(std::sync::atomic::Ordering::SeqCst);
    if delay > 0 {
        std::thread::sleep(std::time::Duration::from_micros(delay));
    }
}

/// Does nothing: this build has no delays.
#[cfg(not(feature = "delays"))]
#[inline(always)]
pub fn pause(_: Step) {}
