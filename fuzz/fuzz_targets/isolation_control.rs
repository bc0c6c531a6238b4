//! Fuzz target: the control connection of an isolated model's process.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::isolation_control(bytes));
