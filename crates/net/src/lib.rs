//! Moves datagrams in batches, and everything else that needs system calls: clocks, processors, privileges,
//! TUN devices.
//!
//! The one crate in which `unsafe` is at home. It does not know that the datagrams are NTP, and never looks inside.
//! Linux only: `recvmmsg`, `sendmmsg`, kernel receive stamps.
#![expect(unsafe_code, reason = "system calls without a safe wrapper; each use names why it is sound")]

pub mod addresses;
pub mod affinity;
#[cfg(any(test, feature = "testing"))]
pub mod allocations;
pub mod clock;
pub mod custody;
pub mod descriptors;
pub mod engine;
pub mod fork;
pub mod inherited;
pub mod instructions;
pub mod interface;
pub mod memory;
pub mod notify;
pub mod passing;
pub mod poller;
pub mod priority;
pub mod privilege;
pub mod process;
pub mod refusal;
pub mod replace;
pub mod report_file;
#[cfg(all(test, authentick_sanitizer))]
mod sanitizer;
pub mod tcp;
pub mod ticks;
pub mod tun;
pub mod udp;
