//! Unit tests of `auth_file.rs`.

use super::*;

const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

#[test]
fn lines_become_names() {
    let upper = HASH.to_uppercase();
    let text = format!(
        "# comment\n\n  anonymous - read:health\r\nvision {HASH},dns:Vision.Example infer:*:vision-* read rate=5 in-flight=2\n\
         deploy uri:spiffe://a/b,email:x@y control\nother sha256:{} *",
        upper.replace("9F", "8F")
    );
    let file = AuthFile::parse("f", text.as_bytes()).unwrap();
    let names: Vec<&str> = file.names.iter().map(|name| name.name.as_str()).collect();
    assert_eq!(names, ["anonymous", "vision", "deploy", "other"]);
    let vision = &file.names[1];
    assert_eq!((vision.rate, vision.in_flight, vision.scopes.len()), (Some(5), Some(2), 2));
    let AuthCredential::Token(hash) = &vision.credentials[0] else { panic!() };
    assert_eq!(hash[..2], [0x9f, 0x86]);
    let dns = CertificateName::Dns("vision.example".to_owned());
    assert_eq!(vision.credentials[1], AuthCredential::Certificate(dns));
    let uri = CertificateName::Uri("spiffe://a/b".to_owned());
    assert_eq!(file.names[2].credentials[0], AuthCredential::Certificate(uri));
    assert!(file.names[0].credentials.is_empty());
}

#[test]
fn wrong_lines_are_named() {
    for (text, error) in [
        (String::new(), "auth file f: expected a line NAME CREDENTIALS SCOPE..., found none"),
        ("#\n".to_owned(), "auth file f: expected a line"),
        (
            "\na".to_owned(),
            "auth file f, line 2: expected NAME CREDENTIALS SCOPE..., found one word",
        ),
        (format!("a {HASH}"), "line 1: name 'a' has no scope: expected ACCESS[:GROUPS[:MODELS]]"),
        (format!("a {HASH} rate=1"), "name 'a' has no scope"),
        (
            "a e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 read".to_owned(),
            "of a token that is not empty",
        ),
        ("a s3cret read".to_owned(), "line 1: a credential cannot be read: expected the SHA-256"),
        (format!("a {HASH}0 read"), "a credential cannot be read"),
        (format!("a {} read", HASH.replace('9', "g")), "a credential cannot be read"),
        ("a dns: read".to_owned(), "a credential cannot be read"),
        ("a - read".to_owned(), "name 'a' has no credentials: only 'anonymous' may have none"),
        (format!("anonymous {HASH} read"), "'anonymous' has no credentials: expected -"),
        (
            format!("a {HASH} write"),
            "scope 'write': 'write' is not a kind of access: expected read",
        ),
        (format!("a {HASH} read:helth"), "scope 'read:helth': 'helth' is not a group of endpoints"),
        (format!("a {HASH} read:"), "'' is not a group of endpoints"),
        (format!("a {HASH} read:*:"), "scope 'read:*:': a pattern for models is empty"),
        (format!("a {HASH} read rate=0"), "rate=0: expected a number of at least 1"),
        (format!("a {HASH} read rate=1 rate=2"), "rate is given twice"),
        (format!("a {HASH} read in-flight=x"), "in-flight=x: expected a number"),
        (format!("a {HASH} read\na dns:x read"), "line 2: name 'a' has a line already"),
        (
            format!("a {HASH} read\nb {HASH} read"),
            "line 2: a credential of name 'b' is on another line",
        ),
        (format!("a {HASH},{HASH} read"), "a credential of name 'a' is on another line too"),
    ] {
        let found = AuthFile::parse("f", text.as_bytes()).unwrap_err();
        assert!(found.contains(error) && !found.contains("s3cret"), "{text:?}: {found}");
    }
    assert!(AuthFile::parse("f", b"a \xff read").unwrap_err().contains("UTF-8"));
}

#[test]
fn example_of_the_documentation_is_valid() {
    let page = include_str!("../../../docs/security.md");
    let example = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let file = AuthFile::parse("page", example.unwrap_or_default().as_bytes()).unwrap();
    let names: Vec<&str> = file.names.iter().map(|name| name.name.as_str()).collect();
    assert_eq!(names, ["anonymous", "prometheus", "team-vision", "deploy", "admin"]);
}
