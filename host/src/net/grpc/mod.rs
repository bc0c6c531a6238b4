//! gRPC front ends.
