//! Sends spans to a collector by the OpenTelemetry protocol, from a thread of its own.

mod client;
mod exporter;
mod messages;
mod retry;

pub use exporter::SpanExporter;
