//! See `authentick_ke::fuzzing::ke_connections`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    authentick_ke::fuzzing::ke_connections(octets);
});
