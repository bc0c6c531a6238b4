//! The commands of the pages for users answer as the pages say.

use trtserver_tests::{Server, python_v2};

fn answers_as_written(page: &str) {
    let server = Server::new().copy_models("examples/models").start();
    python_v2(&server, "run_docs.py", &[page]);
}

#[test]
fn requests_md() {
    answers_as_written("docs/requests.md");
}

#[test]
fn batching_md() {
    answers_as_written("docs/batching.md");
}

#[test]
fn ensembles_md() {
    answers_as_written("docs/ensembles.md");
}
