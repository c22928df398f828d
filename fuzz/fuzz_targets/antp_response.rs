//! See `authentick_proto::fuzzing::antp_response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| authentick_proto::fuzzing::antp_response(octets));
