//! Every kind of change under constant load from the real v1 and v2 clients.

use trtserver_tests::live_repository;

#[test]
fn changes_under_load_fail_no_request() {
    let server = live_repository::server().start();
    live_repository::change(&server, |round| round < 4);
    assert!(server.stop().success());
}
