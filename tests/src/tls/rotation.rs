//! The server's certificate is replaced again and again under load: no request fails, new
//! connections get the new certificate, and open ones live on. `cargo xtask soak -- --certificates`
//! runs it for a minute.

use super::{Authority, MountedSecret, TlsConnection, client_config};
use crate::server::{Running, Server, Signal, inference};
use crate::{SetOnDrop, probe};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use trtserver_client::blocking::v2::BlockingClient;
use trtserver_client::v2::{InferRequest, Input};
use trtserver_client::{Protocol, Settings, Tls};

/// Clients of each protocol.
const CLIENTS: usize = 8;
/// Requests of a client before it opens a new connection.
const REQUESTS: usize = 20;
/// How long a certificate is served at least.
const PAUSE: Duration = Duration::from_millis(250);

/// What was counted.
#[derive(Debug, Default)]
pub struct RotationReport {
    pub requests: u64,
    pub failed: u64,
    /// The first failure.
    pub failure: Option<String>,
    /// Certificates that were put in place, and those that new connections have seen.
    pub certificates: u64,
    pub seen: u64,
    /// Requests on the connection that was open throughout.
    pub kept_open: u64,
}

impl fmt::Display for RotationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, failed, certificates, seen, kept_open, .. } = self;
        write!(
            f,
            "{certificates} certificates, {seen} seen by new connections; {requests} requests, {failed} failed; \
             {kept_open} requests on one connection"
        )
    }
}

/// Rotates the certificates of a server for this time.
pub fn rotate(time: Duration) -> RotationReport {
    let (authority, clients) = (Authority::new("servers"), Authority::new("clients"));
    let mut secret = MountedSecret::new(&authority.issue(1), &clients.pem());
    let server = Server::new().model("echo", probe("echo", &[])).flag("--tls-reload-secs=1");
    let server = secret.flags("tls-").into_iter().fold(server, Server::flag);
    let server = server.flag(secret.authority_flag("tls-client-ca")).start();
    let identity = clients.issue(7);
    let mut tls = Tls::default();
    tls.authorities = Some(authority.pem().into_bytes());
    tls.certificate = Some(identity.chain.clone().into_bytes());
    tls.key = Some(identity.key.clone().into_bytes());
    let config = client_config(&authority, Some(&identity), &["http/1.1"]);
    let mut report = RotationReport::default();
    let (ended, requests, failures) =
        (AtomicBool::new(false), AtomicU64::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let (server, ended, requests, failures, tls) =
            (&server, &ended, &requests, &failures, &tls);
        let _end = SetOnDrop(ended);
        for client in 0..2 * CLIENTS {
            let (url, protocol) = match client % 2 {
                0 => (server.http(), Protocol::Http),
                _ => (server.grpc(), Protocol::Grpc),
            };
            let settings = Settings::new(url).protocol(protocol).tls(tls.clone());
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    if let Err(e) = requests_on_one_connection(&settings, requests) {
                        failures.lock().unwrap_or_else(|e| e.into_inner()).push(e.to_string());
                    }
                }
            });
        }
        let mut kept = open(server, &config);
        let mut seen = BTreeSet::from([kept.certificate()]);
        let begin = Instant::now();
        while begin.elapsed() < time {
            report.certificates += 1;
            secret.replace(&authority.issue(report.certificates + 1), &clients.pem());
            if report.certificates.is_multiple_of(2) {
                server.signal(Signal::HUP);
            }
            let shown = Instant::now();
            while !seen.insert(open(server, &config).certificate()) {
                assert!(
                    shown.elapsed() < Duration::from_secs(10),
                    "the certificate stays\n{}",
                    server.log()
                );
                thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(call(&mut kept), 200);
            report.kept_open += 1;
            thread::sleep(PAUSE);
        }
        report.seen = seen.len() as u64 - 1;
    });
    let failures = failures.into_inner().unwrap_or_else(|e| e.into_inner());
    report.requests = requests.load(Ordering::Relaxed);
    report.failed = failures.len() as u64;
    report.failure = failures.into_iter().next();
    assert!(server.stop().success());
    report
}

fn requests_on_one_connection(
    settings: &Settings,
    requests: &AtomicU64,
) -> trtserver_client::Result<()> {
    let client = BlockingClient::new(settings)?;
    for _ in 0..REQUESTS {
        let input = Input::new("INPUT0", "FP32", [1, 2], &b"12345678"[..]);
        let response = client.infer(&InferRequest::new("echo").input(input))?;
        assert_eq!(response.output("OUTPUT0")?.data, "12345678");
        requests.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn open(server: &Running, config: &std::sync::Arc<rustls::ClientConfig>) -> TlsConnection {
    TlsConnection::open(server.http(), config).unwrap_or_else(|e| panic!("{e}\n{}", server.log()))
}

fn call(connection: &mut TlsConnection) -> u16 {
    let response = connection.call(inference("echo", ""));
    response.unwrap_or_else(|e| panic!("the open connection ended: {e}")).status
}
