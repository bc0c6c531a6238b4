//! Fuzz target: the body of a v2 ModelInfer call over gRPC, in one piece and in several.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::grpc_v2_call(bytes));
