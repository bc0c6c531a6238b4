//! HTTP/1.1 for both frontends: request bodies, response bodies, content negotiation.
pub mod accept;
pub mod body;
pub mod collect;
pub mod drain;
pub mod receive;
#[cfg(any(test, feature = "testing"))]
pub mod route_testing;
