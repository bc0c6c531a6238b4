//! Unit tests of `call_kind.rs`.

use super::*;
use http::HeaderName;

/// What the tables of a map of headers take, as `http` lays them out: an entry has a hash, links to
/// further values, a name and a value.
#[test]
fn headers_are_counted_with_their_table() {
    let entry = size_of::<usize>() * 4 + size_of::<HeaderName>() + size_of::<HeaderValue>();
    // Two positions of an index of four bytes belong to three entries.
    assert!(entry + 6 <= HEADER_BYTES, "{entry}");
    assert!(size_of::<HeaderValue>() + size_of::<usize>() * 4 <= VALUE_BYTES);
    let mut request = Request::new(());
    let bytes = |request: &Request<()>| CallKind::InferV2.held_bytes(request) - UNARY_BYTES;
    assert_eq!(bytes(&request), "/".len());
    for i in 0..400 {
        let name = HeaderName::from_bytes(format!("x-{i}").as_bytes()).unwrap();
        request.headers_mut().insert(name, HeaderValue::from_static("value"));
    }
    assert!((400 * (HEADER_BYTES + 5)..1000 * HEADER_BYTES).contains(&bytes(&request)));
    let before = bytes(&request);
    for _ in 0..400 {
        request.headers_mut().append("x-0", HeaderValue::from_static(""));
    }
    assert_eq!(bytes(&request), before + 400 * VALUE_BYTES);
}

#[test]
fn long_paths_are_counted() {
    let mut request = Request::new(());
    *request.uri_mut() =
        format!("http://{}/{}", "a".repeat(1000), "b".repeat(1000)).parse().unwrap();
    assert_eq!(CallKind::Other.held_bytes(&request), UNARY_BYTES + 2001);
}

#[test]
fn streams_are_inference_calls() {
    let kind = |path: &str| CallKind::from_path(path);
    for (path, expected) in [
        ("/inference.GRPCInferenceService/ModelInfer", CallKind::InferV2),
        ("/inference.GRPCInferenceService/ModelStreamInfer", CallKind::StreamV2),
        ("/nvidia.inferenceserver.GRPCService/Infer", CallKind::InferV1),
        ("/nvidia.inferenceserver.GRPCService/StreamInfer", CallKind::StreamV1),
        ("/nvidia.inferenceserver.GRPCService/InferStream", CallKind::Stream2018),
        ("/inference.GRPCInferenceService/ServerLive", CallKind::Other),
        ("/", CallKind::Other),
    ] {
        assert_eq!(kind(path), expected);
        assert_eq!(expected.class() == CallClass::Inference, expected != CallKind::Other);
    }
}
