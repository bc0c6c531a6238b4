//! Unit tests of `config/address`: the text of one address.

use super::*;

#[test]
fn addresses_are_hosts_or_unix_sockets() {
    let host = |text: &str| Ok(ListenAddress::Host(text.to_owned()));
    let unix = |text: &str| Ok(ListenAddress::Unix(text.into()));
    for (text, expected) in [
        ("0.0.0.0", host("0.0.0.0")),
        ("::", host("::")),
        ("[::1]", host("::1")),
        ("fe80::1%eth0", host("fe80::1%eth0")),
        ("localhost", host("localhost")),
        ("unix:/run/a.sock", unix("/run/a.sock")),
        ("unix:a.sock", unix("a.sock")),
        ("unix:///run/a.sock", unix("/run/a.sock")),
    ] {
        assert_eq!(ListenAddress::parse(text), expected, "{text}");
    }
    let long = format!("unix:/{}", "a".repeat(MAX_UNIX_PATH));
    for (text, part) in [
        ("", "empty"),
        ("127.0.0.1:8000", "without a port"),
        ("[::1]:8000", "without a port"),
        ("/run/a.sock", "begins with unix:"),
        ("unix:", "expected a path"),
        ("unix://run/a.sock", "unix:///ABSOLUTE/PATH"),
        (&long, "this one has 108"),
    ] {
        let error = ListenAddress::parse(text).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
}
