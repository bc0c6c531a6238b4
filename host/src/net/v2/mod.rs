//! What HTTP and gRPC share in v2: look-up, checking and submitting a request, and the responses of the other endpoints. Those
//! are built as protobuf messages, which HTTP prints as JSON.

pub mod classes; // outputs as top-k strings
pub mod forwarded_headers; // headers as request parameters
pub mod log_settings; // log settings, changed at run time
pub mod lookup; // the open version of a name and version text
pub mod metadata; // server and model metadata, readiness
pub mod parameters; // request parameters
pub mod readiness; // why the server or a model is not ready, and since when
pub mod regions; // shared memory: registering, unregistering, status
pub mod repository; // repository index, loading and unloading
pub mod request; // checks a request and submits it
pub mod shared_memory; // regions that requests use
pub mod statistics; // statistics of models
pub mod trace_settings; // trace settings, read only

pub use forwarded_headers::ForwardedHeaders;
pub use lookup::{find_for_inference, find_ready, require_unary};
pub use parameters::RequestParameters;
pub use regions::SHARED_MEMORY_DISABLED;
pub use request::{UncheckedRequest, refused};
pub use shared_memory::Regions;

#[cfg(any(test, feature = "fuzzing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of the server")]
pub mod testing; // a server without plugins or files
