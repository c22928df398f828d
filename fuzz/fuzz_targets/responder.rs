//! See `authentick_proto::fuzzing::responder`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| authentick_proto::fuzzing::responder(octets));
