//! Unit tests of `reload.rs`.

use super::super::testing::{MountedSecret, TestAuthority, TestCertificate};
use super::*;
use crate::connections::Wire;

fn set(certificate: &TestCertificate) -> [(&'static str, &str); 2] {
    [("tls.crt", &certificate.certificate), ("tls.key", &certificate.key)]
}

/// The source of two listeners with the same files.
fn source(files: &TlsFiles) -> TlsSource {
    let mut reloader = TlsReloader::default();
    for (name, wire) in [("http", Wire::Http1), ("grpc", Wire::Http2)] {
        reloader.add(&TlsListener { name, wire, files }).unwrap();
    }
    assert_eq!(reloader.0.len(), 1, "the files are looked at once");
    reloader.0.remove(0)
}

/// Successes and failures that each listener has counted.
fn reloads(source: &TlsSource) -> (u64, u64) {
    let counts = source.endpoints.iter().map(|endpoint| {
        let count = |outcome| endpoint.stats().reloads(outcome);
        (count(TlsReloadOutcome::Success), count(TlsReloadOutcome::Failure))
    });
    let counts: Vec<_> = counts.collect();
    assert_eq!(counts[0], counts[1]);
    counts[0]
}

#[test]
fn replaced_directory_is_taken_over_and_a_bad_one_is_not() {
    let authority = TestAuthority::new("ours");
    let [first, second, third] = [2040, 2041, 2042].map(|year| authority.issue(year));
    let mut secret = MountedSecret::new(&set(&first));
    let mut source = source(&secret.files(false));
    let before = source.expires_at;
    source.look();
    assert_eq!((reloads(&source), source.expires_at), ((0, 0), before));

    secret.replace(&set(&second));
    source.look();
    assert_eq!(reloads(&source), (1, 0));
    let after = source.expires_at;
    assert!(after > before);
    assert!(source.endpoints.iter().all(|endpoint| endpoint.stats().expires_at() == after));

    // The certificate of one set and the key of another, looked at twice.
    secret.replace(&[("tls.crt", &third.certificate), ("tls.key", &second.key)]);
    for looks in 1..=2 {
        source.look();
        assert_eq!((reloads(&source), source.expires_at), ((1, looks), after));
        let reported = source.reported.clone().unwrap_or_default();
        assert!(reported.contains("does not belong to the certificate"), "{reported}");
    }
    secret.replace(&[("tls.key", &third.key)]);
    source.look();
    assert_eq!(reloads(&source), (1, 3));
    assert!(source.reported.as_ref().is_some_and(|text| text.contains("No such file")));

    // Back to what is in use.
    secret.replace(&set(&second));
    source.look();
    assert_eq!((reloads(&source), &source.reported), ((1, 3), &None));
    secret.replace(&set(&third));
    source.look();
    assert_eq!(reloads(&source), (2, 3));
    assert!(source.expires_at > after);
}

#[test]
fn files_copied_one_after_another_are_taken_over_without_a_failure() {
    let authority = TestAuthority::new("ours");
    let [first, second] = [2040, 2041].map(|year| authority.issue(year));
    let secret = MountedSecret::new(&set(&first));
    let mut source = source(&secret.files(false));
    std::fs::write(secret.path().join("tls.crt"), &second.certificate).unwrap();
    let key = secret.path().join("tls.key");
    let copied = std::thread::spawn(move || {
        std::thread::sleep(SETTLE / 10);
        std::fs::write(key, &second.key)
    });
    source.look();
    copied.join().unwrap().unwrap();
    assert_eq!(reloads(&source), (1, 0));
}

#[test]
fn changed_authorities_of_clients_are_a_change() {
    let [first, second] = ["first", "second"].map(TestAuthority::new);
    let certificate = first.issue(2040);
    let [first, second] = [first.pem(), second.pem()];
    let [crt, key] = set(&certificate);
    let mut secret = MountedSecret::new(&[crt, key, ("ca.crt", &first)]);
    let mut source = source(&secret.files(true));
    secret.replace(&[crt, key, ("ca.crt", &second)]);
    source.look();
    assert_eq!(reloads(&source), (1, 0));
}

#[test]
fn dates_have_seconds() {
    let table = [
        (0, "1970-01-01T00:00:00Z"),
        (2_240_524_800, "2040-12-31T00:00:00Z"),
        (i64::MAX, "9223372036854775807 seconds after 1970"),
    ];
    for (seconds, want) in table {
        assert_eq!(date(seconds), want);
    }
}
