//! Unit tests of `tls_settings.rs`.

use super::*;
use crate::testing::{error_of, run};

fn tls_of(line: &str) -> TlsSettings {
    match run(&format!("--model-store=/m {line}")) {
        Ok(start) => start.settings.tls,
        Err(exit) => panic!("{line}: {}", exit.stderr),
    }
}

/// `C K CA` of a listener, `-` without TLS.
fn shown(files: &Option<TlsFiles>) -> String {
    let Some(files) = files else { return "-".to_owned() };
    let ca = files.client_ca.as_ref().map(|ca| format!(" {}", ca.display())).unwrap_or_default();
    format!("{} {}{ca}", files.certificate.display(), files.key.display())
}

#[test]
fn flags_of_all_listeners_and_of_one() {
    // Flags; HTTP, gRPC, metrics, health.
    let table: &[(&str, [&str; 4])] = &[
        ("", ["-"; 4]),
        ("--tls-cert= --tls-key=", ["-"; 4]),
        ("--tls-cert=c --tls-key=k", ["c k"; 4]),
        ("--tls-cert=c --tls-key=k --tls-client-ca=a", ["c k a"; 4]),
        ("--tls-cert=c --tls-key=k --metrics-tls=off", ["c k", "c k", "-", "c k"]),
        (
            "--tls-cert=c --tls-key=k --tls-client-ca=a --health-tls-client-ca= --metrics-tls-client-ca=m",
            ["c k a", "c k a", "c k m", "c k"],
        ),
        ("--http-tls-cert=c --http-tls-key=k", ["c k", "-", "-", "-"]),
        (
            "--tls-cert=c --tls-key=k --grpc-tls-cert=gc --grpc-tls-key=gk --http-tls=on",
            ["c k", "gc gk", "c k", "c k"],
        ),
        ("--tls-cert=c --tls-key=k --grpc-tls=off", ["c k", "-", "c k", "c k"]),
        ("--grpc-tls-cert=c --grpc-tls-key=k --tls-client-ca=a", ["-", "c k a", "-", "-"]),
    ];
    for (line, want) in table {
        let tls = tls_of(line);
        let found = [&tls.http, &tls.grpc, &tls.metrics, &tls.health].map(shown);
        assert_eq!(found, *want, "{line}");
    }
}

#[test]
fn triton_flags_mean_what_they_mean_in_triton() {
    let files = "--grpc-server-cert=c --grpc-server-key=k --grpc-root-cert=r";
    let shared = "--tls-cert=tc --tls-key=tk --tls-client-ca=ta";
    // Flags; gRPC, HTTP.
    let table: &[(&str, &str, &str)] = &[
        ("--grpc-use-ssl", "c k", "-"),
        ("--grpc-use-ssl=true", "c k", "-"),
        ("--grpc-use-ssl=false", "-", "-"),
        ("", "-", "-"),
        ("--grpc-use-ssl --grpc-use-ssl-mutual", "c k r", "-"),
        ("--grpc-use-ssl-mutual=true", "c k r", "-"),
        // Given with any value it enables TLS.
        ("--grpc-use-ssl-mutual=false", "c k", "-"),
        ("--grpc-use-ssl=false --grpc-use-ssl-mutual=true", "c k r", "-"),
        ("SHARED --grpc-use-ssl", "c k ta", "tc tk ta"),
        ("SHARED --grpc-use-ssl-mutual=false", "c k", "tc tk ta"),
        ("SHARED --grpc-use-ssl=false", "-", "tc tk ta"),
        ("SHARED", "tc tk ta", "tc tk ta"),
    ];
    for (line, grpc, http) in table {
        let tls = tls_of(&format!("{files} {}", line.replace("SHARED", shared)));
        assert_eq!(
            (shown(&tls.grpc).as_str(), shown(&tls.http).as_str()),
            (*grpc, *http),
            "{line}"
        );
    }
    let inherited = tls_of(&format!("{shared} --grpc-use-ssl --grpc-use-ssl-mutual"));
    assert_eq!(shown(&inherited.grpc), "tc tk ta");
}

#[test]
fn incomplete_and_contradicting_flags_are_refused() {
    let table = [
        ("--tls-cert=c", "--tls-cert requires --tls-key, the private key of the certificate"),
        ("--http-tls-key=k", "--http-tls-key requires --http-tls-cert, the certificate of the key"),
        (
            "--tls-client-ca=a",
            "--tls-client-ca requires --tls-cert and --tls-key: only a listener with TLS can ask for certificates",
        ),
        (
            "--metrics-tls=on",
            "--metrics-tls=on requires --metrics-tls-cert and --metrics-tls-key, or --tls-cert and --tls-key for all listeners",
        ),
        (
            "--health-tls-client-ca=a",
            "--health-tls-client-ca requires --health-tls-cert and --health-tls-key, or --tls-cert and --tls-key for all \
             listeners",
        ),
        (
            "--http-tls=off --http-tls-cert=c --http-tls-key=k",
            "--http-tls=off and --http-tls-cert contradict each other",
        ),
        (
            "--grpc-use-ssl",
            "--grpc-use-ssl requires --grpc-server-cert and --grpc-server-key, or --tls-cert and --tls-key for all listeners",
        ),
        (
            "--grpc-use-ssl-mutual --grpc-server-cert=c --grpc-server-key=k",
            "--grpc-use-ssl-mutual requires --grpc-root-cert, the authorities of the clients' certificates",
        ),
        (
            "--grpc-use-ssl --grpc-tls=off",
            "--grpc-tls and --grpc-use-ssl both set up TLS for gRPC: use the flags of one kind",
        ),
        (
            "--tls-max-handshakes=0",
            "Couldn't interpret value 0 for flag --tls-max-handshakes. It takes a whole number, at least 1.",
        ),
    ];
    for (line, want) in table {
        assert_eq!(error_of(&format!("--model-store=/m {line}")), want, "{line}");
    }
}

#[test]
fn files_that_are_not_used_are_noted() {
    let notes = |line: &str| {
        run(&format!("--model-store=/m {line}")).map(|start| start.notes).unwrap_or_default()
    };
    let warning = |text: &str| StartNote::Warning(text.to_owned());
    assert_eq!(
        notes("--grpc-server-cert=c --grpc-server-key=k --grpc-root-cert=r"),
        [
            warning("--grpc-server-cert has no effect without --grpc-use-ssl"),
            warning("--grpc-server-key has no effect without --grpc-use-ssl"),
            warning("--grpc-root-cert has no effect without --grpc-use-ssl-mutual"),
        ]
    );
    let files = "--grpc-server-cert=c --grpc-server-key=k";
    assert_eq!(notes(&format!("{files} --grpc-use-ssl")), []);
    assert_eq!(notes(&format!("{files} --grpc-root-cert=r --grpc-use-ssl-mutual")), []);
}

#[test]
fn times_and_limit_of_handshakes() {
    let tls = tls_of("--tls-reload-secs=0 --tls-handshake-timeout-secs=3 --tls-max-handshakes=7");
    assert_eq!((tls.reload_interval, tls.max_handshakes), (None, 7));
    assert_eq!(tls.handshake_timeout, Some(Duration::from_secs(3)));
}
