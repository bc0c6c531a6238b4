//! Unit tests of `head_check.rs`.

use super::*;
use trtserver_base::error::Code;

#[test]
fn host_and_transfer_encoding_are_checked() {
    use Code::{InvalidArg, Unsupported};
    let long = "x/".repeat(100);
    for (version, headers, expected) in [
        (Version::HTTP_11, &[("host", "x")][..], None),
        (Version::HTTP_11, &[("host", "[::1]:8000")], None),
        (Version::HTTP_11, &[("host", "")], None),
        (Version::HTTP_11, &[("host", "a_b.c-d:80")], None),
        (Version::HTTP_10, &[], None),
        (Version::HTTP_11, &[], Some((InvalidArg, "the request has no header 'Host'"))),
        (
            Version::HTTP_11,
            &[("host", "x"), ("host", "x")],
            Some((InvalidArg, "the request has 2 headers 'Host': expected one")),
        ),
        (
            Version::HTTP_10,
            &[("host", "x"), ("host", "y"), ("host", "z")],
            Some((InvalidArg, "the request has 3 headers 'Host': expected one")),
        ),
        (Version::HTTP_11, &[("host", "a, b")], Some((InvalidArg, "header 'Host' is 'a, b'"))),
        (Version::HTTP_11, &[("host", "u@h")], Some((InvalidArg, "header 'Host' is 'u@h'"))),
        (Version::HTTP_11, &[("host", &long)], Some((InvalidArg, "header 'Host' is 'x/x/"))),
        (Version::HTTP_11, &[("host", "x"), ("transfer-encoding", "chunked")], None),
        (Version::HTTP_11, &[("host", "x"), ("transfer-encoding", " Chunked ")], None),
        (
            Version::HTTP_11,
            &[("host", "x"), ("transfer-encoding", "gzip, chunked")],
            Some((Unsupported, "header 'Transfer-Encoding' is 'gzip, chunked': this server reads")),
        ),
        (
            Version::HTTP_11,
            &[("host", "x"), ("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")],
            Some((Unsupported, "header 'Transfer-Encoding' is 'gzip': this server reads")),
        ),
        (
            Version::HTTP_11,
            &[("host", "x"), ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
            Some((Unsupported, "header 'Transfer-Encoding' is 'chunked' beside another one")),
        ),
    ] {
        let mut request = Request::builder().version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let got = check_head(&request.body(()).unwrap());
        match (got, expected) {
            (Ok(()), None) => {}
            (Err(e), Some((code, text))) => {
                assert_eq!(e.code, code, "{headers:?}");
                assert!(e.message.starts_with(text), "{headers:?}: {}", e.message);
                assert!(e.message.len() < 250, "{}", e.message);
            }
            (got, _) => panic!("{headers:?}: {got:?}"),
        }
    }
}
