//! HTTP/1.1 front ends.
pub mod body; // the body of every response
