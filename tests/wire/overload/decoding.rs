//! Large JSON and typed tensors, in both directions: decoding and encoding them occupies no network
//! thread.

use super::{gzip, json_numbers, wide};
use std::time::{Duration, Instant};
use trtserver_tests::grpc::field;
use trtserver_tests::http1::request;
use trtserver_tests::http2::{Client, call_headers, message};
use trtserver_tests::{Connection, Running, Server};

const INFER: &str = "/v2/models/wide/infer";
/// Far more than a network thread needs on a busy machine, far less than decoding takes.
const MAX_DELAY: Duration = Duration::from_millis(400);

/// Asks for health on the HTTP port, the health port and over gRPC until `attack` has ended.
/// Returns the longest delays.
fn health_during(server: &Running, attack: impl FnOnce() + Send) -> [Duration; 3] {
    let mut slowest = [Duration::ZERO; 3];
    std::thread::scope(|scope| {
        let attack = scope.spawn(attack);
        let get = request("GET", "/v2/health/live", &[], b"");
        let mut ports = [server.http().to_owned(), server.listening("health")]
            .map(|address| Connection::open(&address));
        let mut grpc = Client::open(server.grpc());
        let mut asked = 0;
        while !attack.is_finished() || asked < 10 {
            for (port, slowest) in ports.iter_mut().zip(&mut slowest) {
                let begin = Instant::now();
                assert_eq!(port.send(&get).response().status, 200);
                *slowest = begin.elapsed().max(*slowest);
            }
            let begin = Instant::now();
            let call = grpc.call(&call_headers("/inference.GRPCInferenceService/ServerLive"));
            grpc.send(call, &message(b""), true);
            grpc.end(call);
            slowest[2] = begin.elapsed().max(slowest[2]);
            asked += 1;
        }
    });
    slowest
}

/// Other processes on the machine may delay the server, too, but not in each of several attempts.
#[track_caller]
fn assert_undelayed(server: &Running, attack: impl Fn() + Send + Sync) {
    let mut attempts = Vec::new();
    for _ in 0..3 {
        let delays = health_during(server, &attack);
        if delays.iter().all(|delay| *delay < MAX_DELAY) {
            return;
        }
        attempts.push(delays);
    }
    panic!("HTTP, health port, gRPC: {attempts:?}");
}

fn start() -> Running {
    Server::new().model("wide", wide()).flag("--http-health-port=0").start()
}

/// Sends the same request on several connections at once, and waits for all responses.
fn flood(server: &Running, count: usize, bytes: &[u8]) {
    let mut all: Vec<_> = (0..count).map(|_| server.connect()).collect();
    for connection in &mut all {
        connection.send(bytes);
    }
    for mut connection in all {
        let response = connection.response();
        assert_eq!(response.status, 200, "{}", response.text());
    }
}

#[test]
fn large_json_requests_do_not_delay_health() {
    let server = start();
    let body = gzip(&json_numbers(400_000));
    assert!(body.len() < 10_000, "{}", body.len());
    let bytes = request("POST", INFER, &[("Content-Encoding", "gzip")], &body);
    assert_undelayed(&server, || flood(&server, 8, &bytes));
}

#[test]
fn large_json_responses_do_not_delay_health() {
    let server = start();
    let count = 200_000;
    let head = format!(
        r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[{count}],"parameters":{{"binary_data_size":{}}}}}]}}"#,
        4 * count
    );
    let body = [head.as_bytes(), &1.5_f32.to_le_bytes().repeat(count)].concat();
    let length = head.len().to_string();
    let bytes = request("POST", INFER, &[("Inference-Header-Content-Length", &length)], &body);
    assert_undelayed(&server, || flood(&server, 8, &bytes));
}

#[test]
fn large_typed_tensors_do_not_delay_health() {
    let server = start();
    let count = 900_000;
    let contents = field(6, &0_f32.to_le_bytes().repeat(count));
    let mut shape = Vec::new();
    // Refused after the tensor was decoded: the client reads no large response.
    trtserver_proto_wire::put_varint(&mut shape, count as u64 + 1);
    let input =
        [field(1, b"INPUT0"), field(2, b"FP32"), field(3, &shape), field(5, &contents)].concat();
    let body = message(&[field(1, b"wide"), field(5, &input)].concat());
    let attack = || {
        let mut clients: Vec<_> = (0..10)
            .map(|_| {
                let mut client = Client::open_wide(server.grpc());
                let call = client.call(&call_headers("/inference.GRPCInferenceService/ModelInfer"));
                client.send(call, &body, true);
                (client, call)
            })
            .collect();
        for (client, call) in &mut clients {
            assert_eq!(client.end(*call).status, Some(3));
        }
    };
    assert_undelayed(&server, attack);
}
