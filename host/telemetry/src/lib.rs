//! What a server tells of its requests: spans for OpenTelemetry and lines of the access log.
//!
//! Requests only put finished records into bounded queues, and never wait. The tracer's thread
//! encodes spans of them, and threads of this crate send spans and write lines. A full queue drops
//! and counts.
//!
//! The cargo feature `otlp` sends spans; without it the server has the rest.

#![forbid(unsafe_code)]

pub mod access_log;
pub mod access_record;
#[cfg(feature = "otlp")]
pub mod otlp;
#[cfg(not(feature = "otlp"))]
#[path = "otlp_absent.rs"]
pub mod otlp;
pub mod request_spans;
pub mod settings;
pub mod span;
#[cfg(all(test, feature = "otlp"))]
mod span_oracle_tests;
mod span_template;
