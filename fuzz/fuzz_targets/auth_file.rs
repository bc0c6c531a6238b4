//! Fuzz target: the file of names, tokens and scopes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::auth_file(bytes));
