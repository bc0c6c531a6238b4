//! Triton's unmodified Python backend: the models of tests/triton/models answer as they do in
//! Triton itself.

use trtserver_tests::triton::Triton;
use trtserver_tests::{Repository, Server, python_v2, python_v2_with_triton};

const SCRIPT: &str = "triton_python.py";
const MODELS: &str = "tests/triton/models";

#[test]
fn models_answer() {
    let server = Server::new()
        .triton_start_line()
        .backend_dir(Triton::backends())
        .copy_models(MODELS)
        .start();
    python_v2(&server, SCRIPT, &["--without=errors-in-streams"]);
    assert!(server.stop().success());
}

#[test]
fn models_answer_in_triton() {
    let models = Repository::new();
    models.copy_all(MODELS.as_ref());
    let triton = Triton::start(models.path(), &Triton::backends(), &[]);
    python_v2_with_triton(&triton, SCRIPT, &["--without=restarts"]);
}
