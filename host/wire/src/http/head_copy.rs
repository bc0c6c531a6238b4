//! Copies the head of a request with a large body out of hyper's read buffer.
//!
//! Path and header values are slices of the buffer that the head was read into. As long as they
//! exist, hyper cannot read the body into that buffer and allocates another one of up to 512 KiB,
//! for each such request. A copy of the few hundred bytes costs two small allocations instead.

use bytes::{Bytes, BytesMut};
use http::uri::Uri;
use http::{HeaderValue, Request};
use http_body::Body;

/// A body that is shorter fits into a small read buffer, which is not worth a copy of the head.
const LARGE_BODY: u64 = 64 << 10;

/// Copies path and header values into one block if the body is large or its length is unknown.
pub fn release_read_buffer<B: Body>(request: &mut Request<B>) {
    if request.body().size_hint().upper().is_some_and(|length| length < LARGE_BODY) {
        return;
    }
    let path = request.uri().to_string();
    let length: usize = request.headers().values().map(HeaderValue::len).sum();
    let mut block = BytesMut::with_capacity(path.len() + length);
    block.extend_from_slice(path.as_bytes());
    request.headers().values().for_each(|value| block.extend_from_slice(value.as_bytes()));
    let mut block = block.freeze();
    // A refused value would stay a slice of the read buffer, which costs memory only.
    if let Ok(uri) = Uri::from_maybe_shared(block.split_to(path.len())) {
        *request.uri_mut() = uri;
    }
    for value in request.headers_mut().values_mut() {
        let copy: Bytes = block.split_to(value.len());
        if let Ok(mut copy) = HeaderValue::from_maybe_shared(copy) {
            copy.set_sensitive(value.is_sensitive());
            *value = copy;
        }
    }
}

#[cfg(test)]
#[path = "head_copy_tests.rs"]
mod tests;
