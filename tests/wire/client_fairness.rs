//! Clients of one model are served in turn: the backlog of one does not delay another.

use std::fs;
use trtserver_tests::grpc::{INFER, STREAM, field, infer_v2};
use trtserver_tests::http1::{Connection, request};
use trtserver_tests::http2::{Client, call_headers, message};
use trtserver_tests::{Latch, Running, Server, folder, probe};

/// A request over gRPC whose execution is logged as `logged 0 NAME`.
fn logged_v2(name: &str) -> Vec<u8> {
    let text = |key: &str, value: Vec<u8>| {
        field(4, &[field(1, key.as_bytes()), field(2, &value)].concat())
    };
    // `int64_param` of 1, and `string_param`.
    let lines = text("log_lines", vec![0x10, 1]);
    [infer_v2("m", [1.0, 2.0]), lines, text("log_text", field(3, name.as_bytes()))].concat()
}

/// The same over HTTP.
fn logged_http(name: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let body = format!(
        r#"{{"parameters":{{"log_lines":1,"log_text":"{name}"}},"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}}]}}"#
    );
    request("POST", "/v2/models/m/infer", headers, body.as_bytes())
}

fn waiting(server: &Running, client: &str) -> Option<f64> {
    server.metrics(&format!("trtserver_client_waiting_requests{{client=\"{client}\"}}"))
}

/// Sends a backlog of `busy` on a stream while the model is held, then one request of `rare` on each
/// wire. `heads`: what tells the two apart.
fn check(server: &Running, latch: &Latch, heads: [&[(&str, &str)]; 2]) {
    let [busy, rare] = heads;
    std::thread::scope(|scope| {
        let held = format!(
            r#"{{"parameters":{{{}}},"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}}]}}"#,
            latch.parameter()
        );
        scope.spawn(|| assert_eq!(server.post("/v2/models/m/infer", busy, held).status, 200));
        latch.wait_for(server, 1);
        let mut stream = Client::open_wide(server.grpc());
        let call = stream.call(&[call_headers(STREAM[0]), busy.to_vec()].concat());
        stream.send(call, &message(&logged_v2("busy")).repeat(300), false);
        server.poll_until("the backlog waits", |server| waiting(server, "busy") == Some(300.0));
        let mut http = Connection::open(server.http());
        http.send(logged_http("rare", rare));
        server.poll_until("it waits", |server| waiting(server, "rare") == Some(1.0));
        let mut grpc = Client::open(server.grpc());
        let unary = grpc.call(&[call_headers(INFER[0]), rare.to_vec()].concat());
        grpc.send(unary, &message(&logged_v2("rare")), true);
        server.poll_until("both wait", |server| waiting(server, "rare") == Some(2.0));
        latch.open();
        assert_eq!(http.response().status, 200);
        assert_eq!(grpc.end(unary).status, Some(0));
        server.poll_until("all are executed", |server| server.logged_names().len() == 302);
        drop(stream);
    });
    let order = server.logged_names();
    let places: Vec<_> = (0..order.len()).filter(|place| order[*place] == "rare").collect();
    assert!(places.len() == 2 && places[0] <= 2 && places[1] <= 4, "{places:?}");
    server.poll_until("no request waits", |server| {
        waiting(server, "busy") == Some(0.0) && waiting(server, "rare") == Some(0.0)
    });
    let requests = "trtserver_client_requests_total{client=\"busy\"}";
    assert_eq!(server.metrics(requests), Some(301.0));
}

/// Executes one request at a time.
fn alone() -> String {
    probe("m", &[]).replace("max_batch_size: 8", "max_batch_size: 1")
}

#[test]
fn header_tells_clients_apart() {
    let latch = Latch::new();
    let server = Server::new().flag("--fairness-header=X-Client").model("m", alone()).start();
    check(&server, &latch, [&[("x-client", "busy")], &[("x-client", "rare")]]);
    // Without the header all are one client.
    assert_eq!(server.infer("m", "").status, 200);
    let unnamed = "trtserver_client_requests_total{client=\"(unnamed)\"}";
    assert_eq!(server.metrics(unnamed), Some(1.0));
    assert!(server.stop().success());
}

#[test]
fn names_of_tokens_tell_clients_apart() {
    let folder = folder();
    let file = folder.path().join("auth");
    // The SHA-256 of `b` and `r`.
    let lines = "busy sha256:3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d infer\n\
                 rare sha256:454349e422f05297191ead13e21d3db520e5abef52055e4964b82fb213f593a1 infer\n\
                 anonymous - read\n";
    fs::write(&file, lines).unwrap();
    let latch = Latch::new();
    let server = Server::new()
        .flag(format!("--auth-file={}", file.display()))
        .flag("--fairness-names")
        .model("m", alone())
        .start();
    let heads: [&[(&str, &str)]; 2] =
        [&[("authorization", "Bearer b")], &[("authorization", "Bearer r")]];
    check(&server, &latch, heads);
    assert!(server.stop().success());
}

/// Clients that invent names do not fill the metrics page, and every series is there once.
#[test]
fn metrics_have_a_bounded_number_of_clients() {
    let server = Server::new()
        .flag("--fairness-header=x-client")
        .flag("--fairness-weight=heavy:2")
        .model("m", probe("m", &[]))
        .start();
    let body = br#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1],"data":[1]}]}"#;
    let invented: Vec<_> = (0..70).map(|i| format!("client \"{i}\"")).collect();
    let chosen = ["heavy", "(others)", "(unnamed)"].map(str::to_owned);
    let mut connection = server.connect();
    for name in invented.iter().chain(&chosen) {
        let headers = [("x-client", name.as_str())];
        connection.send(request("POST", "/v2/models/m/infer", &headers, body));
        assert_eq!(connection.response().status, 200);
    }
    assert_eq!(server.infer("m", "").status, 200);
    server.poll_until("no request waits", |server| waiting(server, "(unnamed)") == Some(0.0));
    let page = server.metrics_text();
    for family in ["requests_total", "queue_seconds_total", "waiting_requests"] {
        let family = format!("trtserver_client_{family}{{");
        let lines = page.lines().filter(|line| line.starts_with(&family));
        let mut series: Vec<_> = lines.filter_map(|line| line.rsplit_once(' ')).collect();
        series.sort_unstable();
        series.dedup_by_key(|(labels, _)| *labels);
        // 64 of the invented names, the one with a weight, and two for all others.
        assert_eq!(series.len(), 67, "{series:?}");
        let all = page.lines().filter(|line| line.starts_with(&family)).count();
        assert_eq!(all, 67, "a series is there twice: {page}");
    }
    for (client, requests) in [
        (r#"client \"63\""#, Some(1.0)),
        (r#"client \"64\""#, None),
        ("heavy", Some(1.0)),
        ("(others)", Some(7.0)),
        ("(unnamed)", Some(2.0)),
    ] {
        let sample = format!("trtserver_client_requests_total{{client=\"{client}\"}}");
        assert_eq!(server.metrics(&sample), requests, "{sample}");
    }
    assert!(server.stop().success());
}
