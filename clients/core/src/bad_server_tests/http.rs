//! HTTP/1.1: bytes that are not a response, responses of another server, and responses that
//! contradict themselves.

use super::{
    LIMIT, Then, every_error, http_response, kinds, last_response, request, scripted, settings,
};
use crate::{Error, Kind, Protocol, blocking, v1};
use trtserver_proto::v1::RequestStatusCode;

#[test]
fn http_responses_that_are_none() {
    use Kind::{Connection, Protocol as Malformed};
    let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-length:";
    for (response, then, expected) in [
        (String::new(), Then::Close, Connection),
        ("HTTP/1.1 200 OK\r\n".to_owned(), Then::Close, Connection),
        ("garbage\r\n\r\n".to_owned(), Then::Close, Malformed),
        ("\0\u{1}\u{2}".to_owned(), Then::Close, Malformed),
        ("HTTP/9.9 200 OK\r\n\r\n".to_owned(), Then::Close, Malformed),
        (format!("{head} 1000\r\n\r\nten bytes."), Then::Close, Connection),
        (format!("{head} 1000\r\n\r\nten bytes."), Then::Reset, Connection),
        (format!("{head} many\r\n\r\n"), Then::Close, Malformed),
        (format!("{head} 99999999999\r\n\r\n"), Then::Hang, Malformed),
        (format!("{head} 99999999999999999999999\r\n\r\n"), Then::Hang, Malformed),
        (format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(9 << 20)), Then::Hang, Malformed),
    ] {
        let settings = settings(&scripted(response.clone(), then), Protocol::Http, LIMIT);
        let errors = every_error(&settings);
        let shown = &response[..response.len().min(80)];
        assert_eq!(kinds(&errors), [expected; 8], "{shown:?}: {errors:?}");
    }
    // The socket may report the reset or the end first.
    let settings = settings(&scripted("", Then::Reset), Protocol::Http, LIMIT);
    assert_eq!(kinds(&every_error(&settings)), [Connection; 8]);
    let settings = self::settings(&scripted(chunks, Then::Close), Protocol::Http, LIMIT);
    for error in every_error(&settings) {
        assert!(matches!(error.kind(), Connection | Malformed), "{error:?}");
    }
}

#[test]
fn http_responses_of_another_server() {
    let html = last_response("200 OK", b"<html><body>It works!</body></html>");
    let errors = every_error(&settings(&scripted(html, Then::Close), Protocol::Http, LIMIT));
    assert_eq!(kinds(&errors), [Kind::Protocol; 8]);
    assert!(errors[1].message().contains("It works!"), "{}", errors[1]);
    assert_eq!(errors[2].message(), "status request did not return status");
    assert_eq!(errors[3].message(), "infer request did not return status");
    let empty = last_response("200 OK", b"");
    let errors = every_error(&settings(&scripted(empty, Then::Close), Protocol::Http, LIMIT));
    assert_eq!(kinds(&errors), [Kind::Protocol; 8]);
    let proxy = last_response("502 Bad Gateway", b"<html>Bad Gateway</html>");
    let errors = every_error(&settings(&scripted(proxy, Then::Close), Protocol::Http, LIMIT));
    assert_eq!(errors[0].kind(), Kind::Unavailable);
    assert!(errors[0].message().starts_with("HTTP 502"), "{}", errors[0]);
}

/// An inference over v2 HTTP whose response has this head and body.
fn v2_http(headers: &str, body: &[u8]) -> Error {
    let address = scripted(http_response(&format!("200 OK{headers}"), body), Then::Close);
    let client =
        blocking::v2::BlockingClient::new(&settings(&address, Protocol::Http, LIMIT)).unwrap();
    let error = client.infer(&request()).unwrap_err();
    assert!(error.asked().starts_with("POST http://") || error.asked().contains(&address));
    error
}

#[test]
fn v2_http_responses_that_lie_about_tensors() {
    let output = |rest: &str| {
        format!(r#"{{"model_name":"m","outputs":[{{"name":"OUT","datatype":"FP32",{rest}}}]}}"#)
    };
    for (rest, tensors, expected) in [
        (
            r#""shape":[1,2],"parameters":{"binary_data_size":8}"#,
            4,
            "has 8 bytes by its binary_data_size",
        ),
        (
            r#""shape":[1,2],"parameters":{"binary_data_size":4}"#,
            4,
            "FP32 of shape [1, 2] has 8 bytes",
        ),
        (
            r#""shape":[1,2],"parameters":{"binary_data_size":8}"#,
            9,
            "1 bytes behind its last output",
        ),
        (r#""shape":[1,2],"parameters":{"binary_data_size":-8}"#, 8, "is not a binary_data_size"),
        (r#""shape":[1,-2],"parameters":{"binary_data_size":8}"#, 8, "is not a tensor"),
        (r#""shape":[4611686018427387904,4],"data":[]"#, 0, "is not a tensor"),
        (r#""shape":[1,2],"data":[1,"x"]"#, 0, "is not a FP32 element"),
        (r#""shape":[1,2],"data":[1]"#, 0, "FP32 of shape [1, 2] has 8 bytes"),
        (r#""shape":[1,2]"#, 0, "FP32 of shape [1, 2] has 8 bytes"),
        (r#""shape":"#, 0, "is not an inference response"),
    ] {
        let head = output(rest);
        let length = format!("\r\ninference-header-content-length: {}", head.len());
        let mut body = head.into_bytes();
        body.resize(body.len() + tensors, 0);
        let error = v2_http(&length, &body);
        assert!(error.message().contains(expected), "{rest}: {error}");
        assert_eq!(error.kind(), Kind::Protocol, "{error}");
    }
    for (headers, expected) in [
        ("\r\ninference-header-content-length: 1000", "has 1000 bytes by its header"),
        ("\r\ninference-header-content-length: x", "is not a length"),
        ("\r\ncontent-encoding: br", "unknown encoding `br`"),
        ("\r\ncontent-encoding: gzip", "is not valid gzip"),
    ] {
        let error = v2_http(headers, br#"{"outputs":[]}"#);
        assert!(error.message().contains(expected), "{headers}: {error}");
    }
}

#[test]
fn compressed_response_beyond_the_limit_is_refused() {
    let zeros = vec![b' '; 8 << 20];
    let how = crate::Compression::Gzip;
    let bomb = crate::transport::compress::compress_body(how, &zeros).unwrap();
    let error = v2_http("\r\ncontent-encoding: gzip", &bomb);
    assert!(error.message().contains("more than the limit of 1048576 bytes"), "{error}");
}

/// A v1 inference over HTTP on a model with one FP32 input and output of two elements.
fn v1_http(header: &str, body: &[u8]) -> Error {
    let status = "\r\nNV-Status: code: SUCCESS server_id: \"s\" request_id: 5";
    let address = scripted(http_response(&format!("200 OK{status}{header}"), body), Then::Close);
    let settings = settings(&address, Protocol::Http, LIMIT);
    let request = v1::InferRequest { model: "m".into(), version: -1, ..Default::default() };
    blocking::v1::BlockingClient::new(&settings).unwrap().infer(&request).unwrap_err()
}

#[test]
fn v1_http_responses_that_lie_about_tensors() {
    let header = |size| {
        format!(
            "\r\nNV-InferResponse: model_name: \"m\" batch_size: 1 output {{ name: \"OUT\" raw {{ dims: 2 batch_byte_size: {size} }} }}"
        )
    };
    for (header, body, expected) in [
        (String::new(), &[0; 8][..], "infer request did not return response header"),
        ("\r\nNV-InferResponse: garbage".into(), &[0; 8], "did not return response header"),
        (header(8), &[0; 8], "infer request did not return result header"),
        (header(9), &[0; 8], "has 9 bytes by its header, the response has 8 left"),
        (header(u64::MAX), &[0; 8], "bytes by its header"),
        (header(4), &[0xff; 8], "the response is not a InferResponseHeader"),
        (header(6), b"12345\0\x08", "the response is not a InferResponseHeader"),
        (header(8), b"12345678\x18\x01", "has 0 outputs, the response header 1"),
    ] {
        let error = v1_http(&header, body);
        assert!(error.message().contains(expected), "{header}: {error}");
        assert_eq!(error.v1_code(), RequestStatusCode::Internal);
    }
}
