//! AES-SIV-CMAC-256 over up to eight independent packets at once.
//!
//! One AES block takes ten rounds, each of which must wait for the one before; a CMAC is a chain of such blocks. The
//! processor could start a round of another packet in every cycle of that wait. So the same step of eight packets is
//! done before the next step of any, and the wait is filled.
//!
//! Each lane has its own key, nonce and lengths. A shorter lane runs on with nothing, its result already taken.

#[cfg(target_arch = "x86_64")]
mod aesni;
#[cfg(target_arch = "x86_64")]
mod siv;

#[cfg(target_arch = "x86_64")]
pub(crate) use siv::{OpenLanes, SealLanes, SivKey};

/// Packets that are processed side by side.
#[cfg(target_arch = "x86_64")]
pub(crate) const LANE_COUNT: usize = 8;

/// The key of one lane.
#[derive(Clone, Copy)]
pub(crate) enum LaneKey<'a> {
    /// To be expanded.
    Raw(&'a [u8; 32]),
    /// Already expanded.
    Expanded(&'a SivKey),
}

/// Whether this processor has the instructions.
#[inline]
pub(crate) fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("sse4.1");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use elsewhere::{OpenLanes, SealLanes, SivKey};

/// On processors without lanes no key is ever given to them.
#[cfg(not(target_arch = "x86_64"))]
mod elsewhere {
    use super::LaneKey;
    use crate::aead::{Open, Seal};

    pub(crate) enum SivKey {}

    impl SivKey {
        pub(crate) fn new(_: &[u8; 32]) -> Option<Self> {
            None
        }
    }

    pub(crate) struct SealLanes;

    impl SealLanes {
        pub(crate) fn new() -> Self {
            SealLanes
        }

        pub(crate) fn push(&mut self, _: LaneKey<'_>, _: Seal<'_>) {
            unreachable!("`available` is false here");
        }

        pub(crate) fn flush(&mut self) {}
    }

    pub(crate) struct OpenLanes;

    impl OpenLanes {
        pub(crate) fn new() -> Self {
            OpenLanes
        }

        pub(crate) fn push(&mut self, _: LaneKey<'_>, _: Open<'_>) {
            unreachable!("`available` is false here");
        }

        pub(crate) fn flush(&mut self) {}
    }
}
