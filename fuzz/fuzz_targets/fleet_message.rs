//! See `authentick_fleet::fuzzing::fleet_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    authentick_fleet::fuzzing::fleet_message(octets);
});
