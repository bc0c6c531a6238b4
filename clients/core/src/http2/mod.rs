//! HTTP/2 of a client that makes its frames itself: frames and header blocks of gRPC calls.
//!
//! Used by small calls of the blocking clients (`transport/direct`) and by `trtserver-perf`. The
//! other stack, hyper's (`transport/http2.rs`), makes all other calls: it reads while it writes and
//! does not copy tensors, but needs a runtime, with two wake-ups for each call, which cost more
//! than a small request itself.
//!
//! Rows of benches/history/2026-11.md that need this one: "Python clients", 64 bytes over gRPC (3.4 times
//! the package of 2020 in v1, where three times are promised, and 2.5 times tritonclient), and
//! `load-tool cost v2-grpc` (as cheap as h2load).

pub mod frames;
pub mod headers;
