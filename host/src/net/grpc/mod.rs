//! gRPC front ends.
pub mod deadline; // how long a caller waits
pub mod frame; // unary calls by hand: message frames, statuses
pub mod v1; // contract/v1 §4: GRPCService
pub mod v2; // the inference service of v2 and the health check
