//! The head of an export request: everything before its spans, which are encoded one by one.
//!
//! ```text
//!   ExportTraceServiceRequest.resource_spans [1]
//!     ResourceSpans.resource    [1]   attributes of the server
//!     ResourceSpans.scope_spans [2]
//!       ScopeSpans.scope [1]          name and version of the server
//!       ScopeSpans.spans [2] …        what follows the head
//! ```

use crate::span::{bytes_length, length_delimited, put_varint};

/// The parts that are the same in every request.
pub struct RequestHead {
    /// `ResourceSpans.resource` with its tag.
    resource: Vec<u8>,
    /// `ScopeSpans.scope` with its tag.
    scope: Vec<u8>,
}

/// Most bytes of the tag and the length of a message.
const MAX_TAG: usize = 11;

impl RequestHead {
    pub fn new(resource: &[(String, String)]) -> Self {
        let mut attributes = Vec::new();
        for (key, value) in resource {
            let value = field(1, value.as_bytes());
            put_field(&mut attributes, 1, &[field(1, key.as_bytes()), field(2, &value)].concat());
        }
        let version = env!("CARGO_PKG_VERSION").as_bytes();
        let scope = [field(1, b"trtserver"), field(2, version)].concat();
        Self { resource: field(1, &attributes), scope: field(1, &scope) }
    }

    /// Room that the head of any request fits in.
    pub fn max_length(&self) -> usize {
        2 * MAX_TAG + self.resource.len() + self.scope.len()
    }

    /// The head of a request with `spans` bytes of spans.
    pub fn encode(&self, spans: usize) -> Vec<u8> {
        let scope_spans = self.scope.len() + spans;
        let resource_spans = self.resource.len() + bytes_length(scope_spans);
        let mut head = Vec::with_capacity(self.max_length());
        head.push(length_delimited(1));
        put_varint(&mut head, resource_spans as u64);
        head.extend_from_slice(&self.resource);
        head.push(length_delimited(2));
        put_varint(&mut head, scope_spans as u64);
        head.extend_from_slice(&self.scope);
        head
    }
}

fn field(number: u8, contents: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes_length(contents.len()));
    put_field(&mut out, number, contents);
    out
}

fn put_field(out: &mut Vec<u8>, number: u8, contents: &[u8]) {
    out.push(length_delimited(number));
    put_varint(out, contents.len() as u64);
    out.extend_from_slice(contents);
}
