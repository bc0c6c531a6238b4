//! Unit tests of the oracles.

use super::*;

#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[test]
fn every_seed_passes_its_oracle() {
    seeds::check_seeds(ORACLES);
}

#[test]
fn mutated_seeds_pass_their_oracle() {
    seeds::check_mutations(ORACLES);
}

#[test]
fn every_oracle_has_a_fuzz_target() {
    seeds::check_targets(ORACLES, "trtserver::fuzzing");
}
