//! The server as a library; the binary `trtserver` is a thin main around it. One line per part.

pub mod arena; // memory shared with other processes
pub mod cli; // what was typed: every flag in one catalogue
pub mod clock; // CLOCK_MONOTONIC, the one clock
pub mod config; // what it means: checked, defaulted settings
pub mod device; // GPUs, found at run time
pub mod error; // the one error that leaves a part: code and message
pub mod heap; // free memory goes back to the system
pub mod instance; // one OS thread with one plugin instance
pub mod log; // tracing set-up: text in the old server's form, or JSON
pub mod metrics; // Prometheus text on its own port
pub mod net; // HTTP and gRPC, both protocol generations
pub mod plugin; // backends found, opened and called
pub mod repository; // models and versions, from directory to served
pub mod request; // the protocol-neutral request and its answer
pub mod scheduler; // which request runs next
pub mod server; // builds the parts in order, drains them in reverse
pub mod state; // where the server is in its life
pub mod stats; // counters beside the request path
pub mod sync; // locks without poisoning
pub mod timer; // rings at the times it was asked for
pub mod tool; // `trtserver plugin …`
