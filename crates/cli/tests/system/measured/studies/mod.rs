//! `authentick study`, one study after the other.

mod antp;
mod engine;
mod field;
mod given;
mod lacks;
mod ladder;
mod mac;
mod nts;
mod recompute;
mod rig;
