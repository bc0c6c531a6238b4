//! The commands of the pages in docs/ answer as the pages say.

use trtserver_tests::{Server, python_v2};

fn page(page: &str) {
    let server = Server::new().copy_models("examples/models").start();
    python_v2(&server, "run_docs.py", &[page]);
}

#[test]
fn requests_md() {
    page("docs/requests.md");
}

#[test]
fn batching_md() {
    page("docs/batching.md");
}
