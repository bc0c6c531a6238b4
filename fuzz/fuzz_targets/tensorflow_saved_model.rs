//! Fuzz target: a `saved_model.pb`, and configurations made of it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_tensorflow::fuzzing::tensorflow_saved_model(bytes));
