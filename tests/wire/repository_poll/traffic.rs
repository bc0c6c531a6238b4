//! Every kind of change under constant load from the real v1 and v2 clients.

use std::time::Duration;
use trtserver_tests::{live_repository, reloads};

#[test]
fn changes_under_load_fail_no_request() {
    let server = live_repository::server().start();
    live_repository::change(&server, |round| round < 4);
    assert!(server.stop().success());
}

#[test]
fn reloads_under_full_load_fail_no_request() {
    let server = reloads::server(Duration::from_millis(10)).start();
    let report = reloads::run(&server, Duration::from_millis(10), 5);
    assert_eq!(report.failed, 0, "{report}");
    assert!(server.stop().success());
}
