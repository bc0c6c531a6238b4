//! Fuzz target: shared-memory requests of v1 gRPC, as all releases encode them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::v1_region_request(bytes));
