//! The test kit: the real binary, a temporary repository, real clients, and raw sockets.
//!
//! ```no_run
//! use trtserver_tests::{Server, probe};
//!
//! let server = Server::new()
//!     .model("echo", probe("echo", &[]))
//!     .copy_model("tests/models/addsub_fp32")
//!     .flag("--strict-readiness=false")
//!     .start();
//! assert_eq!(server.get("/v2/health/ready").status, 200);
//! assert!(server.stop().success());
//! ```
//!
//! Nothing here sleeps. A server tells on its standard output where it listens and that it is ready, and tells
//! by ending that it will never be; whatever waits for longer than [`TIMEOUT`] fails with all that was printed.
//! What the kit cannot do is a panic, as in any test.

mod caller; // a caller at each endpoint, who may leave
mod compile; // C sources to shared libraries
pub mod control; // loading and unloading by request
pub mod custom; // libraries of the legacy interface
mod fixture; // the repository of the protocol tests
pub mod grpc; // inference requests as gRPC carries them
pub mod http1;
pub mod http2; // HTTP/2 frames, for gRPC calls that are wrong or broken off
mod install; // where the server, its plugins and the Python environments lie
pub mod isolated; // models in processes of their own
mod latch; // requests held until the test lets them go on
mod load_gate; // a model whose load waits for the test
pub mod pages; // READMEs and tutorials, followed
mod process; // a child and what it printed
mod python; // the real clients' scripts
mod repository; // the models of one server
pub mod scheduled; // configurations for the scheduler tests
mod server; // the builder and the running server
pub mod soak; // many requests, every answer looked at
pub mod versions; // backends in several versions // HTTP/1.1 on a bare socket

pub use caller::{Caller, ENDPOINTS, Endpoint, GRPC_ENDPOINTS};
pub use compile::{compile_c, folder};
pub use fixture::every_model;
pub use http1::{Connection, Response};
pub use install::{backends, dist, root};
pub use latch::Latch;
pub use load_gate::LoadGate;
pub use process::{Ended, Process, TIMEOUT};
pub use python::{python_v1, python_v2};
pub use repository::{Repository, parameters, probe};
pub use server::{Running, Server, Signal, inference, trtserver};
