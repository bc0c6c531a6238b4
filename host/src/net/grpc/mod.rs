//! gRPC front ends.
pub mod frame; // unary calls by hand: message frames, deadlines, statuses
