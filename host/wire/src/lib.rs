//! Listeners and connections, and what both protocol generations share of HTTP and gRPC.
//!
//! - [`bind`], [`listener`], [`connections`]: sockets, the accept loop, limits and timeouts of
//!   connections.
//! - [`tls`]: certificates from files, handshakes, new files without a restart.
//! - [`http`]: request bodies collected into aligned memory, response bodies, compression.
//! - [`grpc`]: unary calls and streams decoded from HTTP/2 frames without tonic, so that a tensor
//!   is copied at most once.
//! - `task`: the tasks of connections and calls, which the thread of an instance may poll too
//!   (inline completion).
//! - [`decode_workers`]: threads for decoding and encoding that takes long. [`unread`]: limits on
//!   responses that clients do not read.
//! - [`repeated_texts`]: heads that clients repeat, which are read once.
//! - [`access`]: who may call which endpoint, decided once for each request.
//! - [`context`]: what all frontends share; [`threads`]: the runtimes.
//!
//! This crate knows no endpoint of either generation.

#![forbid(unsafe_code)]

pub mod access;
pub mod access_log;
pub mod bind;
pub mod chunks;
pub mod compression;
pub mod connections;
pub mod context;
pub mod decode_workers;
pub mod disconnect;
mod file_reload;
pub mod grpc;
pub mod http;
mod infallible_response;
pub mod listener;
pub mod load_reports;
mod postponed_runs;
pub mod regions;
pub mod repeated_texts;
pub mod request_body;
mod request_id;
pub mod shared_memory;
pub mod sink;
mod socket;
pub mod spare_buffer;
pub mod status_code;
mod task;
mod task_base;
#[cfg(test)]
mod task_model_tests;
#[cfg(test)]
mod task_tests;
pub mod threads;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls_absent.rs"]
pub mod tls;
#[cfg(all(test, feature = "tls"))]
mod tls_absent;
pub mod trace_context;
mod unix_socket;
pub mod unread;
mod watched_body;
mod yields;

#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of a server")]
pub mod echo_testing;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of a server")]
pub mod testing;
