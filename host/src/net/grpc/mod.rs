//! gRPC front ends.
pub mod frame; // unary calls by hand: message frames, deadlines, statuses
pub mod v1; // contract/v1 §4: GRPCService
pub mod v2; // the inference service of v2 and the health check
