//! Where atomics, fences and threads come from: the standard library, and in the tests of this crate [`crate::model`],
//! which asks loom.

#[cfg(not(test))]
pub(crate) use std::{
    sync::OnceLock,
    sync::atomic::{AtomicBool, AtomicU64, fence},
    thread::{Thread, current, park_timeout},
};

#[cfg(test)]
pub(crate) use crate::model::{AtomicBool, AtomicU64, OnceLock, Thread, current, fence, park_timeout};
