//! HTTP/1.1 for both frontends: request bodies, response bodies, content negotiation.
pub mod accept;
pub mod body;
pub mod collect;
pub mod drain;
pub mod head_copy;
pub mod receive;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of a server")]
pub mod route_testing;
