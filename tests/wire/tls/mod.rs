//! TLS of the listeners: which of them have it, their certificates and those of clients, new files
//! while the server runs, hostile handshakes, and the public clients.

mod clients;
mod connections;
mod handshakes;
mod listeners;
mod reload;

use trtserver_client::blocking::v2::BlockingClient;
use trtserver_client::v2::{InferRequest, Input};
use trtserver_client::{Protocol, Settings, Tls};
use trtserver_tests::tls::{Authority, Certificate, MountedSecret};
use trtserver_tests::{Server, probe};

/// A server's certificate with its authority, and a client's with another one.
struct Pki {
    servers: Authority,
    client: Certificate,
    secret: MountedSecret,
}

fn pki() -> Pki {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let client = clients.issue(100);
    let secret = MountedSecret::new(&servers.issue(1), &clients.pem());
    Pki { servers, client, secret }
}

/// A server with the model `echo`.
fn server(flags: &[String]) -> Server {
    let server = Server::new().model("echo", probe("echo", &[]));
    flags.iter().fold(server, |server, flag| server.flag(flag))
}

/// All listeners have TLS; clients must have certificates if `mutual`.
fn encrypted(pki: &Pki, mutual: bool) -> Server {
    let mut flags = pki.secret.flags("tls-").to_vec();
    if mutual {
        flags.push(pki.secret.authority_flag("tls-client-ca"));
    }
    server(&flags)
}

/// A client that trusts the server, and shows its own certificate if `known`.
fn tls(pki: &Pki, known: bool) -> Tls {
    let mut tls = Tls::default();
    tls.authorities = Some(pki.servers.pem().into_bytes());
    if known {
        tls.certificate = Some(pki.client.chain.clone().into_bytes());
        tls.key = Some(pki.client.key.clone().into_bytes());
    }
    tls
}

/// Whether an inference succeeds; plain text without `tls`.
fn is_served(address: &str, protocol: Protocol, tls: Option<Tls>) -> bool {
    let settings = Settings::new(address).protocol(protocol);
    let settings = match tls {
        Some(tls) => settings.tls(tls),
        None => settings,
    };
    let input = Input::new("INPUT0", "FP32", [1, 2], &b"12345678"[..]);
    let request = InferRequest::new("echo").input(input);
    BlockingClient::new(&settings).and_then(|client| client.infer(&request)).is_ok()
}
