//! What both wires of v2 share: finding the model, checking and submitting a request, and what the
//! other calls answer. Answers are built as the protobuf messages; HTTP prints those as JSON.

pub mod classes; // outputs as top-k strings
pub mod lookup; // the served model version of a name and version text
pub mod metadata; // server and model metadata, readiness
pub mod parameters; // request parameters: which are ours, which the model's
pub mod repository; // what the repositories hold; loading and unloading
pub mod request; // a request read off the wire, on its way into the scheduler
pub mod settings; // trace and logging settings, read only
pub mod statistics; // counters as the protocol shows them

pub use lookup::{require_unary, served, serving};
pub use parameters::RequestParameters;
pub use request::{UncheckedRequest, refused};

/// What every use of client shared memory is answered.
pub const SHARED_MEMORY_DISABLED: &str = "Client shared memory is disabled. Start the server with \
                                          '--allow-client-shm=true' to enable.";

#[cfg(test)]
pub mod testing; // a server without plugins or files
