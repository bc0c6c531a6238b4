//! The W3C trace context in the head of a request: headers of HTTP, metadata of gRPC.

use http::{HeaderMap, HeaderValue};
use trtserver_request_trace::TraceContext;

const PARENT: &str = "traceparent";

/// The context that a client sends, if it is valid. Boxed, because most requests have none.
pub fn read_trace_context(headers: &HeaderMap) -> Option<Box<TraceContext>> {
    // Fewer instructions than a look-up, which computes a hash.
    if !headers.keys().any(|name| name.as_str() == PARENT) {
        return None;
    }
    let values = |name| headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
    TraceContext::from_headers(values(PARENT), values("tracestate")).map(Box::new)
}
