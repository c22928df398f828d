//! See `authentick_load::fuzzing::agent_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    authentick_load::fuzzing::agent_message(octets);
});
