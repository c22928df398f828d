//! One file per command.

pub(crate) mod bench;
pub(crate) mod certificates;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod game;
pub(crate) mod keys;
pub(crate) mod load;
pub(crate) mod manual;
pub(crate) mod plan;
pub(crate) mod query;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod stress;
pub(crate) mod study;
