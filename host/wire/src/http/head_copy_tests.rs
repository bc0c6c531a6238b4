//! Unit tests of `head_copy.rs`.

use super::*;
use http_body_util::{Empty, Full};

/// A request whose path and header value are slices of one buffer, and that buffer.
fn request_in_buffer<B>(body: B) -> (Request<B>, Bytes) {
    let buffer = Bytes::from(b"/v2/models/m/infer?a=b one two".to_vec());
    let mut request = Request::new(body);
    *request.uri_mut() = Uri::from_maybe_shared(buffer.slice(..22)).unwrap();
    for range in [23..26, 27..30] {
        let value = HeaderValue::from_maybe_shared(buffer.slice(range)).unwrap();
        request.headers_mut().append("x-name", value);
    }
    (request, buffer)
}

#[test]
fn head_of_a_large_body_leaves_the_read_buffer() {
    let (mut request, buffer) = request_in_buffer(Full::new(Bytes::from(vec![0; 1 << 20])));
    release_read_buffer(&mut request);
    assert_eq!(request.uri(), "/v2/models/m/infer?a=b");
    let values: Vec<_> = request.headers().get_all("x-name").iter().collect();
    assert_eq!(values, ["one", "two"]);
    assert!(buffer.is_unique(), "the head still refers to the read buffer");
}

#[test]
fn head_of_a_small_body_is_not_copied() {
    let (mut request, buffer) = request_in_buffer(Empty::<Bytes>::new());
    release_read_buffer(&mut request);
    assert!(!buffer.is_unique());
    assert_eq!(request.uri(), "/v2/models/m/infer?a=b");
}
