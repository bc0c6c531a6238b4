//! HTTP/1.1 frontends.
mod accept; // content negotiation
pub mod body; // bodies of responses
mod collect; // bodies of requests
mod drain; // discards the rest of a request body
pub mod metrics; // the metrics page
#[cfg(test)]
mod route_testing; // compares routes with the compatibility pages
pub mod v1; // everything under /api (docs/protocol/v1.md §3)
pub mod v2; // everything under /v2
