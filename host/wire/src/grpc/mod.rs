//! gRPC for both frontends: unary calls, streams, deadlines, compression.
pub mod body;
pub mod call_kind;
pub mod compression;
pub mod deadline;
pub mod delay_hooks;
pub mod first_message;
pub mod first_poll;
pub mod stream_messages;
pub mod stream_response;
pub mod unary;

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
