//! Numbers that others published, one file for each paper, with the table or figure that they stand in.
//!
//! They are there to be put beside ours as ratios: absolute figures from other hardware say nothing here.

pub mod antp;
pub mod mac;
pub mod mac_draft_00;
pub mod mac_draft_ietf;
pub mod request_threshold;
