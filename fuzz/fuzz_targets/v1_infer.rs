//! Fuzz target: a v1 inference request over HTTP.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::v1_infer(bytes));
