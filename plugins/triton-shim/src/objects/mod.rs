//! What is behind the handles of a backend.

pub mod allocator; // response allocators of nested inference
pub mod attributes; // buffer attributes
pub mod backend; // a backend library under one name
pub mod error; // errors
pub mod factory; // response factories
pub mod instance; // model instances
pub mod memory; // memory managers and what they have given out
pub mod message; // JSON messages
pub mod metric; // metric families, metrics, arguments
pub mod model; // models
pub mod nested_request; // requests of a backend
pub mod output; // outputs of a response
pub mod parameter; // parameters
pub mod received_response; // responses to requests of a backend
pub mod reply; // the response side of a request
pub mod request; // requests and their inputs
pub mod response; // responses
pub mod server; // the token for nested inference
pub mod state;
pub mod statistics;
pub mod trace; // states of sequences // statistics of a response
