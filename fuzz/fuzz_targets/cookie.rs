//! See `authentick_proto::fuzzing::cookie`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| authentick_proto::fuzzing::cookie(octets));
