//! See `authentick_fleet::fuzzing::memcached_response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    authentick_fleet::fuzzing::memcached_response(octets);
});
