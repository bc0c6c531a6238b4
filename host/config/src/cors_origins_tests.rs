//! Unit tests of `cors_origins.rs`.

use super::*;

fn parse(values: &[&str]) -> Result<Option<CorsOrigins>, String> {
    CorsOrigins::parse(&values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>())
}

#[test]
fn origins_are_compared_as_a_whole() {
    assert_eq!(parse(&[]), Ok(None));
    let any = parse(&["*"]).unwrap().unwrap();
    assert!(any.allow(b"https://a.example") && any.allow(b"null"));
    let origins = [
        "https://a.example",
        "http://localhost:5173",
        "http://[::1]:8080",
        "http://[::1]",
        "moz-extension://2c127fa4-62c7",
        "https://xn--bcher-kva.example",
    ];
    let listed = parse(&origins).unwrap().unwrap();
    for origin in origins {
        assert!(listed.allow(origin.as_bytes()), "{origin}");
    }
    for other in
        ["http://a.example", "https://a.example.org", "https://a.example:8443", "null", "", "*"]
    {
        assert!(!listed.allow(other.as_bytes()), "{other}");
    }
}

#[test]
fn what_no_browser_sends_is_refused() {
    for (values, want) in [
        (&["*", "https://a"][..], "must be the only --http-cors-origin"),
        (&["null"], "sandboxed"),
        (&[""], "no scheme"),
        (&["a.example"], "no scheme"),
        (&["HTTPS://a"], "scheme is not in lower case"),
        (&["://a"], "scheme is not in lower case"),
        (&["https://"], "no host"),
        (&["https://:8000"], "no host"),
        (&["https://a/"], "no path"),
        (&["https://a/b"], "no path"),
        (&["https://u@a"], "user name"),
        (&["https://A"], "lower case"),
        (&["https://b\u{fc}cher"], "xn--"),
        (&["https://a b"], "ASCII"),
        (&["https://a:443"], "leave out the port"),
        (&["http://a:80"], "leave out the port"),
        (&["http://a:"], "1 to 65535"),
        (&["http://a:0"], "1 to 65535"),
        (&["http://a:+1"], "1 to 65535"),
        (&["http://a:65536"], "1 to 65535"),
        (&["https://ok", "http://[::1]:x"], "1 to 65535"),
    ] {
        let error = parse(values).unwrap_err();
        assert!(error.contains(want) && error.contains("--http-cors-origin"), "{error}");
    }
}
