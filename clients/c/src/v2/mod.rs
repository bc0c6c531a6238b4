//! v2 (Open Inference Protocol with Triton's extensions): calls of the server, inference, streams.

mod client;
mod completion;
mod infer;
mod memory;
mod request;
mod result;
mod settings;
mod stream;
