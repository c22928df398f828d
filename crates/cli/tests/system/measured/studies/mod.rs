//! `authentick study`, one study after the other.

mod antp;
mod engine;
mod field;
mod given;
mod kept;
mod lacks;
mod ladder;
mod mac;
mod nts;
mod recompute;
mod rig;
