//! Unit tests of `certificates.rs`.

use super::super::testing::{MountedSecret, TestAuthority};
use super::*;

/// 2040-12-31T00:00:00Z.
const END_OF_2040: i64 = 2_240_524_800;

/// What is wrong with files of these contents, with `DIR` for their folder.
fn problem(certificate: &str, key: &str, ca: Option<&str>) -> String {
    let files = [("tls.crt", certificate), ("tls.key", key), ("ca.crt", ca.unwrap_or_default())];
    let secret = MountedSecret::new(&files);
    let files = secret.files(ca.is_some());
    let contents = TlsContents::read(&files).unwrap();
    let error = contents.configure(&files).err().unwrap_or_default();
    error.replace(&secret.path().display().to_string(), "DIR")
}

#[test]
fn chain_key_and_authorities_become_a_configuration() {
    let authority = TestAuthority::new("ours");
    let [server, other] = [2040, 2050].map(|year| authority.issue(year));
    // The first to expire counts.
    let chain = format!("text before\n{}{}", other.certificate, server.certificate);
    let files = [("tls.crt", &*chain), ("tls.key", &other.key), ("ca.crt", &authority.pem())];
    let secret = MountedSecret::new(&files);
    for mutual in [false, true] {
        let contents = TlsContents::read(&secret.files(mutual)).unwrap();
        let served = contents.configure(&secret.files(mutual)).unwrap();
        assert_eq!(served.expires_at, END_OF_2040);
    }
    let hash = |mutual| TlsContents::read(&secret.files(mutual)).unwrap().hash();
    assert_eq!(hash(true), hash(true));
    assert_ne!(hash(true), hash(false));
}

#[test]
fn unusable_files_are_named() {
    let authority = TestAuthority::new("ours");
    let (server, other) = (authority.issue(2040), authority.issue(2040));
    let cut = server.certificate.replace("-----END CERTIFICATE-----", "");
    let wrong = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let table = [
        (
            problem("", &server.key, None),
            "TLS certificate DIR/tls.crt: expected certificates in PEM, found none",
        ),
        (
            problem(&cut, &server.key, None),
            "TLS certificate DIR/tls.crt: expected certificates in PEM: ",
        ),
        (problem(wrong, &server.key, None), "TLS certificate DIR/tls.crt: "),
        (
            problem(&server.certificate, &server.certificate, None),
            "TLS key DIR/tls.key: expected a private key in PEM without a password (PKCS #8, PKCS #1 or SEC 1), found none",
        ),
        (
            problem(&server.certificate, &other.key, None),
            "TLS key DIR/tls.key does not belong to the certificate DIR/tls.crt",
        ),
        (
            problem(&server.certificate, &server.key, Some("nothing")),
            "TLS authorities of clients DIR/ca.crt: expected certificates in PEM, found none",
        ),
    ];
    for (found, want) in table {
        assert!(found.starts_with(want), "{found}\n{want}");
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let secret = MountedSecret::new(&[("tls.crt", "x"), ("tls.key", "x")]);
    let refused = |files: &TlsFiles| TlsContents::read(files).err().unwrap_or_default();
    let missing = TlsFiles { key: "/nowhere/tls.key".into(), ..secret.files(false) };
    assert_eq!(
        refused(&missing),
        "TLS key /nowhere/tls.key: No such file or directory (os error 2)"
    );
    let device = TlsFiles { certificate: "/dev/zero".into(), ..secret.files(false) };
    assert!(refused(&device).starts_with("TLS certificate /dev/zero: not a regular file"));
    std::fs::write(secret.path().join("large"), vec![b' '; MAX_BYTES as usize + 1]).unwrap();
    let large = TlsFiles { client_ca: Some(secret.path().join("large")), ..secret.files(false) };
    assert!(refused(&large).contains("expected at most 4194304 bytes, found 4194305"));
}
