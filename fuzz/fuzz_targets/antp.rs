//! See `authentick_wire::fuzzing::antp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| authentick_wire::fuzzing::antp(octets));
