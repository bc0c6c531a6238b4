//! Clients that leave are noticed through TLS as they are without it.

use super::{Pki, pki};
use trtserver_tests::tls::{TlsConnection, client_config};
use trtserver_tests::{Latch, Running, Server, inference, probe};

fn server(pki: &Pki) -> Server {
    let server = Server::new()
        .model("stuck", probe("stuck", &[("until_cancelled", "true")]))
        .model("echo", probe("echo", &[]))
        .flag("--metrics-tls=off");
    pki.secret.flags("tls-").into_iter().fold(server, Server::flag)
}

fn open(server: &Running, pki: &Pki) -> TlsConnection {
    let config = client_config(&pki.servers, None, &["http/1.1"]);
    TlsConnection::open(server.http(), &config).unwrap_or_else(|e| panic!("{e}\n{}", server.log()))
}

fn cancelled(server: &Running) -> f64 {
    let labels = "model=\"stuck\",version=\"1\",when=\"executing\"";
    server.metrics(&format!("trtserver_request_cancelled_total{{{labels}}}")).unwrap_or(0.0)
}

#[test]
fn client_that_closes_its_connection_cancels_its_request() {
    let pki = pki();
    let server = server(&pki).start();
    let waits = |server: &Running| server.log().matches("the probe waits to be cancelled").count();
    // Announced and not, also behind a pipelined request.
    for (number, (announced, pipelined)) in
        [(true, false), (false, false), (true, true), (false, true)].into_iter().enumerate()
    {
        let mut client = open(&server, &pki);
        let mut bytes = inference("stuck", "");
        if pipelined {
            bytes.extend(inference("echo", ""));
        }
        client.send(bytes).expect("a request");
        server.poll_until("it is executed", |server| waits(server) > number);
        client.finish(announced);
        drop(client);
        let what = format!("announced {announced}, pipelined {pipelined}");
        server.poll_until(&what, |server| cancelled(server) == (number + 1) as f64);
    }
    assert!(server.stop().success());
}

/// With `close_notify` a client has closed its sending side only; the probes of the server are no
/// responses.
#[test]
fn client_that_closes_its_sending_side_gets_its_response() {
    let (pki, latch) = (pki(), Latch::new());
    let (key, path) = latch.config();
    let server = server(&pki).model("held", probe("held", &[(key, &path)])).start();
    let mut client = open(&server, &pki);
    client.send(inference("held", "")).expect("a request");
    latch.wait_for(&server, 1);
    client.finish(true);
    // Several probes.
    std::thread::sleep(std::time::Duration::from_millis(300));
    latch.open();
    let response = client.response().expect("a response").expect("a response");
    assert_eq!(response.status, 200, "{}", response.error_text());
    assert!(server.stop().success());
}
