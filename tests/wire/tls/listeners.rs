//! Which listeners have TLS, what they demand of clients, and files that cannot be used.

use super::{Pki, is_served, pki, server, tls};
use std::io::{Read, Write};
use trtserver_client::Protocol;
use trtserver_tests::http1::request;
use trtserver_tests::inference;
use trtserver_tests::socket::connect;
use trtserver_tests::tls::{TlsConnection, client_config};

fn get(address: &str, path: &str, pki: &Pki, shows: bool) -> std::io::Result<u16> {
    let config = client_config(&pki.servers, shows.then_some(&pki.client), &["http/1.1"]);
    let call = TlsConnection::open(address, &config)?.call(request("GET", path, &[], b""));
    Ok(call?.status)
}

/// Whether a request in plain text is served. A listener with TLS answers with an alert.
fn is_plain(address: &str, path: &str) -> bool {
    let mut stream = connect(address).unwrap_or_else(|e| panic!("{address}: {e}"));
    let get = request("GET", path, &[("Connection", "close")], b"");
    let mut answer = Vec::new();
    stream.write_all(&get).and_then(|()| stream.read_to_end(&mut answer)).is_ok()
        && answer.starts_with(b"HTTP/1.1 200 ")
}

#[test]
fn every_listener_has_tls_unless_its_flags_say_otherwise() {
    let pki = pki();
    let mut flags = pki.secret.flags("tls-").to_vec();
    flags.push(pki.secret.authority_flag("tls-client-ca"));
    flags.extend(
        ["--http-health-port=0", "--metrics-tls=off", "--health-tls-client-ca="].map(str::to_owned),
    );
    let running = server(&flags).start();
    let health = running.listening("health");
    assert!(is_plain(running.metrics_address(), "/metrics"));
    assert_eq!(get(&health, "/v2/health/ready", &pki, false).unwrap(), 200);
    assert!(!is_plain(&health, "/v2/health/ready"));
    let http = running.http();
    assert_eq!(get(http, "/v2/health/ready", &pki, true).unwrap(), 200);
    assert!(get(http, "/v2/health/ready", &pki, false).is_err());
    assert!(!is_plain(http, "/v2/health/ready"));
    // The server's own authority signs no clients.
    let own = Pki { client: pki.servers.issue(9), ..self::pki() };
    let stranger = Pki { servers: pki.servers, ..own };
    assert!(get(http, "/v2/health/ready", &stranger, true).is_err());
    let sample = |name: &str, labels: &str| running.metrics(&format!("{name}{{{labels}}}"));
    let failures = "trtserver_tls_handshake_failures_total";
    for listener in ["http", "grpc", "health"] {
        let label = format!("listener=\"{listener}\"");
        let left = sample("trtserver_tls_certificate_expiry_seconds", &label).unwrap();
        assert!((1e8..1e9).contains(&left), "{left}");
        let reloads = format!("{label},outcome=\"success\"");
        assert_eq!(sample("trtserver_tls_reloads_total", &reloads), Some(0.0));
    }
    let count =
        |reason| sample(failures, &format!("listener=\"http\",reason=\"{reason}\"")).unwrap();
    running.poll_until("failures are counted", |_| {
        count("certificate") == 2.0 && count("protocol") == 1.0
    });
    let health_failures = sample(failures, "listener=\"health\",reason=\"protocol\"");
    assert_eq!(health_failures, Some(1.0));
    assert!(!running.metrics_text().contains("listener=\"metrics\""));
    assert!(running.stop().success());
}

#[test]
fn each_listener_speaks_its_protocol_only() {
    let pki = pki();
    let running = server(&pki.secret.flags("tls-")).start();
    let open = |address: &str, protocols: &[&str]| {
        TlsConnection::open(address, &client_config(&pki.servers, None, protocols))
            .map(|connection| connection.protocol())
    };
    let both = ["h2", "http/1.1"];
    let shown = |protocol: &str| Some(protocol.to_owned());
    for (address, speaks, other) in
        [(running.http(), "http/1.1", "h2"), (running.grpc(), "h2", "http/1.1")]
    {
        assert_eq!(open(address, &both).unwrap(), shown(speaks));
        assert_eq!(open(address, &[]).unwrap(), None);
        assert!(open(address, &[other]).is_err());
    }
}

#[test]
fn unix_sockets_have_plain_text() {
    let pki = pki();
    let socket = pki.secret.file("http.sock");
    let mut flags = pki.secret.flags("tls-").to_vec();
    flags.push(format!("--http-address=127.0.0.1,unix:{}", socket.display()));
    flags.push("--metrics-tls=off".to_owned());
    let running = server(&flags).start();
    let path = format!("unix:{}", socket.display());
    assert!(is_plain(&path, "/v2/health/ready"));
    running.wait_for_log(&format!("{path}: a Unix socket has no TLS"));
    assert!(!is_plain(running.http(), "/v2/health/ready"));
}

#[test]
fn triton_flags_concern_grpc_only() {
    let pki = pki();
    let [certificate, key] = pki.secret.flags("grpc-server-");
    let ca = pki.secret.authority_flag("grpc-root-cert");
    // Triton enables TLS with any value of the second flag.
    let table: [(&[&str], [bool; 3]); 3] = [
        // Plain text; TLS without and with a client's certificate.
        (&["--grpc-use-ssl=true"], [false, true, true]),
        (&["--grpc-use-ssl-mutual=false"], [false, true, true]),
        (&["--grpc-use-ssl", "--grpc-use-ssl-mutual=true"], [false, false, true]),
    ];
    for (switches, want) in table {
        let mut flags = vec![certificate.clone(), key.clone(), ca.clone()];
        flags.extend(switches.iter().map(|flag| (*flag).to_owned()));
        let running = server(&flags).start();
        assert_eq!(running.infer("echo", "").status, 200, "HTTP has no TLS");
        let calls = [None, Some(tls(&pki, false)), Some(tls(&pki, true))];
        let found = calls.map(|tls| is_served(running.grpc(), Protocol::Grpc, tls));
        assert_eq!(found, want, "{switches:?}\n{}", running.log());
    }
}

#[test]
fn files_that_cannot_be_used_end_the_start() {
    let pki = pki();
    let [certificate, key] = pki.secret.flags("tls-");
    let name =
        |flag: &str| flag.split_once('=').map(|(_, path)| path.to_owned()).unwrap_or_default();
    let (certificate_file, key_file) = (name(&certificate), name(&key));
    let other = trtserver_tests::tls::MountedSecret::new(&pki.servers.issue(5), "no certificate");
    let other_key = format!("--tls-key={}", other.file("tls.key").display());
    let table: [(Vec<String>, String); 4] = [
        (
            vec!["--tls-cert=/nowhere/tls.crt".to_owned(), key.clone()],
            "TLS certificate /nowhere/tls.crt: No such file or directory".to_owned(),
        ),
        (
            vec![format!("--tls-cert={key_file}"), key.clone()],
            format!("TLS certificate {key_file}: expected certificates in PEM, found none"),
        ),
        (
            vec![certificate.clone(), other_key],
            format!("does not belong to the certificate {certificate_file}"),
        ),
        (
            vec![certificate, key, other.authority_flag("tls-client-ca")],
            format!(
                "TLS authorities of clients {}: expected certificates",
                other.file("ca.crt").display()
            ),
        ),
    ];
    for (flags, want) in table {
        let ended = server(&flags).refuses_to_start();
        assert!(ended.stderr.contains(&want), "{want}\n{}", ended.stderr);
    }
}

#[test]
fn requests_over_tls_are_those_over_plain_text() {
    let pki = pki();
    let running = server(&pki.secret.flags("tls-")).start();
    let config = client_config(&pki.servers, None, &["http/1.1"]);
    let mut connection = TlsConnection::open(running.http(), &config).unwrap();
    for _ in 0..3 {
        assert_eq!(connection.call(inference("echo", "")).unwrap().status, 200);
    }
    // Several megabytes each way, and a response that the client does not read at once.
    let values = vec![7u8; 4 << 20];
    let json = r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1048576],"parameters":{"binary_data_size":4194304}}],"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}}]}"#;
    let mut body = json.as_bytes().to_vec();
    body.extend(&values);
    let length = json.len().to_string();
    let headers = [("Inference-Header-Content-Length", length.as_str())];
    let large = request("POST", "/v2/models/echo/infer", &headers, &body);
    let mut pipelined = large.clone();
    pipelined.extend(&large);
    connection.send(&pipelined).unwrap();
    for _ in 0..2 {
        let response = connection.response().unwrap().unwrap();
        assert_eq!(response.status, 200, "{}", response.error_text());
        assert!(response.body.ends_with(&values));
    }
    assert!(running.stop().success());
}
