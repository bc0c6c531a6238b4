//! Log settings that change at run time, and the lines that tools of Triton look for.

use serde_json::json;
use trtserver_tests::{Connection, Server, Signal, http1::request, inference, probe, python_v2};

#[test]
fn settings_act_at_once() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let settings = |format: &str, info: bool, verbose: u32| {
        json!({"log_file": "", "log_info": info, "log_warning": true, "log_error": true,
               "log_verbose_level": verbose, "log_format": format})
    };
    assert_eq!(server.get("/v2/logging").json(), settings("default", true, 0));

    let change = |body: &str| server.post("/v2/logging", &[], body);
    let changed = change(r#"{"log_verbose_level": 2, "log_format": "ISO8601"}"#);
    assert_eq!((changed.status, changed.json()), (200, settings("ISO8601", true, 2)));
    server.get("/v2/models/echo");
    let log = server.wait_for_log("request: GET /v2/models/echo");
    let line = log.lines().find(|line| line.contains("request: GET /v2/models/echo")).unwrap();
    assert!(line.contains("Z I ") && line.ends_with("\"request: GET /v2/models/echo\""), "{line}");

    assert_eq!(change(r#"{"log_info": false, "log_verbose_level": 0}"#).status, 200);
    // The last line, written before the change.
    server.wait_for_log("request: POST /v2/logging");
    let lines = server.log().lines().count();
    server.get("/v2/models/echo");
    change(r#"{"log_info": false}"#);
    assert_eq!(server.log().lines().count(), lines);

    // A refused change changes nothing.
    let refused = change(r#"{"log_info": true, "log_format": "text"}"#);
    assert_eq!(
        (refused.status, refused.error_text().as_str()),
        (503, "invalid argument for --log_format, got: text")
    );
    let refused = change(r#"{"log_info": true, "log_file": "/tmp/x"}"#);
    let why = "log file location can not be updated through network protocol";
    assert_eq!((refused.status, refused.error_text().as_str()), (501, why));
    assert_eq!(server.get("/v2/logging").json(), settings("ISO8601", false, 0));
    python_v2(&server, "v2_administration.py", &["-k", "LogSettings"]);
}

#[test]
fn lines_that_tools_wait_for() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .file("echo/003/x", "")
        .file("echo/three/x", "")
        .flag("--log-verbose=1")
        .start();
    for (service, address) in [
        ("GRPCInferenceService", server.grpc()),
        ("GRPCService", server.grpc()),
        ("HTTPService", server.http()),
        ("Metrics Service", server.metrics_address()),
    ] {
        server.wait_for_log(&format!("Started {service} at {address}"));
    }
    server.wait_for_log(
        "ignore version directory '003' which contains leading zeros in its directory name",
    );
    server
        .wait_for_log("ignore version directory 'three' which fails to convert to integral number");

    let mut client = Connection::open(server.http());
    client.send(inference("echo", r#""until_cancelled":true"#));
    server.wait_for_log("the probe waits to be cancelled");
    drop(client);
    server.wait_for_log("Cancellation notification received for HTTP inference");

    // One request in flight delays the end.
    let mut client = Connection::open(server.http());
    client.send(inference("echo", r#""delay_ms":300,"say":"executing""#));
    server.wait_for_log("executing");
    server.signal(Signal::TERM);
    server.wait_for_log("Found 1 live models and 1 in-flight requests");
    assert_eq!(client.response().status, 200);
    assert!(server.wait().status.success());
}

#[test]
fn default_lines_quote_the_message() {
    let line_of = |server: Server| {
        let server = server.model("echo", probe("echo", &[])).flag("--log-verbose=2").start();
        server.send(request("GET", "/v2/a\"b", &[], b""));
        let log = server.wait_for_log("request: GET /v2/a");
        log.lines().find(|line| line.contains("request: GET /v2/a")).unwrap().to_owned()
    };
    let line = line_of(Server::new());
    assert!(line.ends_with("] \"request: GET /v2/a\\\"b\""), "{line}");
    let line = line_of(Server::new().env("TRITON_SERVER_ESCAPE_LOG_MESSAGES", "0"));
    assert!(line.ends_with("] request: GET /v2/a\"b"), "{line}");
}
