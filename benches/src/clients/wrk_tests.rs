//! Unit tests of `wrk.rs`.

use super::*;
use std::time::Duration;

#[test]
fn a_script_sends_the_same_request() {
    let message = b"POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nA-B: c d\r\n\r\n\0\n";
    let (script, body) = script_of(message, Path::new("/tmp/b")).unwrap();
    assert_eq!(body, b"\0\n");
    assert!(script.contains("wrk.method = \"POST\"\nwrk.path = \"/v2/x\"\n"), "{script}");
    assert!(script.contains("wrk.headers[\"A-B\"] = \"c d\"\n"), "{script}");
    assert!(!script.contains("Content-Length"), "{script}");
}

#[test]
fn failures_and_wrong_lengths_are_detected() {
    let length = Duration::from_secs(1);
    let connections = Connections { concurrency: 1, threads: 1, length };
    let read = |line: &str| super::read(line, &connections, 10);
    let outcome = read("Requests/sec: 5\ncounted: 100 2000000 1000 0 12.5 30.0\n").unwrap();
    assert_eq!((outcome.requests, outcome.per_second, outcome.p99_us), (100, 50.0, 30.0));
    assert!(read("counted: 100 2000000 1000 3 1 1").is_err_and(|e| e.contains("3 of 100")));
    assert!(read("counted: 100 2000000 900 0 1 1").is_err_and(|e| e.contains("900 bytes")));
    assert!(read("unable to connect").is_err_and(|e| e.contains("unable to connect")));
}
