//! Instances: how many and which, and the one thread that each of them is.

pub mod group; // instance groups of a configuration into single instances
pub mod worker; // one OS thread, one plugin instance
