//! TLS of the client libraries and of trtserver-perf, through a proxy that ends it, as in front of
//! a server.
//!
//! The certificates in tests/tls are signed by `ca.pem`: the server's for 127.0.0.1 and
//! server.test, and a client's.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use trtserver_client::blocking::v2::BlockingClient;
use trtserver_client::v2::{InferRequest, Input};
use trtserver_client::{Bytes, Kind, Protocol, Result, Settings, Tls};
use trtserver_tests::{Ended, Process, Running, Server, TIMEOUT, dist, probe, python_output, root};

fn pem(name: &str) -> Vec<u8> {
    let path = root().join("tests/tls").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Accepts TLS, with `mutual` only of clients that have a certificate, and passes on to `target`.
/// Runs until the test program ends.
fn proxy(target: &str, mutual: bool) -> String {
    let config = || -> std::result::Result<ServerConfig, Box<dyn std::error::Error>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions()?;
        let builder = if mutual {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(&pem("ca.pem"))?)?;
            let roots = Arc::new(roots);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build()?;
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let chain = vec![CertificateDer::from_pem_slice(&pem("server.pem"))?];
        let key = PrivateKeyDer::from_pem_slice(&pem("server.key"))?;
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    };
    let config = config().unwrap_or_else(|e| panic!("{e}"));
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok((listener.local_addr()?.to_string(), listener))
    });
    let (address, listener) = bound.unwrap_or_else(|e| panic!("{e}"));
    let target = target.to_owned();
    let runtime = trtserver_client::blocking::background().unwrap_or_else(|e| panic!("{e}"));
    runtime.spawn(async move {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, target) = (acceptor.clone(), target.clone());
            tokio::spawn(async move {
                let Ok(mut encrypted) = acceptor.accept(stream).await else { return };
                let Ok(mut plain) = TcpStream::connect(target).await else { return };
                let _ = copy_bidirectional(&mut encrypted, &mut plain).await;
            });
        }
    });
    address
}

fn trusting() -> Tls {
    let mut tls = Tls::default();
    tls.authorities = Some(pem("ca.pem"));
    tls
}

fn infer(settings: &Settings) -> Result<Bytes> {
    let input = Input::new("INPUT0", "FP32", [1, 2], &b"12345678"[..]);
    let response = BlockingClient::new(settings)?.infer(&InferRequest::new("echo").input(input))?;
    Ok(response.output("OUTPUT0")?.data.clone())
}

#[test]
fn requests_are_encrypted_and_certificates_verified() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    for (target, protocol) in [(server.http(), Protocol::Http), (server.grpc(), Protocol::Grpc)] {
        let (one_sided, mutual) = (proxy(target, false), proxy(target, true));
        let settings = |url: &str, tls| Settings::new(url).protocol(protocol).tls(tls);
        assert_eq!(infer(&settings(&one_sided, trusting())).unwrap(), "12345678");
        // The scheme alone: the system does not trust the test's authority, or has none.
        let scheme = if protocol == Protocol::Http { "https" } else { "grpcs" };
        let error = infer(&Settings::new(format!("{scheme}://{one_sided}"))).unwrap_err();
        assert!(matches!(error.kind(), Kind::Connect | Kind::InvalidArgument), "{error}");
        let mut insecure = Tls::default();
        insecure.insecure = true;
        assert!(infer(&settings(&one_sided, insecure)).is_ok());
        let mut named = trusting();
        named.server_name = Some("server.test".into());
        assert!(infer(&settings(&one_sided, named)).is_ok());
        let mut named = trusting();
        named.server_name = Some("other.test".into());
        let error = infer(&settings(&one_sided, named)).unwrap_err();
        assert!(error.message().starts_with("the TLS handshake failed"), "{error}");
        assert!(error.asked().contains(&one_sided), "{error:?}");
        // A server that wants a certificate.
        assert!(infer(&settings(&mutual, trusting())).is_err());
        let mut known = trusting();
        (known.certificate, known.key) = (Some(pem("client.pem")), Some(pem("client.key")));
        assert_eq!(infer(&settings(&mutual, known)).unwrap(), "12345678");
        // TLS to a server without it.
        let error = infer(&settings(target, trusting())).unwrap_err();
        assert_eq!(error.kind(), Kind::Connect, "{error}");
    }
    let mut broken = Tls::default();
    broken.authorities = Some(b"no PEM".to_vec());
    let error = infer(&Settings::new("127.0.0.1:1").tls(broken)).unwrap_err();
    assert_eq!(error.message(), "TLS authorities: no certificate in the PEM text");
}

/// Proxies for HTTP and gRPC, each without and with a required client certificate.
fn proxies(server: &Running) -> [String; 4] {
    let of = |mutual| [server.http(), server.grpc()].map(|target| proxy(target, mutual));
    let ([http, grpc], [http_mutual, grpc_mutual]) = (of(false), of(true));
    [http, grpc, http_mutual, grpc_mutual]
}

/// Certificate authority, the client's certificate and its key.
fn files() -> [String; 3] {
    ["ca.pem", "client.pem", "client.key"]
        .map(|name| root().join("tests/tls").join(name).display().to_string())
}

#[test]
fn c_library_verifies_certificates_and_shows_its_own() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let arguments: Vec<String> = proxies(&server).into_iter().chain(files()).collect();
    super::c::tls(&arguments);
}

#[test]
fn wheel_verifies_certificates_and_shows_its_own() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let (proxies, files) = (proxies(&server), files());
    let mut arguments = vec!["--proxies"];
    arguments.extend(proxies.iter().map(String::as_str));
    arguments.push("--files");
    arguments.extend(files.iter().map(String::as_str));
    let packages = Some(super::python::packages());
    python_output("v2", packages, &server, "wheel_tls.py", &arguments);
}

fn perf(flags: &[&str]) -> Ended {
    let mut command = Command::new(dist().join("bin/trtserver-perf"));
    // Any three windows are a result.
    command.args(["-mecho", "-p50", "-s100000", "--max-trials=100", "--no-progress"]).args(flags);
    Process::spawn(command).wait(TIMEOUT)
}

#[test]
fn load_is_sent_over_tls() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let file = |name: &str| root().join("tests/tls").join(name).display().to_string();
    let [ca, certificate, key] =
        [("ca-file", "ca.pem"), ("certificate-file", "client.pem"), ("key-file", "client.key")]
            .map(|(flag, name)| format!("--tls-{flag}={}", file(name)));
    let targets = [(server.http(), "-iHTTP", "https"), (server.grpc(), "-igRPC", "grpcs")];
    std::thread::scope(|scope| {
        for (target, protocol, scheme) in targets {
            let (one_sided, mutual) = (proxy(target, false), proxy(target, true));
            let [one_sided, mutual] =
                [one_sided, mutual].map(|address| format!("-u{scheme}://{address}"));
            let (ca, certificate, key) = (&ca, &certificate, &key);
            scope.spawn(move || {
                // Requests and responses larger than the buffers of TLS, and small ones on several
                // connections.
                let sizes = ["--shape=INPUT0:40000", "--shape=INPUT0:16"];
                for (size, generation) in sizes.into_iter().zip(["v1", "v2"]) {
                    let generation = format!("--generation={generation}");
                    let flags = [protocol, &one_sided, ca, size, &generation];
                    let more = ["--concurrency-range=3", "--calls-per-connection=2", "-p400"];
                    let ended = perf(&[&flags[..], &more].concat());
                    assert!(ended.status.success(), "{flags:?} {ended:?}");
                }
                let small = ["--shape=INPUT0:1", protocol];
                let known = perf(&[&small[..], &[&mutual, ca, certificate, key]].concat());
                assert!(known.status.success(), "{known:?}");
                for flags in [vec![mutual.as_str(), ca], vec![&one_sided]] {
                    let ended = perf(&[&small[..], &flags].concat());
                    assert_eq!(ended.code(), 1, "{flags:?} {ended:?}");
                    let named = ended.stderr.contains(&flags[0]["-u".len()..]);
                    assert!(named || ended.stderr.contains("TLS"), "{flags:?} {ended:?}");
                }
                let insecure = perf(&[&small[..], &[&one_sided, "--tls-insecure"]].concat());
                assert!(insecure.status.success(), "{insecure:?}");
            });
        }
    });
}
