//! See `authentick_wire::fuzzing::ke_response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| authentick_wire::fuzzing::ke_response(octets));
