//! Models of Triton's unmodified Python backend that send requests to other models, as they do in
//! Triton itself.

use trtserver_tests::triton::Triton;
use trtserver_tests::{Repository, Server, python_v2, python_v2_with_triton};

const SCRIPT: &str = "triton_nested.py";
const MODELS: &str = "tests/triton/nested";
const EXPLICIT: [&str; 2] = ["--model-control-mode=explicit", "--load-model=*"];

#[test]
fn models_ask_each_other() {
    // In processes of their own, and in that of the server.
    for isolation in ["process", "none"] {
        let server = Server::new()
            .triton_start_line()
            .backend_dir(Triton::backends())
            .copy_models(MODELS)
            .flag(EXPLICIT[0])
            .flag(EXPLICIT[1])
            .flag(format!("--backend-config=python,isolation={isolation}"))
            .start();
        python_v2(&server, SCRIPT, &[]);
        assert!(server.stop().success());
    }
}

#[test]
fn models_ask_each_other_in_triton() {
    let models = Repository::new();
    models.copy_all(MODELS.as_ref());
    let triton = Triton::start(models.path(), &Triton::backends(), &EXPLICIT);
    python_v2_with_triton(&triton, SCRIPT, &[]);
}
