//! Public clients, unmodified: tritonclient, grpcio, curl, perf_analyzer.

use super::{Pki, encrypted, pki};
use std::fs;
use std::path::Path;
use std::process::Command;
use trtserver_tests::{Process, TIMEOUT, folder, perf_analyzer, python_v2, say};

/// Writes the authority of the server's certificate, the client's certificate and its key.
fn files(pki: &Pki, folder: &Path) -> [String; 3] {
    let texts = [
        ("ca.pem", pki.servers.pem()),
        ("client.pem", pki.client.chain.clone()),
        ("client.key", pki.client.key.clone()),
    ];
    texts.map(|(name, text)| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        path.display().to_string()
    })
}

#[test]
fn tritonclient_over_http_and_grpc() {
    let (pki, folder) = (pki(), folder());
    let files = files(&pki, folder.path());
    let mut arguments = vec!["--files"];
    arguments.extend(files.iter().map(String::as_str));
    for mutual in [false, true] {
        let server = encrypted(&pki, mutual).flag("--metrics-tls=off").start();
        python_v2(&server, "v2_tls.py", &arguments);
        arguments.push("--mutual");
    }
}

#[test]
fn curl_over_https() {
    let (pki, folder) = (pki(), folder());
    let [ca, certificate, key] = files(&pki, folder.path());
    let server = encrypted(&pki, true).start();
    let curl = |address: &str, path: &str, flags: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail", "--max-time", "30", "--cacert", &ca]);
        command.args(flags).arg(format!("https://{address}{path}"));
        command.output()
    };
    let known = ["--cert", &certificate, "--key", &key];
    let metrics = match curl(server.metrics_address(), "/metrics", &known) {
        Ok(output) => output,
        Err(e) => return say(&format!("SKIPPED curl_over_https: no curl: {e}")),
    };
    assert!(metrics.status.success(), "{metrics:?}");
    assert!(
        String::from_utf8_lossy(&metrics.stdout)
            .contains("trtserver_tls_certificate_expiry_seconds")
    );
    let body = r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}"#;
    for version in [["--http1.1", "--tlsv1.3"], ["--http2", "--tlsv1.2"]] {
        let highest = if version[1] == "--tlsv1.2" { "1.2" } else { "1.3" };
        let more = [version[0], version[1], "--tls-max", highest, "--data", body];
        let flags = [&known[..], &more].concat();
        let inferred = curl(server.http(), "/v2/models/echo/infer", &flags).expect("curl");
        assert!(inferred.status.success(), "{version:?} {inferred:?}");
        assert!(String::from_utf8_lossy(&inferred.stdout).contains("\"data\":[1"), "{inferred:?}");
    }
    let unknown = curl(server.http(), "/v2/health/live", &[]).expect("curl");
    assert!(!unknown.status.success(), "{unknown:?}");
}

#[test]
fn perf_analyzer_over_https_and_grpc() {
    let Some(install) = perf_analyzer() else {
        return say("perf_analyzer is left out: it has no build for this architecture");
    };
    let (pki, folder) = (pki(), folder());
    let [ca, certificate, key] = files(&pki, folder.path());
    let server = encrypted(&pki, true).flag("--metrics-tls=off").start();
    let https = format!("https://{}", server.http());
    let flag = |name: &str, value: &str| format!("--ssl-{name}={value}");
    let runs = [
        (
            ["-i", "http", "-u", &https],
            vec![
                flag("https-verify-peer", "1"),
                flag("https-verify-host", "2"),
                flag("https-ca-certificates-file", &ca),
                flag("https-client-certificate-file", &certificate),
                flag("https-client-certificate-type", "PEM"),
                flag("https-private-key-file", &key),
                flag("https-private-key-type", "PEM"),
            ],
        ),
        (
            ["-i", "grpc", "-u", server.grpc()],
            vec![
                "--ssl-grpc-use-ssl".to_owned(),
                flag("grpc-root-certifications-file", &ca),
                flag("grpc-private-key-file", &key),
                flag("grpc-certificate-chain-file", &certificate),
            ],
        ),
    ];
    let program = install.join("perf_analyzer");
    for (address, flags) in runs {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", &install);
        command.args(["-m", "echo", "--shape=INPUT0:4", "--concurrency-range=2"]).args(address);
        command.args(["--measurement-mode=count_windows", "--measurement-request-count=30"]);
        command.args(["--max-trials=5", "--stability-percentage=999"]).args(&flags);
        let process = Process::spawn(command);
        let ended = process.wait(TIMEOUT);
        assert!(ended.status.success(), "{address:?}\n{process}\n{}", server.log());
    }
}
