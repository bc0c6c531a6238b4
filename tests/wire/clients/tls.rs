//! TLS of the client libraries and of trtserver-perf, to the listeners of the server.
//!
//! The certificates in tests/tls are signed by `ca.pem`: the server's for 127.0.0.1 and
//! server.test, and a client's.

use std::process::Command;
use trtserver_client::blocking::v2::BlockingClient;
use trtserver_client::v2::{InferRequest, Input};
use trtserver_client::{Bytes, Kind, Protocol, Result, Settings, Tls};
use trtserver_tests::{Ended, Process, Running, Server, TIMEOUT, dist, probe, python_output, root};

fn file(name: &str) -> String {
    root().join("tests/tls").join(name).display().to_string()
}

fn pem(name: &str) -> Vec<u8> {
    let path = file(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn plain() -> Server {
    Server::new().model("echo", probe("echo", &[]))
}

/// HTTP and gRPC over TLS, with `mutual` only for clients that have a certificate.
fn encrypted(mutual: bool) -> Running {
    let server = plain()
        .flag(format!("--tls-cert={}", file("server.pem")))
        .flag(format!("--tls-key={}", file("server.key")))
        .flag("--metrics-tls=off");
    let ca = format!("--tls-client-ca={}", file("ca.pem"));
    if mutual { server.flag(ca).start() } else { server.start() }
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
    let (without, one_sided, mutual) = (plain().start(), encrypted(false), encrypted(true));
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let [target, one_sided, mutual] =
            [&without, &one_sided, &mutual].map(|server| match protocol {
                Protocol::Http => server.http(),
                Protocol::Grpc => server.grpc(),
            });
        let settings = |url: &str, tls| Settings::new(url).protocol(protocol).tls(tls);
        assert_eq!(infer(&settings(one_sided, trusting())).unwrap(), "12345678");
        // The scheme alone: the system does not trust the test's authority, or has none.
        let scheme = if protocol == Protocol::Http { "https" } else { "grpcs" };
        let error = infer(&Settings::new(format!("{scheme}://{one_sided}"))).unwrap_err();
        assert!(matches!(error.kind(), Kind::Connect | Kind::InvalidArgument), "{error}");
        let mut insecure = Tls::default();
        insecure.insecure = true;
        assert!(infer(&settings(one_sided, insecure)).is_ok());
        let mut named = trusting();
        named.server_name = Some("server.test".into());
        assert!(infer(&settings(one_sided, named)).is_ok());
        let mut named = trusting();
        named.server_name = Some("other.test".into());
        let error = infer(&settings(one_sided, named)).unwrap_err();
        assert!(error.message().starts_with("the TLS handshake failed"), "{error}");
        assert!(error.asked().contains(one_sided), "{error:?}");
        // A server that wants a certificate.
        assert!(infer(&settings(mutual, trusting())).is_err());
        let mut known = trusting();
        (known.certificate, known.key) = (Some(pem("client.pem")), Some(pem("client.key")));
        assert_eq!(infer(&settings(mutual, known)).unwrap(), "12345678");
        // TLS to a server without it.
        let error = infer(&settings(target, trusting())).unwrap_err();
        assert_eq!(error.kind(), Kind::Connect, "{error}");
    }
    let mut broken = Tls::default();
    broken.authorities = Some(b"no PEM".to_vec());
    let error = infer(&Settings::new("127.0.0.1:1").tls(broken)).unwrap_err();
    assert_eq!(error.message(), "TLS authorities: no certificate in the PEM text");
}

/// HTTP and gRPC of a server that shows a certificate, and of one that also wants the client's.
fn addresses(one_sided: &Running, mutual: &Running) -> [String; 4] {
    let [http, grpc] = [one_sided.http(), one_sided.grpc()].map(str::to_owned);
    let [http_mutual, grpc_mutual] = [mutual.http(), mutual.grpc()].map(str::to_owned);
    [http, grpc, http_mutual, grpc_mutual]
}

/// Certificate authority, the client's certificate and its key.
fn files() -> [String; 3] {
    ["ca.pem", "client.pem", "client.key"].map(file)
}

#[test]
fn c_library_verifies_certificates_and_shows_its_own() {
    let (one_sided, mutual) = (encrypted(false), encrypted(true));
    let addresses = addresses(&one_sided, &mutual);
    let arguments: Vec<String> = addresses.into_iter().chain(files()).collect();
    super::c::tls(&arguments);
}

#[test]
fn wheel_verifies_certificates_and_shows_its_own() {
    let (one_sided, mutual) = (encrypted(false), encrypted(true));
    let (addresses, files) = (addresses(&one_sided, &mutual), files());
    let mut arguments = vec!["--servers"];
    arguments.extend(addresses.iter().map(String::as_str));
    arguments.push("--files");
    arguments.extend(files.iter().map(String::as_str));
    let packages = Some(super::python::packages());
    python_output("v2", packages, &one_sided, "wheel_tls.py", &arguments);
}

fn perf(flags: &[&str]) -> Ended {
    let mut command = Command::new(dist().join("bin/trtserver-perf"));
    // Any three windows are a result.
    command.args(["-mecho", "-p50", "-s100000", "--max-trials=100", "--no-progress"]).args(flags);
    Process::spawn(command).wait(TIMEOUT)
}

#[test]
fn load_is_sent_over_tls() {
    let (one_sided, mutual) = (encrypted(false), encrypted(true));
    let [ca, certificate, key] =
        [("ca-file", "ca.pem"), ("certificate-file", "client.pem"), ("key-file", "client.key")]
            .map(|(flag, name)| format!("--tls-{flag}={}", file(name)));
    let targets = [
        ([one_sided.http(), mutual.http()], "-iHTTP", "https"),
        ([one_sided.grpc(), mutual.grpc()], "-igRPC", "grpcs"),
    ];
    std::thread::scope(|scope| {
        for (addresses, protocol, scheme) in targets {
            let [one_sided, mutual] = addresses.map(|address| format!("-u{scheme}://{address}"));
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
