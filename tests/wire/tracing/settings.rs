//! Trace settings: read, changed, cleared and refused; flags of the start.

use super::file_flag;
use serde_json::{Value, json};
use trtserver_tests::{Server, folder, probe, python_v2};

const SERVER: &str = "/v2/trace/setting";
const A: &str = "/v2/models/a/trace/setting";
const B: &str = "/v2/models/b/trace/setting";

#[test]
fn models_follow_the_server_until_they_have_values_of_their_own() {
    let folder = folder();
    let file = folder.path().join("trace.json");
    let server = Server::new()
        .model("a", probe("a", &[]))
        .model("b", probe("b", &[]))
        .flag(file_flag(&file))
        .flag("--trace-config=rate=9")
        .start();
    let settings = |level: &[&str], rate: &str, count: &str, frequency: &str| -> Value {
        json!({
            "trace_level": level, "trace_rate": rate, "trace_count": count, "log_frequency": frequency,
            "trace_file": file.display().to_string(), "trace_mode": "triton"
        })
    };
    let start = settings(&["OFF"], "9", "-1", "0");
    let both = ["TIMESTAMPS", "TENSORS"];
    // Where the change goes, the change, and what server, a and b show afterwards.
    let table = [
        (SERVER, "{}", [start.clone(), start.clone(), start.clone()]),
        (
            A,
            r#"{"trace_level":["TENSORS","TIMESTAMPS"],"trace_count":5}"#,
            [start.clone(), settings(&both, "9", "5", "0"), start.clone()],
        ),
        (
            SERVER,
            r#"{"trace_rate":"7","log_frequency":"3"}"#,
            [
                settings(&["OFF"], "7", "-1", "3"),
                settings(&both, "7", "5", "3"),
                settings(&["OFF"], "7", "-1", "3"),
            ],
        ),
        (
            A,
            r#"{"trace_level":null,"trace_file":null}"#,
            [
                settings(&["OFF"], "7", "-1", "3"),
                settings(&["OFF"], "7", "5", "3"),
                settings(&["OFF"], "7", "-1", "3"),
            ],
        ),
        (
            SERVER,
            r#"{"trace_rate":null,"log_frequency":null,"trace_mode":"x","unknown":"y"}"#,
            [start.clone(), settings(&["OFF"], "9", "5", "0"), start.clone()],
        ),
        (A, r#"{"trace_count":null}"#, [start.clone(), start.clone(), start]),
    ];
    for (path, change, expected) in table {
        assert_eq!(server.post(path, &[], change).status, 200, "{path} {change}");
        let shown = [SERVER, A, B].map(|path| server.get(path).json());
        assert_eq!(shown, expected, "{path} {change}");
    }
    let order = server.get(SERVER).text();
    let mut keys = order.split('"').filter(|part| part.contains('_'));
    let first: Vec<_> = keys.by_ref().take(3).collect();
    assert_eq!(first, ["trace_level", "trace_rate", "trace_count"], "{order}");
    python_v2(&server, "v2_trace.py", &[]);
    assert!(server.stop().success());
}

#[test]
fn changes_that_make_no_sense_are_refused() {
    let server = Server::new().model("a", probe("a", &[])).start();
    for (change, status, text) in [
        (
            r#"{"trace_level":["OFF","TENSORS"]}"#,
            400,
            "Expect only one trace level 'OFF' is specified",
        ),
        (r#"{"trace_rate":"x"}"#, 400, "Unable to parse 'trace_rate', got: x"),
        (r#"{"log_frequency":"-1"}"#, 400, "Unable to parse 'log_frequency', got: -1"),
        (
            r#"{"trace_count":"-2"}"#,
            400,
            "Unable to parse 'trace_count'. Expecting value >= -1, got:-2",
        ),
        (
            r#"{"trace_file":"/x"}"#,
            501,
            "trace file location can not be updated through network protocol",
        ),
        (
            r#"{"trace_level":["TIMESTAMPS"]}"#,
            400,
            "Attempting to set invalid trace setting :trace file name is not given",
        ),
    ] {
        for path in [SERVER, A] {
            let before = server.get(path).text();
            let response = server.post(path, &[], change);
            assert_eq!((response.status, &*response.error_text()), (status, text), "{change}");
            assert_eq!(server.get(path).text(), before, "{path} {change}");
        }
    }
    let unknown = server.post("/v2/models/absent/trace/setting", &[], r#"{"trace_rate":"1"}"#);
    assert_eq!(unknown.status, 400);
    assert_eq!(unknown.error_text(), "Request for unknown model : absent");
    assert!(server.stop().success());

    let server = Server::new()
        .model("a", probe("a", &[]))
        .flag("--trace-config=mode=opentelemetry")
        .flag("--trace-config=opentelemetry,url=http://127.0.0.1:9/v1/traces")
        .start();
    let shown = server.get(A).json();
    assert_eq!(shown["trace_mode"], "opentelemetry");
    assert_eq!(shown["url"], "http://127.0.0.1:9/v1/traces");
    assert!(shown.get("trace_file").is_none(), "{shown}");
    let response = server.post(A, &[], r#"{"trace_rate":"1"}"#);
    assert_eq!(response.status, 501, "{}", response.text());
    assert!(server.stop().success());
}

#[test]
fn older_flags_are_settings_with_a_warning() {
    let folder = folder();
    let file = folder.path().join("trace.json");
    let server = Server::new()
        .model("a", probe("a", &[]))
        .flag(format!("--trace-file={}", file.display()))
        .flag("--trace-level=MIN")
        .flag("--trace-rate=3")
        .flag("--trace-count=5")
        .flag("--trace-log-frequency=2")
        .start();
    let expected = json!({
        "trace_level": ["TIMESTAMPS"], "trace_rate": "3", "trace_count": "5", "log_frequency": "2",
        "trace_file": file.display().to_string(), "trace_mode": "triton"
    });
    assert_eq!(server.get(SERVER).json(), expected);
    let log = server.log();
    for flag in ["trace-file", "trace-level", "trace-rate", "trace-count", "trace-log-frequency"] {
        let warned = log.lines().any(|line| {
            line.contains(&format!("--{flag}=")) && line.contains("deprecated, use --trace-config=")
        });
        assert!(warned, "{flag}: {log}");
    }
    assert!(server.stop().success());

    let refused = Server::new().flag("--trace-config=rate=many").refuses_to_start();
    assert!(refused.stderr.contains("--trace-config=rate=many: expected"), "{refused:?}");
}
