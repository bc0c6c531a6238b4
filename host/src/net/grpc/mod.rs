//! gRPC front ends.
pub mod body; // a message and its trailers
pub mod deadline; // how long a caller waits
pub mod frame; // unary calls by hand: message frames, statuses
pub mod together; // a connection and its streams, without a task for each
pub mod v1; // contract/v1 §4: GRPCService
pub mod v2; // the inference service of v2 and the health check
