//! Fuzz target: a ModelInferRequest, fast path against prost.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::grpc_v2_fast_path(bytes));
