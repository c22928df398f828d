//! Numbers that others published, one stem for each paper, with the table or figure that they stand in.
//!
//! They are there to be put beside ours as ratios: absolute figures from other hardware say nothing here.

pub mod antp;
pub mod ntp_mac;
pub mod request_threshold;
