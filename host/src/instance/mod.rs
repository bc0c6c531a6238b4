//! Instances: how many and which, the thread that each of them is, and who may execute one while its thread sleeps.

pub mod group; // instance groups of a configuration into single instances
mod lent; // an instance that other threads may execute
pub mod priority; // niceness and stream order
pub mod warmup; // samples that run before an instance takes requests
pub mod worker; // one OS thread, one plugin instance
