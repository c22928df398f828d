//! See `authentick_ke::fuzzing::ke_dialogue`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    authentick_ke::fuzzing::ke_dialogue(octets);
});
