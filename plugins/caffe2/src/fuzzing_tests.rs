//! Unit tests of `fuzzing.rs`.

use super::*;

#[macro_use]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

oracle_tests!(ORACLES, "trtserver_caffe2::fuzzing");
