//! Fuzz target: the protobuf wire format, our reader against prost.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_server::fuzzing::wire_format(bytes));
