//! See `authentick_proto::fuzzing::mac_response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| authentick_proto::fuzzing::mac_response(octets));
