//! The exported functions, by section of Triton's headers. Doc lines name what a function returns
//! and who owns it; all take handles that are checked, and return an error that the caller owns.
#![allow(non_snake_case, reason = "the names are Triton's")]
#![allow(clippy::missing_safety_doc, reason = "one contract for all: see `export!`")]

pub mod allocator; // response allocators of nested inference
pub mod attributes; // buffer attributes
pub mod backend; // version, backend, backend attributes
pub mod error; // errors
pub mod factory; // response factories
pub mod guard; // arguments, panics, the macro
pub mod inference_request; // requests of a backend
pub mod inference_response; // responses to them
pub mod inference_tensors; // inputs and outputs of requests of a backend
pub mod input; // inputs of a request
pub mod instance; // model instances
pub mod log; // the server's log
pub mod memory; // memory manager
pub mod message; // JSON messages
pub mod metrics; // metrics of backends
pub mod model; // models
pub mod names; // all names, by header
pub mod parameter; // parameters
pub mod request; // requests of the host
pub mod response; // responses and outputs
pub mod server; // models of the server
pub mod state; // states of sequences
pub mod statistics; // execution statistics
pub mod text; // names of types and kinds
pub mod trace; // traces, of which there are none
