//! Unit tests of `mod.rs`.

use super::*;

#[test]
fn byte_count_reveals_wrong_responses() {
    let connections = Connections { concurrency: 2, threads: 1, length: Duration::from_secs(1) };
    let received = |requests, bytes| connections.received("wrk", requests, bytes, 100);
    assert!(received(10, 1000).is_ok());
    assert!(received(10, 1150).is_ok());
    assert!(received(10, 999).unwrap_err().contains("999 bytes for 10 requests"));
    assert!(received(10, 1201).is_err());
    assert!(received(0, 0).is_err());
}
