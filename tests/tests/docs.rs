//! The commands of docs/requests.md answer as the page says.

use trtserver_tests::{Server, python_v2};

#[test]
fn requests_md() {
    let server = Server::new().copy_models("examples/models").start();
    python_v2(&server, "run_docs.py", &["docs/requests.md"]);
}
