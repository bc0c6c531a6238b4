//! Token × API × wire, as one table.

use super::{AuthFile, bearer, call, metric, send, server};
use trtserver_tests::Running;
use trtserver_tests::grpc::{INFER, STREAM, field, infer_v1, infer_v2};
use trtserver_tests::http2::{self, Client, message};

const FILE: &str = "
anonymous - read:health
reader {reader} read
team-a {team-a} infer,read:inference,metadata,health:a-*
deploy {deploy} control:model-repository:a-*
admin {admin} *
";

const NAMES: [&str; 6] = ["", "wrong", "reader", "team-a", "deploy", "admin"];

const EVERYBODY: &str = "anonymous reader team-a deploy admin";

/// An endpoint, and who may call it.
struct Row {
    call: Call,
    allowed: &'static str,
}

enum Call {
    Http(&'static str, &'static str, &'static [u8]),
    Metrics(&'static str),
    Rpc(String, Vec<u8>),
}

fn http(method: &'static str, path: &'static str, allowed: &'static str) -> Row {
    Row { call: Call::Http(method, path, b"{}"), allowed }
}

/// Of v2.
fn rpc(method: &str, contents: Vec<u8>, allowed: &'static str) -> Row {
    let path = format!("/inference.GRPCInferenceService/{method}");
    Row { call: Call::Rpc(path, contents), allowed }
}

/// Of v1.
fn rpc_v1(method: &str, contents: Vec<u8>, allowed: &'static str) -> Row {
    let path = format!("/nvidia.inferenceserver.GRPCService/{method}");
    Row { call: Call::Rpc(path, contents), allowed }
}

fn infer(path: &str, contents: Vec<u8>, allowed: &'static str) -> Row {
    Row { call: Call::Rpc(path.to_owned(), contents), allowed }
}

fn health_and_metadata() -> Vec<Row> {
    let (a, b) = (|| field(1, b"a-echo"), || field(1, b"b-echo"));
    vec![
        http("GET", "/v2/health/live", EVERYBODY),
        http("GET", "/v2/models/b-echo/ready", EVERYBODY),
        http("GET", "/v2/trtserver/health", EVERYBODY),
        http("GET", "/api/health/ready", EVERYBODY),
        rpc("ServerLive", Vec::new(), EVERYBODY),
        rpc("ModelReady", b(), EVERYBODY),
        rpc_v1("Health", field(1, b"live"), EVERYBODY),
        infer("/grpc.health.v1.Health/Check", Vec::new(), EVERYBODY),
        http("GET", "/v2", "reader team-a admin"),
        http("GET", "/v2/trtserver/backends", "reader team-a admin"),
        http("GET", "/v2/models", "reader admin"),
        http("GET", "/v2/models/a-echo", "reader team-a admin"),
        http("GET", "/v2/models/b-echo/versions/1", "reader admin"),
        http("GET", "/api/status", "reader admin"),
        http("GET", "/api/status/a-echo", "reader admin"),
        rpc("ServerMetadata", Vec::new(), "reader team-a admin"),
        rpc("ModelMetadata", a(), "reader team-a admin"),
        rpc("ModelMetadata", b(), "reader admin"),
        // The last name of a message is the one that counts.
        rpc("ModelMetadata", [a(), b()].concat(), "reader admin"),
        rpc_v1("Status", a(), "reader admin"),
        rpc_v1("Status", Vec::new(), "reader admin"),
        http("GET", "/v2/models/a-echo/config", "reader admin"),
        rpc("ModelConfig", a(), "reader admin"),
        http("GET", "/v2/models/a-echo/stats", "reader admin"),
        http("GET", "/v2/models/stats", "reader admin"),
        http("GET", "/v2/trtserver/memory", "reader admin"),
        http("GET", "/v2/trtserver/status", "reader admin"),
        http("GET", "/v2/trtserver/models/a-echo/configuration", "reader admin"),
        rpc("ModelStatistics", Vec::new(), "reader admin"),
        Row { call: Call::Metrics("/metrics"), allowed: "reader admin" },
    ]
}

fn inference() -> Vec<Row> {
    let both = |model| [infer_v2(model, [1.0, 2.0]), infer_v1(model, [1.0, 2.0])];
    let ([a2, a1], [b2, b1], [pair2, pair1]) = (both("a-echo"), both("b-echo"), both("a-pair"));
    let named_later = [field(1, b"a-echo"), b2.clone()].concat();
    vec![
        http("POST", "/v2/models/a-echo/infer", "team-a admin"),
        http("POST", "/v2/models/b-echo/infer", "admin"),
        http("POST", "/v2/models/b-echo/generate", "admin"),
        http("POST", "/v2/models/b-echo/generate_stream", "admin"),
        http("POST", "/v2/models/unknown/infer", "admin"),
        http("POST", "/api/infer/a-echo", "team-a admin"),
        http("POST", "/api/infer/b-echo", "admin"),
        infer(INFER[0], a2.clone(), "team-a admin"),
        infer(INFER[0], b2.clone(), "admin"),
        infer(INFER[0], named_later, "admin"),
        infer(INFER[1], a1.clone(), "team-a admin"),
        infer(INFER[1], b1.clone(), "admin"),
        // An ensemble's name covers its steps.
        http("POST", "/v2/models/a-pair/infer", "team-a admin"),
        infer(INFER[0], pair2, "team-a admin"),
        infer(INFER[1], pair1, "team-a admin"),
        // Refusals of single requests are in the stream, see below.
        infer(STREAM[0], a2, "team-a admin"),
        infer(STREAM[1], a1, "team-a admin"),
        infer("/nvidia.inferenceserver.GRPCService/InferStream", Vec::new(), "team-a admin"),
    ]
}

fn control() -> Vec<Row> {
    let model = |name: &str| field(2, name.as_bytes());
    // v1: a name, and LOAD.
    let load_v1 = |name: &str| [field(1, name.as_bytes()), vec![0x10, 1]].concat();
    // A map of one setting.
    let setting = |name: &str| field(1, &field(1, name.as_bytes()));
    vec![
        http("POST", "/v2/repository/index", "reader admin"),
        http("GET", "/v2/trtserver/loads", "reader admin"),
        http("GET", "/v2/trtserver/changes", "reader admin"),
        http("GET", "/v2/trtserver/log", "reader admin"),
        http("GET", "/api/repository/index", "reader admin"),
        rpc("RepositoryIndex", Vec::new(), "reader admin"),
        rpc_v1("Repository", field(1, b""), "reader admin"),
        http("POST", "/v2/repository/models/a-echo/load", "deploy admin"),
        http("POST", "/v2/repository/models/b-echo/load", "admin"),
        http("POST", "/v2/repository/models/nothing/unload", "admin"),
        http("POST", "/api/modelcontrol/load/a-echo", "deploy admin"),
        http("POST", "/api/modelcontrol/load/b-echo", "admin"),
        rpc("RepositoryModelLoad", model("a-echo"), "deploy admin"),
        rpc("RepositoryModelLoad", model("b-echo"), "admin"),
        rpc("RepositoryModelUnload", model("nothing"), "admin"),
        rpc_v1("ModelControl", load_v1("a-echo"), "deploy admin"),
        rpc_v1("ModelControl", load_v1("b-echo"), "admin"),
        http("GET", "/v2/systemsharedmemory/status", "reader admin"),
        http("POST", "/v2/systemsharedmemory/region/r/register", "admin"),
        http("POST", "/v2/systemsharedmemory/unregister", "admin"),
        http("GET", "/api/sharedmemorycontrol/status", "reader admin"),
        http("POST", "/api/sharedmemorycontrol/unregisterall", "admin"),
        rpc("SystemSharedMemoryStatus", Vec::new(), "reader admin"),
        rpc("SystemSharedMemoryUnregister", Vec::new(), "admin"),
        rpc("CudaSharedMemoryRegister", field(1, b"r"), "admin"),
        rpc_v1("SharedMemoryControl", field(4, b""), "reader admin"),
        rpc_v1("SharedMemoryControl", field(3, b""), "admin"),
        http("GET", "/v2/logging", "reader admin"),
        http("POST", "/v2/logging", "admin"),
        rpc("LogSettings", Vec::new(), "reader admin"),
        rpc("LogSettings", setting("log_info"), "admin"),
        http("GET", "/v2/trace/setting", "reader admin"),
        http("POST", "/v2/models/a-echo/trace/setting", "admin"),
        http("GET", "/api/profile", "admin"),
        rpc("TraceSetting", model("a-echo"), "reader admin"),
        rpc("TraceSetting", setting("trace_rate"), "admin"),
        rpc_v1("Profile", Vec::new(), "admin"),
        rpc("Unknown", Vec::new(), "admin"),
    ]
}

#[test]
fn every_token_may_do_what_its_scopes_say_on_every_wire() {
    let file = AuthFile::new(FILE);
    let running = server(&file).start();
    let mut refusals = [0.0; 3];
    for row in [health_and_metadata(), inference(), control()].concat_rows() {
        for name in NAMES {
            let known = if name.is_empty() { "anonymous" } else { name };
            let allowed = row.allowed.split(' ').any(|allowed| allowed == known);
            let expected = match known {
                _ if allowed => None,
                "anonymous" => Some(RefusedCall::NoToken),
                "wrong" => Some(RefusedCall::UnknownToken),
                _ => Some(RefusedCall::Scope),
            };
            let found = refusal(&running, &row.call, (!name.is_empty()).then_some(name));
            assert_eq!(found, expected, "{} for {known}\n{}", row.call.text(), running.log());
            if let Some(expected) = expected {
                refusals[expected as usize] += 1.0;
            }
        }
    }
    for (reason, count) in ["no_token", "unknown_token", "scope"].into_iter().zip(refusals) {
        let sample = format!("trtserver_access_refusals_total{{reason=\"{reason}\"}}");
        assert_eq!(metric(&running, &sample), count, "{reason}");
    }
    // A request of a stream is refused by itself; the stream goes on.
    for (path, contents, text) in [
        (STREAM[0], infer_v2("b-echo", [1.0, 2.0]), "it lacks scope infer:inference:b-echo"),
        (STREAM[1], infer_v1("b-echo", [1.0, 2.0]), "it lacks scope infer:inference:b-echo"),
    ] {
        let ended = call(&running, Some("team-a"), path, &contents);
        let body = String::from_utf8_lossy(&ended.body).into_owned();
        assert!(ended.status == Some(0) && body.contains(text), "{path}: {ended:?} {body}");
    }
    // What is not a gRPC call is not served, so its message needs no check.
    let path = "/inference.GRPCInferenceService/RepositoryModelLoad";
    let mut headers = http2::call_headers(path);
    headers.retain(|(name, _)| *name != "content-type");
    let token = bearer("deploy");
    headers.extend([("content-type", "text/plain"), ("authorization", &token)]);
    let mut client = Client::open(running.grpc());
    let call = client.call(&headers);
    client.send(call, &message(&field(2, b"b-echo")), true);
    assert_eq!(client.end(call).status, None);
    let by_deploy = |line: &&str| line.contains("audit: deploy") && line.contains("'b-echo': done");
    assert!(!running.log().lines().any(|line| by_deploy(&line)), "{}", running.log());
    // No token is in the log, also not in refusals.
    assert!(!running.log().contains("-token"), "{}", running.log());
    assert!(running.stop().success());
}

trait ConcatRows {
    fn concat_rows(self) -> Vec<Row>;
}

impl<const N: usize> ConcatRows for [Vec<Row>; N] {
    fn concat_rows(self) -> Vec<Row> {
        self.into_iter().flatten().collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RefusedCall {
    NoToken,
    UnknownToken,
    Scope,
}

/// How a call was refused by the access check; `None` if it was not, whatever became of it.
fn refusal(server: &Running, call: &Call, name: Option<&str>) -> Option<RefusedCall> {
    let (address, method, path, body) = match call {
        Call::Http(method, path, body) => (server.http(), *method, *path, *body),
        Call::Metrics(path) => (server.metrics_address(), "GET", *path, &b""[..]),
        Call::Rpc(path, contents) => {
            let ended = super::call(server, name, path, contents);
            return match (ended.status, name) {
                (Some(16), None) => Some(RefusedCall::NoToken),
                (Some(16), Some(_)) => Some(RefusedCall::UnknownToken),
                (Some(7), _) => Some(RefusedCall::Scope),
                (Some(_), _) => None,
                (None, _) => panic!("{path}: {ended:?}"),
            };
        }
    };
    let response = send(address, name, method, path, body);
    let challenge = response.header("www-authenticate");
    match response.status {
        401 if name.is_none() => {
            assert_eq!(challenge, Some("Bearer realm=\"trtserver\""));
            Some(RefusedCall::NoToken)
        }
        401 => {
            let expected = "Bearer realm=\"trtserver\", error=\"invalid_token\"";
            assert_eq!(challenge, Some(expected));
            Some(RefusedCall::UnknownToken)
        }
        403 => Some(RefusedCall::Scope),
        _ => None,
    }
}

impl Call {
    fn text(&self) -> String {
        match self {
            Self::Http(method, path, _) => format!("{method} {path}"),
            Self::Metrics(path) => format!("{path} of the metrics listener"),
            Self::Rpc(path, contents) => format!("{path} {contents:?}"),
        }
    }
}
