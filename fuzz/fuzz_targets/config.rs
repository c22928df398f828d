//! See `authentick_daemon::fuzzing::config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    authentick_daemon::fuzzing::config(octets);
});
