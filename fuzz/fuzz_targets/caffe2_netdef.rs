//! Fuzz target: the two files of a Caffe2 model.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trtserver_caffe2::fuzzing::caffe2_netdef(bytes));
