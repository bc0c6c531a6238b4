//! Instances: how many a model has and where, and the thread that executes each of them.

pub mod group; // instance groups of a configuration into single instances
pub mod limit; // how many the server may have
pub mod load_cancel; // breaks off a load
pub mod load_progress; // how far a load is, and how long its steps took
pub mod priority; // niceness and stream priority
mod thread_limit; // threads that the system allows
pub mod warmup; // samples that run before an instance takes requests
pub mod worker; // one OS thread, one backend instance
