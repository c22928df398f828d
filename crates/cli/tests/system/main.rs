//! The whole system: the binary as users run it, over real sockets, beside real peers.
//!
//! A test that needs rights or a peer that is missing says so and passes; `cargo xtask test` lists those at its end.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod addresses;
mod antp;
mod antp_ocsp;
mod certificates;
mod cfnts_layout;
mod containment;
mod crowd;
mod demo;
mod derived_keys;
mod doctor;
mod fleet;
mod fleet_setup;
mod followed_keys;
mod game;
mod hostile_clock;
mod hostile_exchange;
mod hostile_files;
mod interop;
mod kept;
mod lab;
mod lab_certificates;
mod load;
mod logs;
mod mac;
mod manifests;
mod measured;
mod mistakes;
mod names;
mod neighbours;
mod ntpsec;
mod operator;
mod others;
mod outputs;
mod pages;
mod passing;
mod probes;
mod promises;
mod query;
mod readme;
mod recompute;
mod report;
mod roles;
mod routes;
mod screen;
mod service;
mod stress;
mod symmetric;
mod timed;
mod upgrade;
mod victims;
mod vouching;
mod workers;
