//! New files while the server runs.

use super::{encrypted, is_served, pki, tls};
use std::fs;
use std::time::Duration;
use trtserver_client::Protocol;
use trtserver_tests::tls::{Authority, TlsConnection, client_config, rotate};
use trtserver_tests::{Running, Signal, inference};

#[test]
fn certificates_change_under_load_and_no_request_fails() {
    let report = rotate(Duration::from_secs(5));
    assert_eq!((report.failed, &report.failure), (0, &None), "{report}");
    assert!(report.certificates > 4 && report.seen == report.certificates, "{report}");
    assert!(report.requests > 100, "{report}");
}

fn reloads(server: &Running, outcome: &str) -> f64 {
    let labels = format!("listener=\"http\",outcome=\"{outcome}\"");
    server.metrics(&format!("trtserver_tls_reloads_total{{{labels}}}")).unwrap_or(-1.0)
}

/// On SIGHUP alone. A set that cannot be used is logged once and counted each time.
#[test]
fn bad_files_keep_the_certificate_in_use() {
    let mut pki = pki();
    let flags = ["--tls-reload-secs=0", "--metrics-tls=off"];
    let server = flags.into_iter().fold(encrypted(&pki, false), |server, flag| server.flag(flag));
    let server = server.start();
    let config = client_config(&pki.servers, None, &["http/1.1"]);
    let open = || TlsConnection::open(server.http(), &config).unwrap();
    let mut kept = open();
    let first = kept.certificate();
    let good = pki.servers.issue_until(2, 2039);
    let mut bad = pki.servers.issue(3);
    bad.key = good.key.clone();
    pki.secret.replace(&bad, "");
    for looks in 1..=2 {
        server.signal(Signal::HUP);
        server.poll_until("the bad set is counted", |server| {
            reloads(server, "failure") == f64::from(looks)
        });
    }
    assert_eq!(open().certificate(), first);
    let key = pki.secret.file("tls.key").display().to_string();
    let line = server.wait_for_log(&format!("TLS key {key} does not belong to the certificate"));
    assert!(
        line.contains("http, grpc keeps the certificate before, which is valid until 2040-12-31"),
        "{line}"
    );
    assert_eq!(server.log().matches("does not belong").count(), 1, "{}", server.log());
    // A file in place of the link.
    fs::remove_file(pki.secret.file("tls.key")).unwrap();
    server.signal(Signal::HUP);
    server.wait_for_log_with(&["tls.key", "No such file or directory"]);
    fs::write(pki.secret.file("tls.key"), &good.key).unwrap();
    pki.secret.replace(&good, "");
    server.signal(Signal::HUP);
    server.poll_until("the good set is taken over", |server| reloads(server, "success") == 1.0);
    server.wait_for_log_with(&[
        "new TLS certificate",
        "of http, grpc, valid until 2039-12-31T00:00:00Z",
    ]);
    assert_ne!(open().certificate(), first);
    let left =
        server.metrics("trtserver_tls_certificate_expiry_seconds{listener=\"grpc\"}").unwrap();
    assert!(left < 4.4e8, "{left}");
    // The connection from before lives on.
    assert_eq!(kept.call(inference("echo", "")).unwrap().status, 200);
    assert_eq!(server.log().matches("SIGHUP: the files of TLS are read again").count(), 4);
    assert!(!server.log().contains("SIGHUP ignored"));
    assert!(server.stop().success());
}

#[test]
fn authorities_of_clients_change_with_the_certificate() {
    let mut pki = pki();
    let server =
        encrypted(&pki, true).flag("--tls-reload-secs=1").flag("--metrics-tls=off").start();
    for known in [true, false] {
        let served = is_served(server.http(), Protocol::Http, Some(tls(&pki, known)));
        assert_eq!(served, known);
    }
    let others = Authority::new("others");
    pki.secret.replace(&pki.servers.issue(2), &others.pem());
    server.poll_until("the new authority is in use", |server| reloads(server, "success") == 1.0);
    let before = tls(&pki, true);
    pki.client = others.issue(200);
    let after = tls(&pki, true);
    for (address, protocol) in [(server.http(), Protocol::Http), (server.grpc(), Protocol::Grpc)] {
        assert!(!is_served(address, protocol, Some(before.clone())), "{protocol:?}");
        assert!(is_served(address, protocol, Some(after.clone())), "{protocol:?}");
    }
}
