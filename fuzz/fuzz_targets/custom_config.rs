//! Fuzz target: the model configuration that a custom library receives.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_custom::fuzzing::custom_config(bytes));
