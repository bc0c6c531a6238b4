//! gRPC frontends.
pub mod body; // response bodies: a message and its trailers
pub mod call_kind; // the kinds of calls, and the memory of an open call
pub mod compression; // compressed responses
pub mod deadline; // grpc-timeout
pub mod first_message; // the wait for the first message of a stream
pub mod first_poll; // polls streams that arrived together in one task
pub mod gate; // restricted groups, delay hooks
pub mod reflection; // the services, described to tools
pub mod stream_messages; // the requests of a stream
pub mod stream_response; // the responses of a stream
pub mod unary; // unary calls without tonic: message framing, statuses
pub mod v1; // docs/protocol/v1.md §4: GRPCService
pub mod v2; // the inference service of v2 and the health check

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
