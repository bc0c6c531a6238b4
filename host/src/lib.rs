//! The server as a library; the `trtserver` program is a thin main around it.

pub mod arena; // memory shared with isolated models
pub mod budget; // memory that requests and responses may hold
pub mod cli; // command line and `--config` file: every flag in one catalogue
pub mod clock; // CLOCK_MONOTONIC, the only clock
#[cfg(test)]
mod compatibility_testing; // the tables of docs/compatibility
pub mod config; // settings of the server, checked and with defaults
pub mod device; // GPUs, found at run time
pub mod error; // the error type of all parts: code and message
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing; // oracles of the fuzz targets
pub mod heap; // returns free memory to the system
pub mod instance; // instances: one OS thread each
pub mod ledger; // memory by model, version and use
pub mod log; // tracing set-up: text as in Triton, or JSON
pub mod metrics; // Prometheus metrics
pub mod net; // HTTP and gRPC frontends of both generations
pub mod plugin; // backends: discovered, opened and called
mod reclaim; // frees large memory on a thread of its own
mod regular_file; // regular files, read up to a limit
pub mod repository; // models and versions, from directory to served
pub mod request; // protocol-neutral requests and responses
pub mod request_id; // ids of requests in log lines
pub mod scheduler; // queues and batchers
pub mod server; // builds the parts in order, drains them in reverse
pub mod shared_memory; // regions of clients' shared memory
pub mod state; // phase of the server and in-flight requests
pub mod stats; // counters of model versions
pub mod sync; // locks without poisoning
pub mod timer; // deadline callbacks
pub mod tool; // the `trtserver plugin` command
