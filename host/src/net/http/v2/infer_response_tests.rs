//! Unit tests of `infer_response.rs`.

use super::*;

#[test]
fn numbers() {
    for n in (0..2000).chain([usize::MAX]) {
        assert_eq!(number(n), HeaderValue::from(n));
    }
}

#[test]
fn encodings() {
    for (text, want) in [
        ("", Encoding::Identity),
        ("gzip", Encoding::Gzip),
        ("deflate", Encoding::Deflate),
        ("*", Encoding::Identity),
        ("br, gzip;q=0.5, deflate;q=0.8", Encoding::Deflate),
        ("gzip, deflate", Encoding::Gzip),
        ("identity, gzip", Encoding::Identity),
        ("identity;q=0.5,gzip;q=0.5", Encoding::Identity),
        ("gzip;q=0", Encoding::Identity),
        ("GZIP; q=1.0", Encoding::Gzip),
    ] {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, text.parse().unwrap())]);
        assert_eq!(Encoding::pick(&headers), want, "{text}");
    }
}
