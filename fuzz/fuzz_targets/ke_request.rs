//! See `authentick_ke::fuzzing::request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| authentick_ke::fuzzing::request(octets));
