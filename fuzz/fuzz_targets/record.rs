//! See `authentick_report::fuzzing::record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    authentick_report::fuzzing::record(octets);
});
