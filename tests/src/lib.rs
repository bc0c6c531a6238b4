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
//! Nothing sleeps: tests wait for lines that the server prints. A wait that exceeds [`TIMEOUT`]
//! fails with the server's output. The kit's own errors are panics.

pub mod attack; // hostile traffic beside well-behaved clients
mod compile; // C and C++ sources to shared libraries
pub mod control; // model control
pub mod custom; // libraries of the legacy interface
pub mod envoy; // a real proxy before three servers
pub mod fake_gcs; // Google Cloud Storage
pub mod fakes; // fake GPU libraries
mod fixture; // the models of the protocol tests
pub mod grpc; // hand-encoded gRPC requests
pub mod http1; // HTTP/1.1 on a plain socket
pub mod http2; // HTTP/2 frames, for malformed and reset calls
mod inference_client; // a client of each endpoint that may cancel
mod install; // paths of the install and of the Python environments
pub mod isolated; // isolated models and their child processes
mod latch; // requests held until the test releases them
pub mod live_repository; // models that change under load
mod load_gate; // a model whose load waits for the test
pub mod otlp_sink; // a collector of OpenTelemetry
pub mod pages; // runs the commands of READMEs and tutorials
pub mod plans; // plans of the fake TensorRT
pub mod polling; // servers that poll their repository
mod process; // a child process and its output
mod python; // runs the scripts of the real clients
pub mod reloads; // a model that is reloaded under full load
mod repository; // a temporary model repository
pub mod rolling_restart; // three servers restarted under load
pub mod scheduled; // configurations for the scheduler tests
mod server; // the builder and the running server
pub mod service; // one address for several servers
mod set_on_drop; // a flag that ends threads
mod shared_memory; // a client's shared memory
pub mod sharing; // the rate limiter and turns of clients under load
pub mod soak; // the soak test
pub mod socket; // connects to TCP and Unix sockets
pub mod tensorflow_files; // GraphDef and SavedModel files, encoded by hand
pub mod tls; // certificates, and a client of which tests see every byte
pub mod torch_packages; // a fake torch, and packages for it
pub mod triton; // Triton's own server
pub mod triton_backends; // backends of Triton's interface, compiled from tests/triton
pub mod versions; // backends in several versions

pub use compile::{compile, compile_c, compiled, folder};
pub use fixture::every_model;
pub use http1::{Connection, Response};
pub use inference_client::{ENDPOINTS, Endpoint, GRPC_ENDPOINTS, InferenceClient};
pub use install::{
    azurite, backends, build_tool, dist, keep_bytecode, perf_analyzer, python, root, say,
    tensorflow, tensorrt, triton,
};
pub use latch::Latch;
pub use load_gate::LoadGate;
pub use process::{Ended, Process, TIMEOUT, command_output, pause_since};
pub use python::{python_kserve, python_output, python_v1, python_v2, python_v2_with_triton};
pub use repository::{Repository, parameters, probe};
pub use server::{Running, Server, Signal, inference, trtserver};
pub use set_on_drop::SetOnDrop;
pub use shared_memory::SharedObject;
