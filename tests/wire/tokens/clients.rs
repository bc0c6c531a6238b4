//! Tokens of the public clients and of our own, and certificates in their place.

use super::{AuthFile, bearer, send, server};
use trtserver_client::blocking::v2::BlockingClient;
use trtserver_client::v2::{InferRequest, Input};
use trtserver_client::{Protocol, Settings};
use trtserver_tests::http1::request;
use trtserver_tests::python_v2;
use trtserver_tests::tls::{Authority, MountedSecret, TlsConnection, client_config};

const FILE: &str = "team-a {team-a} infer:*:a-*\nadmin {admin} *\n";

#[test]
fn tritonclient_sends_tokens_as_headers() {
    let file = AuthFile::new(FILE);
    let running = server(&file).start();
    python_v2(&running, "v2_tokens.py", &[]);
}

#[test]
fn our_client_sends_tokens_as_headers() {
    let file = AuthFile::new(FILE);
    let running = server(&file).start();
    for (address, protocol) in [(running.http(), Protocol::Http), (running.grpc(), Protocol::Grpc)]
    {
        let infer = |name: Option<&str>, model: &str| {
            let settings = Settings::new(address).protocol(protocol);
            let settings = match name {
                Some(name) => settings.header("authorization", bearer(name)),
                None => settings,
            };
            let input = Input::new("INPUT0", "FP32", [1, 2], &b"12345678"[..]);
            let request = InferRequest::new(model).input(input);
            BlockingClient::new(&settings)
                .and_then(|client| client.infer(&request))
                .map(|_| ())
                .map_err(|e| e.to_string())
        };
        assert_eq!(infer(Some("team-a"), "a-echo"), Ok(()));
        let refused = infer(Some("team-a"), "b-echo").unwrap_err();
        assert!(refused.contains("it lacks scope infer:inference:b-echo"), "{refused}");
        let refused = infer(None, "a-echo").unwrap_err();
        assert!(refused.contains("expected a token"), "{refused}");
    }
}

#[test]
fn certificates_stand_for_names() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let secret = MountedSecret::new(&servers.issue(1), &clients.pem());
    let file = AuthFile::new(
        "v1 dns:Legacy.Example,{v1} infer:*:a-*\nadmin {admin} *\nanonymous - read:health\n",
    );
    let mut running = server(&file).flag("--metrics-tls=off");
    for flag in secret.flags("tls-") {
        running = running.flag(flag);
    }
    let running = running.flag(secret.authority_flag("tls-client-ca")).start();
    let status = |names: &[&str], token: Option<&str>, path: &str| {
        let shown = clients.issue_for(names, 7, 2040);
        let config = client_config(&servers, Some(&shown), &["http/1.1"]);
        let token = token.map(bearer);
        let headers: Vec<_> = token.iter().map(|token| ("Authorization", token.as_str())).collect();
        let mut connection = TlsConnection::open(running.http(), &config).unwrap();
        connection.call(request("POST", path, &headers, b"{}")).unwrap().status
    };
    let (a, b) = ("/api/infer/a-echo", "/api/infer/b-echo");
    // 400: the request reached the model, and is empty.
    assert_eq!(status(&["legacy.example"], None, a), 400);
    assert_eq!(status(&["other", "LEGACY.example"], None, a), 400);
    assert_eq!(status(&["legacy.example"], None, b), 403);
    assert_eq!(status(&["other.example"], None, a), 401);
    // A token counts for more than the certificate.
    assert_eq!(status(&["legacy.example"], Some("admin"), b), 400);
    assert_eq!(status(&["legacy.example"], Some("wrong"), a), 401);
    assert_eq!(status(&["other.example"], Some("v1"), a), 400);
    // Health needs neither.
    assert_eq!(send(running.metrics_address(), None, "GET", "/metrics", b"").status, 401);
}
