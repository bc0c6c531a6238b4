//! Inline execution: network threads execute idle instances of fast models themselves. A model that
//! becomes slow blocks no other.

use trtserver_tests::grpc::{INFER, field, infer_v2};
use trtserver_tests::http2::{Client, End, call_headers, message};
use trtserver_tests::{ENDPOINTS, InferenceClient, Latch, Running, Server, http1, probe};

/// Requests of [`serve_fast`].
const FIRST: usize = 100;
const ROUNDS: usize = 30;
const TOGETHER: usize = 16;

/// Serves enough requests for the model to be executed inline.
fn serve_fast(server: &Running, model: &str) {
    for _ in 0..FIRST {
        assert_eq!(server.infer(model, "").status, 200);
    }
}

#[test]
fn fast_model_that_becomes_slow_blocks_no_other() {
    let instances = "\ninstance_group [ { count: 4 } ]";
    // One model for each round: slow-batch debt decays slowly.
    let models = ["slow0", "slow1", "slow2"];
    let server = Server::new().model("other", probe("other", &[]));
    let server = models
        .iter()
        .fold(server, |server, model| server.model(model, probe(model, &[]) + instances))
        .start();
    serve_fast(&server, "other");
    for (round, model) in models.into_iter().enumerate() {
        serve_fast(&server, model);
        let latch = Latch::new();
        std::thread::scope(|scope| {
            // More executions than there are network threads on a machine of few cores.
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(server.infer(model, &latch.parameter()).status, 200));
            }
            latch.wait_for(&server, 4 * (round + 1));
            for _ in 0..50 {
                assert_eq!(server.get("/v2/health/ready").status, 200);
                assert_eq!(server.infer("other", "").status, 200);
            }
            for endpoint in ENDPOINTS {
                assert!(InferenceClient::send(&server, endpoint, "other", [1.0, 2.0]).is_echoed());
            }
            latch.open();
        });
    }
    assert!(server.stop().success());
}

/// Calls that arrive in one packet with a call to a model that has become slow, before and behind
/// it.
#[test]
fn calls_read_together_do_not_wait_for_a_slow_one() {
    let server = Server::new()
        .model("slow", probe("slow", &[]))
        .model("other", probe("other", &[("detach", "true")]))
        .start();
    for _ in 0..5 {
        serve_fast(&server, "slow");
    }
    let latch = Latch::new();
    let live = call_headers("/inference.GRPCInferenceService/ServerLive");
    let infer = call_headers(INFER[0]);
    let parameter = [field(1, b"until_file"), field(2, &field(3, latch.path().as_bytes()))];
    let slow = [infer_v2("slow", [1.0, 2.0]), field(4, &parameter.concat())].concat();
    let (mut client, mut others, mut held) = (Client::open(server.grpc()), Vec::new(), 0);
    // Wait for the server's settings, so that all calls leave in one write.
    let first = client.call(&live);
    client.send(first, &message(b""), true);
    assert_eq!(client.end(first).status, Some(0));
    client.in_one_write(|client| {
        for at in 0..10 {
            let (headers, body) = match at {
                4 => (&infer, slow.clone()),
                2 | 6 => (&infer, infer_v2("other", [1.0, 2.0])),
                _ => (&live, Vec::new()),
            };
            let call = client.call(headers);
            client.send(call, &message(&body), true);
            if at == 4 { held = call } else { others.push(call) }
        }
    });
    let ended = client.ends(&others);
    assert!(!ended.contains_key(&held), "the slow call ended before its model");
    latch.open();
    assert_eq!(client.end(held).end, End::Responded);
    assert!(server.stop().success());
}

#[test]
fn concurrent_requests_all_get_responses() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1_250 {
                    assert_eq!(server.infer("echo", "").status, 200);
                }
            });
        }
    });
    let count = r#"nv_inference_request_success{model="echo",version="1"}"#;
    assert_eq!(server.metrics(count), Some(10_000.0));
    assert!(server.stop().success());
}

/// Requests of a batching model that a network thread reads in one turn share executions: calls of
/// one packet, and requests of many connections.
#[test]
fn requests_read_together_are_batched() {
    let batching = |name: &str| probe(name, &[("spin_us", "60")]) + "dynamic_batching { }\n";
    let models = ["calls", "connections"];
    let server =
        models.iter().fold(Server::new(), |server, name| server.model(name, batching(name)));
    let server = server.start();
    models.iter().for_each(|model| serve_fast(&server, model));

    let mut client = Client::open(server.grpc());
    let live = client.call(&call_headers("/inference.GRPCInferenceService/ServerLive"));
    client.send(live, &message(b""), true);
    assert_eq!(client.end(live).status, Some(0));
    for _ in 0..ROUNDS {
        let mut calls = Vec::new();
        client.in_one_write(|client| {
            for _ in 0..TOGETHER {
                let call = client.call(&call_headers(INFER[0]));
                client.send(call, &message(&infer_v2("calls", [1.0, 2.0])), true);
                calls.push(call);
            }
        });
        let ended = client.ends(&calls);
        assert!(calls.iter().all(|call| ended[call] > 0), "bytes of responses: {ended:?}");
    }
    let mut connections: Vec<_> = (0..TOGETHER).map(|_| server.connect()).collect();
    let body = br#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}"#;
    let request = http1::request("POST", "/v2/models/connections/infer", &[], body);
    for _ in 0..ROUNDS {
        for connection in &mut connections {
            connection.send(&request);
        }
        for connection in &mut connections {
            let response = connection.response();
            assert_eq!(response.status, 200, "{}", response.text());
        }
    }
    for (model, least) in models.into_iter().zip([2.0, 1.3]) {
        let value = |name: &str| {
            let value = server.metrics(&format!(r#"{name}{{model="{model}",version="1"}}"#));
            value.unwrap_or_default() - FIRST as f64
        };
        let (requests, executions) =
            (value("nv_inference_count"), value("nv_inference_exec_count"));
        assert_eq!(requests, (ROUNDS * TOGETHER) as f64);
        let rows = requests / executions;
        assert!(rows >= least, "{model}: {rows} rows an execution, expected {least}");
    }
    assert!(server.stop().success());
}
