//! A simulation of a thousand servers behind balancers and autoscalers (docs/scale.md).
//!
//! [`cluster`] simulates pools event by event, with the server's own batcher. [`curves`] measures
//! them at several utilisations; [`day`] reads the curves second by second for a day with a flash
//! crowd, the loss of a zone and a rolling upgrade. Equal seeds give equal bytes.

#![forbid(unsafe_code)]

pub mod autoscaler;
pub mod cluster;
pub mod curves;
pub mod day;
pub mod experiments;
pub mod fleet;
pub mod latency;
pub mod plot;
pub mod policy;
pub mod pool;
pub mod random;
pub mod replica;

#[cfg(test)]
mod simulation_tests;
