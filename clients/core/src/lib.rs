//! Client library for inference servers: v2 (Open Inference Protocol, Triton) and v1 (TRTIS), over
//! HTTP and gRPC.
//!
//! ```no_run
//! use trtserver_client::Settings;
//! use trtserver_client::blocking::v2::BlockingClient;
//! use trtserver_client::v2::{InferRequest, Input};
//!
//! let client = BlockingClient::new(&Settings::new("localhost:8000"))?;
//! let image = vec![0_u8; 64 * 4];
//! let request = InferRequest::new("digits").input(Input::new("IMAGE", "FP32", [1, 1, 8, 8], image));
//! let response = client.infer(&request)?;
//! println!("{:?}", response.output("SCORES")?.shape);
//! # Ok::<(), trtserver_client::Error>(())
//! ```
//!
//! [`v1`] and [`v2`] are asynchronous and run on tokio, [`blocking`] has the same calls without. A
//! call is limited by the deadline of its [`Settings`], cancelled by dropping its future, and never
//! sent twice if the server may have seen it.

#![warn(missing_docs)]

mod address;
pub mod blocking;
mod borrow;
mod deadline;
mod error;
#[doc(hidden)]
pub mod http2;
mod message;
mod percent;
mod settings;
mod shared;
pub mod shared_memory;
mod sync;
pub mod tensor;
mod transport;
pub mod v1;
pub mod v2;

pub use borrow::Borrow;
pub use bytes::Bytes;
pub use deadline::{DEADLINE_VARIABLE, DEFAULT_DEADLINE, DEFAULT_LOAD_DEADLINE, Deadline};
pub use error::{Error, Kind, Result};
pub use settings::{
    Compression, DEFAULT_CONNECT_TIMEOUT, DEFAULT_MAX_RESPONSE_BYTES, Protocol, Settings, Tls,
};
pub use transport::TlsClient;

#[cfg(test)]
mod bad_server_tests;
