//! One line of the access log: a JSON object with the fields that are known.

use http::{HeaderValue, Method, Uri};
use std::sync::Arc;
use std::time::SystemTime;
use trtserver_request_trace::ids::TraceId;

/// A request that has ended.
#[derive(Clone, Debug)]
pub struct AccessRecord {
    /// When its head was read.
    pub time: SystemTime,
    /// `http` or `grpc`.
    pub wire: &'static str,
    pub method: Method,
    pub uri: Uri,
    /// Address of the client; `unix` on a Unix socket.
    pub peer: Arc<str>,
    /// Name of the client, if tokens or certificates give it one.
    pub caller: Option<Arc<str>>,
    /// `X-Request-Id`.
    pub request_id: Option<HeaderValue>,
    pub trace_id: Option<TraceId>,
    pub inference: Option<InferenceFacts>,
    /// Status of HTTP, or the code of gRPC; `None` without a response.
    pub status: Option<u16>,
    /// The client went before it had all of the response.
    pub disconnected: bool,
    /// Bodies without their framing; `None` for an inference of a stream.
    pub bytes: Option<BodyBytes>,
    pub total_us: u64,
    pub error: Option<String>,
}

/// Bytes of the bodies of a request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyBytes {
    pub received: u64,
    pub sent: u64,
}

/// What is known of an inference.
#[derive(Clone, Debug)]
pub struct InferenceFacts {
    pub id: String,
    pub model: String,
    pub version: i64,
    /// Rows of the request; 0 = not known.
    pub batch: u32,
    pub execution: Option<ExecutionFacts>,
}

/// The execution that an inference was part of.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionFacts {
    /// Rows of the whole batch.
    pub rows: u32,
    pub queue_us: u64,
    pub compute_us: u64,
}

impl AccessRecord {
    /// Appends the line with its end.
    pub fn write_line(&self, line: &mut Vec<u8>) {
        line.push(b'{');
        let mut fields = FieldWriter { line, is_first: true };
        fields.text("time", &humantime::format_rfc3339_micros(self.time).to_string());
        if let Some(id) = &self.request_id {
            fields.text("request_id", &String::from_utf8_lossy(id.as_bytes()));
        }
        if let Some(id) = self.trace_id {
            fields.text("trace_id", &id.to_string());
        }
        fields.text("peer", &self.peer);
        if let Some(caller) = &self.caller {
            fields.text("caller", caller);
        }
        fields.text("wire", self.wire);
        if self.wire == "grpc" {
            fields.text("rpc", self.uri.path().trim_start_matches('/'));
        } else {
            fields.text("method", self.method.as_str());
            fields.text("path", self.uri.path());
        }
        if let Some(inference) = &self.inference {
            inference.write_fields(&mut fields);
        }
        fields.number("total_us", self.total_us);
        if let Some(bytes) = self.bytes {
            fields.number("bytes_in", bytes.received);
            fields.number("bytes_out", bytes.sent);
        }
        if let Some(status) = self.status {
            fields.number("status", status.into());
        }
        if self.disconnected {
            fields.literal("disconnected", "true");
        }
        if let Some(error) = &self.error {
            fields.text("error", error);
        }
        line.extend_from_slice(b"}\n");
    }
}

impl InferenceFacts {
    fn write_fields(&self, fields: &mut FieldWriter) {
        if !self.id.is_empty() {
            fields.text("id", &self.id);
        }
        fields.text("model", &self.model);
        fields.literal("version", &self.version.to_string());
        if self.batch > 0 {
            fields.number("batch_size", self.batch.into());
        }
        if let Some(execution) = self.execution {
            fields.number("executed_batch_size", execution.rows.into());
            fields.number("queue_us", execution.queue_us);
            fields.number("compute_us", execution.compute_us);
        }
    }
}

/// Writes fields of an object.
struct FieldWriter<'a> {
    line: &'a mut Vec<u8>,
    is_first: bool,
}

impl FieldWriter<'_> {
    fn key(&mut self, name: &str) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.line.push(b',');
        }
        self.line.push(b'"');
        self.line.extend_from_slice(name.as_bytes());
        self.line.extend_from_slice(b"\":");
    }

    fn text(&mut self, name: &str, value: &str) {
        self.key(name);
        // Writing into memory does not fail.
        let _ = serde_json::to_writer(&mut *self.line, value);
    }

    fn number(&mut self, name: &str, value: u64) {
        self.literal(name, itoa::Buffer::new().format(value));
    }

    fn literal(&mut self, name: &str, value: &str) {
        self.key(name);
        self.line.extend_from_slice(value.as_bytes());
    }
}

#[cfg(test)]
#[path = "access_record_tests.rs"]
mod tests;
