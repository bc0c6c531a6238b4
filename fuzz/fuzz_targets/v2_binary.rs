//! Fuzz target: a v2 inference request over HTTP with binary sections.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::v2_binary(bytes));
