//! See `authentick_daemon::fuzzing::key_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| authentick_daemon::fuzzing::key_file(octets));
