//! See `authentick_wire::fuzzing::extension_fields`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| authentick_wire::fuzzing::extension_fields(octets));
