//! HTTP/2 of a client that makes its frames itself: frames and header blocks of gRPC calls.
//!
//! Used by the blocking clients ([`crate::blocking`]) and by `trtserver-perf`.

pub mod frames;
pub mod headers;
