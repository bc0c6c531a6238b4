//! Fuzz target: a config.pbtxt.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::model_config(bytes));
