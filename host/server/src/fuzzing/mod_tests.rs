//! Unit tests of the oracles.

use super::*;

#[macro_use]
#[path = "../../../../fuzz/seeds.rs"]
mod seeds;

oracle_tests!(ORACLES, "trtserver_server::fuzzing");
