//! One model family in four formats: ONNX, TensorFlow GraphDef and SavedModel, Caffe2 NetDef. All pass the same checks with the
//! clients of v1 and v2, so that they agree with each other.

mod missing_library;

use std::path::Path;
use trtserver_tests::{Server, python_v1, python_v2};

/// Runs the checks on the models of this folder. `without`: types and models that the framework does not have.
fn serves_the_family(folder: &str, without: &[&str]) {
    let folder = Path::new("tests/models").join(folder);
    let without = without.iter().flat_map(|kind| ["--without", kind]);
    let arguments = |class| ["-k", class].into_iter().chain(without.clone()).collect::<Vec<_>>();

    let mut server = Server::new().copy_models(&folder).copy_models(folder.join("sequences"));
    if server.models().join("scalar").exists() {
        // Its configuration is refused.
        server = server.without("scalar");
    }
    let server = server.start();
    python_v2(&server, "v2_frameworks.py", &arguments("Free"));
    python_v1(&server, "v1_frameworks.py", &arguments("Free"));
    assert!(server.stop().success());

    let server = Server::new()
        .env("TRTSERVER_DELAY_SCHEDULER", "8")
        .copy_model(folder.join("addsub_fp32_dynamic"))
        .copy_model(folder.join("sum_fp32"))
        .start();
    python_v2(&server, "v2_frameworks.py", &arguments("Held"));
    python_v1(&server, "v1_frameworks.py", &arguments("Held"));
    assert!(server.stop().success());
}

#[test]
fn onnx() {
    serves_the_family("", &[]);
}
