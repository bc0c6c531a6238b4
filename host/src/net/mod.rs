//! HTTP and gRPC, both protocol generations, over one protocol-neutral request.
pub mod context; // what every front end works with
