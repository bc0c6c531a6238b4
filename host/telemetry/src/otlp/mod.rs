//! Sends spans to a collector by the OpenTelemetry protocol, from a thread of its own.

mod client;
#[cfg(test)]
pub(crate) mod decoded;
mod exporter;
mod messages;
mod request_head;
mod retry;

pub use exporter::SpanExporter;
