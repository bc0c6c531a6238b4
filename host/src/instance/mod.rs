//! Instances: how many and which, and the one thread that each of them is.

pub mod group; // instance groups of a configuration into single instances
pub mod priority; // niceness and stream order
pub mod warmup; // samples that run before an instance takes requests
pub mod worker; // one OS thread, one plugin instance
