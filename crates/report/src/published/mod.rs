//! Numbers that others published, one module for each paper, with the table or figure that they come from.
//!
//! They are compared with ours as ratios: absolute figures from other hardware say nothing here.

pub mod antp;
pub mod ntp_mac;
pub mod nts;
pub mod request_threshold;
