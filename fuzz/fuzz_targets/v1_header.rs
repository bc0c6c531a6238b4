//! Fuzz target: the NV-InferRequest header of v1.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::v1_header(bytes));
