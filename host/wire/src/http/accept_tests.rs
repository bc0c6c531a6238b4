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
