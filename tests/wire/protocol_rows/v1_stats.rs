//! docs/protocol/v1.md §9: what the status counts, and under which key. Each test has a server of
//! its own.

use trtserver_tests::http1::request;
use trtserver_tests::scheduled::{NEVER, accumulator, correlation, flag, sequences};
use trtserver_tests::{Running, Server, probe};

/// The number behind `count:` in the first block of this name, 0 without one.
fn count(status: &str, block: &str) -> u64 {
    let Some((_, rest)) = status.split_once(&format!("{block} {{")) else { return 0 };
    let number = rest.split_once("count: ").map(|(_, rest)| rest.lines().next().unwrap_or(""));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

fn infer(server: &Running, path: &str, header: &str, bytes: usize) -> u16 {
    let headers = [("NV-InferRequest", header)];
    server.post(&format!("/api/infer/{path}"), &headers, vec![0; bytes]).status
}

/// Every call of a handler is counted, refused ones and wrong methods too; ids increase by one.
#[test]
fn endpoints_count_their_calls() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let before = server.get("/api/status").text();
    for (method, path) in [
        ("GET", "/api/status/absent"),
        ("POST", "/api/status"),
        ("GET", "/api/health"),
        ("DELETE", "/api/health/live"),
        ("GET", "/api/profile?cmd=start"),
        ("PUT", "/api/profile"),
        ("POST", "/api/modelcontrol/load/echo"),
        ("GET", "/api/sharedmemorycontrol/status"),
        ("GET", "/api/repository/index"),
    ] {
        server.send(request(method, path, &[], b""));
    }
    let after = server.get("/api/status").text();
    for (block, calls) in [
        ("status_stats", 3), // the call before shows itself only now
        ("health_stats", 2),
        ("profile_stats", 2),
        ("model_control_stats", 1),
        ("shm_control_stats", 1),
        ("repository_stats", 1),
    ] {
        assert_eq!(count(&after, block) - count(&before, block), calls, "{block}: {after}");
    }
    let id = |path: &str| -> u64 {
        let response = server.get(path);
        let status = response.header("nv-status").unwrap_or_default();
        status.rsplit_once("request_id: ").and_then(|(_, id)| id.parse().ok()).unwrap_or_default()
    };
    let first = id("/api/status");
    assert_eq!((id("/api/health/live"), id("/api/status/echo")), (first + 1, first + 2));
    assert!(server.stop().success());
}

/// Failures count under the batch size of the request, under 0 before it is known, and have no
/// other counters.
#[test]
fn failures_are_attributed() {
    let failing = probe("echo", &[("fail_in", "")]);
    let server = Server::new().model("echo", failing).start();
    let two = r#"batch_size: 2 input { name: "INPUT0" dims: 2 } output { name: "OUTPUT0" }"#;
    assert_eq!(infer(&server, "echo", two, 16), 200);
    assert_eq!(infer(&server, "echo", two, 15), 400);
    assert_eq!(infer(&server, "echo", "garbage", 8), 400);
    assert_eq!(infer(&server, "echo/9", two, 16), 400);
    let status = server.get("/api/status/echo").text();
    let of = |batch: u32| {
        let key = format!("key: {batch}\n");
        let blocks = status.split("infer_stats {").skip(1);
        blocks.map(str::to_owned).find(|block| block.contains(&key)).unwrap_or_default()
    };
    assert_eq!((count(&of(2), "success"), count(&of(2), "failed")), (1, 1), "{status}");
    assert_eq!((count(&of(0), "success"), count(&of(0), "failed")), (0, 1), "{status}");
    assert!(status.contains("model_inference_count: 2\n"), "{status}");
    assert!(status.contains("model_execution_count: 1\n"), "{status}");
    assert!(status.contains("last_inference_timestamp_milliseconds: 1"), "{status}");
    // Unlike base, a version that is not served gets no entry.
    assert!(!status.contains("key: 9\n"), "{status}");
    assert_eq!(server.get("/api/health/ready").status, 200);
    assert!(server.stop().success());
}

/// Null requests that fill the slots of other sequences count nowhere.
#[test]
fn null_requests_are_not_counted() {
    let controls = [flag("START", "int32"), flag("READY", "int32"), correlation("UINT64")];
    let scheduling = sequences(NEVER, "direct { }", &controls);
    let server = Server::new().model("sums", accumulator("sums", 4, "slot", &scheduling)).start();
    let step = |correlation: u64, flags: u32| {
        let header = format!(
            r#"batch_size: 1 correlation_id: {correlation} flags: {flags} input {{ name: "INPUT0" dims: 1 }} output {{ name: "OUTPUT0" }}"#
        );
        assert_eq!(infer(&server, "sums", &header, 4), 200);
    };
    step(1, 1);
    step(2, 1);
    // The first slot is filled with a null request.
    step(2, 2);
    step(1, 2);
    let status = server.get("/api/status/sums").text();
    assert!(status.contains("model_inference_count: 4\n"), "{status}");
    assert!(status.contains("model_execution_count: 4\n"), "{status}");
    assert_eq!(count(&status, "success"), 4, "{status}");
    assert!(server.stop().success());
}
