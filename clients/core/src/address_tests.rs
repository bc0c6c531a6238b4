//! Unit tests of `address.rs`.

use super::*;

fn parse(url: &str, protocol: Protocol) -> Result<ServerAddress> {
    ServerAddress::parse(&Settings::new(url).protocol(protocol))
}

#[test]
fn url_forms_are_understood() {
    use Protocol::{Grpc, Http};
    for (url, protocol, shown) in [
        ("localhost:8000", Http, "http://localhost:8000"),
        ("localhost", Http, "http://localhost:8000"),
        ("localhost", Grpc, "grpc://localhost:8001"),
        ("http://localhost", Http, "http://localhost:80"),
        ("http://h:9/proxy/a/", Http, "http://h:9/proxy/a"),
        ("https://h", Http, "https://h:443"),
        ("HTTP://h:9", Grpc, "grpc://h:9"),
        ("grpc://h", Http, "grpc://h:8001"),
        ("grpcs://h:9", Http, "grpcs://h:9"),
        ("[::1]:9", Http, "http://[::1]:9"),
        ("[::1]", Grpc, "grpc://[::1]:8001"),
        ("unix:/run/t.sock", Grpc, "unix:/run/t.sock"),
        ("unix:///run/t.sock", Http, "unix:/run/t.sock"),
    ] {
        assert_eq!(parse(url, protocol).unwrap().shown, shown, "{url}");
    }
}

#[test]
fn wrong_urls_are_refused_and_named() {
    for (url, why) in [
        ("", "no host"),
        ("http://", "no host"),
        (":8000", "no host"),
        ("h:port", "the port is not a number"),
        ("h:70000", "the port is not a number"),
        ("ftp://h", "the scheme must be"),
        ("u:p@h:1", "user names"),
        ("::1", "in brackets"),
        ("[::1", "without `]`"),
        ("a b:1", "no host has"),
        ("grpc://h:1/x", "gRPC has no path"),
        ("http://h/a b", "percent-encoded"),
        ("unix:", "no path"),
    ] {
        let error = parse(url, Protocol::Http).unwrap_err();
        assert!(error.message().starts_with(&format!("`{url}` is not a URL: ")), "{error}");
        assert!(error.message().contains(why), "{error}");
    }
}
