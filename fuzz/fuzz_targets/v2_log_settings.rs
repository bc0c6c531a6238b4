//! Fuzz target: log settings as JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::v2_log_settings(bytes));
