//! Fuzz target: header patterns and restrictions of the start line.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::access_flags(bytes));
