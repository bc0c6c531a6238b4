//! Instances: how many a model has and where, and the thread that executes each of them.

pub mod group; // instance groups of a configuration into single instances
pub mod priority; // niceness and stream priority
pub mod warmup; // samples that run before an instance takes requests
pub mod worker; // one OS thread, one backend instance
