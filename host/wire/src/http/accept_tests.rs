//! Unit tests of `accept.rs`.

use super::*;

#[test]
fn accept_encoding_picks_the_highest_weight() {
    for (text, want) in [
        ("", None),
        ("gzip", Some(Coding::Gzip)),
        ("deflate", Some(Coding::Deflate)),
        ("*", None),
        ("br, gzip;q=0.5, deflate;q=0.8", Some(Coding::Deflate)),
        ("gzip, deflate", Some(Coding::Gzip)),
        ("identity, gzip", None),
        ("identity;q=0.5,gzip;q=0.5", None),
        ("gzip;q=0", None),
        ("GZIP; q=1.0", Some(Coding::Gzip)),
    ] {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, text.parse().unwrap())]);
        assert_eq!(accepted_coding(&headers), want, "{text}");
    }
}

#[test]
fn first_header_of_each_name_is_found() {
    let own = HeaderName::from_static("x-own");
    let pairs = [("x-own", "1"), ("accept-encoding", "2"), ("x-own", "3"), ("x-other", "4")];
    let pairs = pairs.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
    let headers: HeaderMap = pairs.into_iter().collect();
    let found = find_headers(&headers, [&ACCEPT_ENCODING, &http::header::HOST, &own]);
    let found = found.map(|value| value.map(HeaderValue::as_bytes));
    assert_eq!(found, [Some(&b"2"[..]), None, Some(b"1")]);
}
