//! HTTP/1.1 front ends.
pub mod body; // the body of every response
mod collect; // bodies of requests
mod drain; // bodies that nobody wants
pub mod v1; // contract/v1 §3: everything under /api
pub mod v2; // the v2 endpoints
