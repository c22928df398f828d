//! See `authentick_wire::fuzzing::antp_chain`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| authentick_wire::fuzzing::antp_chain(octets));
