//! The control listener, audit lines, and what the log says of listeners that are open.

use super::{AuthFile, call, send, server};
use trtserver_tests::control::explicit;
use trtserver_tests::grpc::{INFER, STREAM, field};
use trtserver_tests::http2::{Client, Ended, call_headers, message};
use trtserver_tests::{folder, probe};

const ADMIN: Option<&str> = Some("admin");

/// A gRPC call without a token.
fn call_at(address: &str, path: &str, contents: &[u8]) -> Ended {
    let mut client = Client::open(address);
    let call = client.call(&call_headers(path));
    client.send(call, &message(contents), true);
    client.end(call)
}

#[test]
fn control_is_served_at_its_own_listener_only() {
    let dir = folder();
    let socket = format!("unix:{}", dir.path().join("control").display());
    let running = explicit()
        .model("echo", probe("echo", &[]))
        .flag("--load-model=echo")
        .flag(format!("--control-address={socket}"))
        .flag("--control-grpc-address=127.0.0.1:0")
        .start();
    let grpc = running.listening("control-grpc");
    running.wait_for_log(&format!("Started gRPC control service at {grpc}"));
    assert_eq!(running.listening("control"), socket);
    running.wait_for_log(&format!("Started HTTP control service at {socket}"));
    for (method, path) in [
        ("POST", "/v2/repository/models/echo/load"),
        ("POST", "/v2/repository/index"),
        ("GET", "/v2/trtserver/loads"),
        ("GET", "/v2/trtserver/changes"),
        ("GET", "/v2/trtserver/log"),
        ("GET", "/v2/trtserver/requests"),
        ("GET", "/v2/systemsharedmemory/status"),
        ("GET", "/v2/logging"),
        ("POST", "/v2/logging"),
        ("GET", "/v2/trace/setting"),
        ("GET", "/v2/models/echo/trace/setting"),
        ("POST", "/api/modelcontrol/load/echo"),
        ("GET", "/api/repository/index"),
        ("GET", "/api/sharedmemorycontrol/status"),
    ] {
        let refused = send(running.http(), None, method, path, b"{}");
        assert_eq!(refused.status, 403, "{path}");
        let text = format!("{} {:?}", refused.text(), refused.header("nv-status"));
        assert!(text.contains("is not served at this listener"), "{path}: {text}");
        let served = send(&socket, None, method, path, b"{}");
        assert_eq!(served.status, 200, "{path}: {}", served.text());
    }
    for (service, method) in [
        ("inference.GRPCInferenceService", "RepositoryIndex"),
        ("inference.GRPCInferenceService", "LogSettings"),
        ("inference.GRPCInferenceService", "TraceSetting"),
        ("inference.GRPCInferenceService", "CudaSharedMemoryStatus"),
        ("nvidia.inferenceserver.GRPCService", "ModelControl"),
    ] {
        let refused = call(&running, None, &format!("/{service}/{method}"), b"");
        assert_eq!(refused.status, Some(7), "{method}");
        let served = call_at(&grpc, &format!("/{service}/{method}"), b"");
        assert_eq!(served.status, Some(0), "{method}");
    }
    let load = "/inference.GRPCInferenceService/RepositoryModelLoad";
    assert_eq!(call_at(&grpc, load, &field(2, b"echo")).status, Some(0));
    running.wait_for_log("audit: - from 127.0.0.1:");
    // Everything else but inference is served at both.
    assert_eq!(running.infer("echo", "").status, 200);
    for address in [running.http(), &socket] {
        for path in [
            "/v2/health/ready",
            "/v2/models",
            "/v2/models/echo",
            "/api/status",
            "/ui/main.js",
            "/v2/trtserver/status",
        ] {
            assert_eq!(send(address, None, "GET", path, b"").status, 200, "{path}");
        }
    }
    for path in ["/v2/models/echo/infer", "/api/infer/echo"] {
        assert_eq!(send(&socket, None, "POST", path, b"{}").status, 403, "{path}");
    }
    for address in [running.grpc(), &grpc] {
        for method in ["ServerLive", "ServerMetadata", "ModelStatistics"] {
            let path = format!("/inference.GRPCInferenceService/{method}");
            assert_eq!(call_at(address, &path, b"").status, Some(0), "{method}");
        }
    }
    for path in INFER.into_iter().chain(STREAM) {
        assert_eq!(call_at(&grpc, path, b"").status, Some(7), "{path}");
    }
    running.wait_for_log("audit: - from unix: load model 'echo': done");
    assert!(running.stop().success());
    assert!(!dir.path().join("control").exists());
}

#[test]
fn control_calls_leave_audit_lines() {
    let file = AuthFile::new("admin {admin} *\nreader {reader} read\n");
    let running = server(&file).start();
    let service = "/inference.GRPCInferenceService";
    let v1 = "/nvidia.inferenceserver.GRPCService";
    let load = |name: &str| [field(1, name.as_bytes()), vec![0x10, 1]].concat();
    let http = |name, path, body: &[u8]| {
        send(running.http(), name, "POST", path, body);
    };
    http(ADMIN, "/v2/repository/models/a-echo/load", b"");
    http(ADMIN, "/v2/repository/models/c%0Aaudit/load", b"");
    http(Some("reader"), "/v2/repository/models/a-echo/unload", b"");
    http(None, "/v2/repository/models/a-echo/unload", b"");
    http(ADMIN, "/api/modelcontrol/load/v1-none", b"");
    http(ADMIN, "/v2/logging", br#"{"log_verbose_level":0}"#);
    http(ADMIN, "/v2/systemsharedmemory/region/http/register", br#"{"key":"/none","byte_size":1}"#);
    http(ADMIN, "/api/sharedmemorycontrol/unregisterall", b"");
    let grpc = |path: String, contents: Vec<u8>| {
        call(&running, ADMIN, &path, &contents);
    };
    grpc(format!("{service}/RepositoryModelUnload"), field(2, b"b-none"));
    grpc(format!("{service}/RepositoryModelLoad"), field(2, b"g-none"));
    grpc(format!("{service}/SystemSharedMemoryUnregister"), field(1, b"grpc"));
    grpc(format!("{v1}/ModelControl"), load("w-none"));
    grpc(format!("{v1}/SharedMemoryControl"), field(2, &field(1, b"v1")));
    for parts in [
        ["audit: admin from 127.0.0.1:", ": load model 'a-echo': done"],
        ["audit: admin from 127.0.0.1:", ": load model 'c%0Aaudit': failed: failed to load"],
        [
            "audit: reader from 127.0.0.1:",
            ": unload model 'a-echo': refused: 'reader' may not do this: it lacks scope control:model-repository:a-echo",
        ],
        ["audit: - from 127.0.0.1:", ": unload model 'a-echo': refused: expected a token"],
        [
            "audit: admin from 127.0.0.1:",
            ": load model 'v1-none': failed: failed to load 'v1-none'",
        ],
        ["audit: admin from 127.0.0.1:", ": change log settings: done"],
        ["audit: admin from 127.0.0.1:", ": register shared memory 'http': failed: "],
        ["audit: admin from 127.0.0.1:", ": unregister shared memory: done"],
        ["audit: admin from 127.0.0.1:", ": unload model 'b-none': done"],
        ["audit: admin from 127.0.0.1:", ": load model 'g-none': failed: failed to load 'g-none'"],
        ["audit: admin from 127.0.0.1:", ": unregister shared memory 'grpc': done"],
        ["audit: admin from 127.0.0.1:", ": load model 'w-none': failed: failed to load 'w-none'"],
        ["audit: admin from 127.0.0.1:", ": unregister shared memory 'v1': done"],
    ] {
        running.wait_for_log_with(&parts);
    }
    // Reading leaves none.
    let lines = running.log().matches("audit: ").count();
    send(running.http(), ADMIN, "GET", "/v2/logging", b"");
    call(&running, ADMIN, &format!("{service}/LogSettings"), b"");
    assert_eq!(running.log().matches("audit: ").count(), lines);
}

#[test]
fn the_log_says_which_listeners_are_open() {
    let file = AuthFile::new("admin {admin} *\n");
    let open = "every machine that reaches it may load and unload models";
    let less = "every machine that reaches it may change log settings and shared memory";
    let all = "--http-address=0.0.0.0";
    let explicit_mode = "--model-control-mode=explicit";
    for (flags, text) in [
        (vec![all.to_owned()], Some(less)),
        (vec![all.to_owned(), explicit_mode.to_owned()], Some(open)),
        (vec![all.to_owned(), explicit_mode.to_owned(), file.flag()], None),
        (vec![explicit_mode.to_owned()], None),
        (
            vec![
                all.to_owned(),
                explicit_mode.to_owned(),
                "--control-address=127.0.0.1:0".to_owned(),
            ],
            None,
        ),
    ] {
        let server = trtserver_tests::Server::new().flag("--grpc-address=127.0.0.1");
        let running = flags.iter().fold(server, |server, flag| server.flag(flag)).start();
        let log = running.log();
        let is_plain = log.contains("HTTP listener at 0.0.0.0: without TLS, tokens can be read");
        assert_eq!(is_plain, flags.contains(&file.flag()), "{log}");
        match text {
            Some(text) => {
                let line = running.wait_for_log(text);
                assert!(line.contains("HTTP listener at 0.0.0.0"), "{line}");
                assert_eq!(line.starts_with('W'), text == open, "{line}");
            }
            None => assert!(!log.contains("every machine"), "{flags:?}: {log}"),
        }
    }
}
