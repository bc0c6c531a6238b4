//! gRPC front ends.
pub mod body; // a message and its trailers
pub mod deadline; // how long a caller waits
pub mod first_poll; // first poll of the streams that one read brought
pub mod unary; // unary calls without tonic: message framing, statuses
pub mod v1; // contract/v1 §4: GRPCService
pub mod v2; // the inference service of v2 and the health check
