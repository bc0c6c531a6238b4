//! Fuzz target: callbacks and results of a custom library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_custom::fuzzing::custom_library(bytes));
