//! gRPC front ends.
pub mod frame; // unary calls by hand: message frames, deadlines, statuses
pub mod v2; // the inference service of v2 and the health check
