//! Restricted endpoints and header forwarding, over HTTP; over gRPC with the v2 client.

use trtserver_tests::control::explicit;
use trtserver_tests::http1::request;
use trtserver_tests::{Server, inference, probe, python_v2, trtserver};

/// Every group and an endpoint of it, v2 and v1.
const GROUPS: [(&str, &str, &str); 17] = [
    ("health", "GET", "/v2/health/live"),
    ("health", "GET", "/v2/models/echo/ready"),
    ("health", "GET", "/api/health/ready"),
    ("metadata", "GET", "/v2"),
    ("metadata", "GET", "/v2/models/echo"),
    ("metadata", "GET", "/api/status"),
    ("inference", "POST", "/v2/models/echo/infer"),
    ("inference", "POST", "/v2/models/echo/generate"),
    ("inference", "POST", "/api/infer/echo"),
    ("shared-memory", "GET", "/v2/systemsharedmemory/status"),
    ("shared-memory", "GET", "/api/sharedmemorycontrol/status"),
    ("model-config", "GET", "/v2/models/echo/config"),
    ("model-repository", "POST", "/v2/repository/index"),
    ("model-repository", "POST", "/api/modelcontrol/load/echo"),
    ("statistics", "GET", "/v2/models/stats"),
    ("trace", "GET", "/v2/trace/setting"),
    ("logging", "GET", "/v2/logging"),
];

#[test]
fn restricted_http_endpoints_need_their_header() {
    let mut groups: Vec<&str> = GROUPS.iter().map(|(group, ..)| *group).collect();
    groups.dedup();
    let server = groups.iter().fold(explicit(), |server, group| {
        server.flag(format!("--http-restricted-api={group}:key-{group}=secret of {group}"))
    });
    let server = server.model("echo", probe("echo", &[])).flag("--load-model=echo").start();
    for (group, method, path) in GROUPS {
        let (key, secret) = (format!("key-{group}"), format!("secret of {group}"));
        let send = |headers: &[(&str, &str)]| server.send(request(method, path, headers, b""));
        for headers in [&[][..], &[(key.as_str(), "secret")], &[("key-other", secret.as_str())]] {
            let refused = send(headers);
            assert_eq!(refused.status, 403, "{path} {headers:?}");
            let text = refused.error_text().replace("\\'", "'");
            assert!(
                text.contains(&format!("This API is restricted, expecting header '{key}'")),
                "{text}"
            );
        }
        if path == "/api/status" {
            // Shows metadata, configurations and statistics, so it needs all three.
            let shown = ["metadata", "model-config", "statistics"];
            let keys = shown.map(|group| (format!("key-{group}"), format!("secret of {group}")));
            let headers = keys.each_ref().map(|(key, value)| (key.as_str(), value.as_str()));
            assert_eq!(send(&headers[..2]).status, 403);
            assert_eq!(send(&headers).status, 200);
        } else {
            assert_ne!(send(&[(&key, &secret)]).status, 403, "{path}");
        }
    }
    // The body of a refused request is read, so the connection stays usable.
    let mut client = server.connect();
    let long = request("POST", "/v2/models/echo/infer", &[], &vec![b' '; 1 << 20]);
    assert_eq!(client.send(long).response().status, 403);
    let live = request("GET", "/v2/health/live", &[("KEY-health", "secret of health")], b"");
    assert_eq!(client.send(live).response().status, 200);
}

#[test]
fn restricted_rpcs_need_their_metadata() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag("--grpc-restricted-protocol=inference,logging:infer-key=infer-value")
        .flag("--grpc-restricted-protocol=health:admin-key=admin-value")
        .start();
    python_v2(&server, "v2_administration.py", &["-k", "Restricted"]);
    // HTTP has restrictions of its own.
    assert_eq!(server.infer("echo", "").status, 200);
}

#[test]
fn malformed_restrictions_refuse_the_start() {
    for (flag, text) in [
        (
            "--grpc-restricted-protocol=model-reposit:k=s3cret",
            "unknown restricted protocol 'model-reposit'",
        ),
        (
            "--http-restricted-api=health,health:k=s3cret",
            "restricted api 'health' can not be specified in multiple config groups",
        ),
        ("--http-restricted-api=health=s3cret", "Invalid format"),
        (
            "--http-header-forward-pattern=(a{1000}){1000}",
            "--http-header-forward-pattern: the pattern is not valid",
        ),
        (
            "--grpc-header-forward-pattern=(",
            "--grpc-header-forward-pattern: the pattern is not valid: unclosed group",
        ),
    ] {
        let ended = trtserver(["--model-store=/models", flag]);
        assert_eq!(ended.status.code(), Some(1));
        assert!(
            ended.stderr.contains(text) && !ended.stderr.contains("s3cret"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn matching_headers_become_parameters() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag("--http-header-forward-pattern=^(FAIL|timeout)$")
        .flag("--grpc-header-forward-pattern=^fail$")
        .start();
    let body = br#"{"parameters":{"fail":"from the body"},"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}"#;
    let infer =
        |headers: &[(&str, &str)]| server.post("/v2/models/echo/infer", headers, body).error_text();
    assert!(infer(&[("Fail-not", "x")]).contains("from the body"));
    let text = infer(&[("Fail", "from the header")]);
    assert!(text.contains("from the header") && !text.contains("from the body"), "{text}");
    let reserved = infer(&[("timeout", "1")]);
    assert_eq!(reserved, "Header 'timeout' is reserved for Triton usage and cannot be forwarded.");
    assert_eq!(server.send(inference("echo", "")).status, 200);
    python_v2(&server, "v2_administration.py", &["-k", "Forwarded"]);
}
