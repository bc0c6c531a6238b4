//! Fuzz target: a generate request of v2 over HTTP.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::v2_generate(bytes));
