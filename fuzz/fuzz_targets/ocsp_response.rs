//! See `authentick_ke::fuzzing::ocsp_response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| authentick_ke::fuzzing::ocsp_response(octets));
