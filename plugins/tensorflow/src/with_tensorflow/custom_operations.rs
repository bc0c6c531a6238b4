//! Libraries of custom operations, one of which is compiled here: `tests/data/custom_operation.c`.

use super::*;
use crate::tensorflow_files::{node, placeholder, versions};
use std::process::Command;

#[test]
fn graph_with_custom_operation_needs_its_library() {
    let (session, handle) = start();
    let dir = tempfile::tempdir().unwrap();
    let graph = [placeholder("X", 1, Some(&[-1, 4])), node("Y", "TrtsDouble", &["X"]), versions()];
    std::fs::write(dir.path().join("model.graphdef"), graph.concat()).unwrap();
    let (inputs, outputs): (Tensors, Tensors) =
        (&[("X", dtype::FP32, &[4])], &[("Y", dtype::FP32, &[4])]);
    let mut spec = spec(crate::GRAPH_DEF, &dir.path().join("model.graphdef"), 8, inputs, outputs);
    let error = handle.open_model(&spec).err().unwrap();
    assert!(error.text.contains("TrtsDouble") && error.text.contains("model.graphdef"), "{error}");

    let library = dir.path().join("libcustom.so");
    let tensorflow = library_dir();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(Path::new(DATA).join("custom_operation.c"))
        .arg(tensorflow.join("libtensorflow_framework.so.2"))
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    // model_operations.op_library_filename, relative to the model's directory
    dir.path().to_str().unwrap().clone_into(&mut spec.dir);
    let mut operations = Vec::new();
    put_bytes(&mut operations, 1, b"libcustom.so");
    put_bytes(&mut spec.config_pb, 18, &operations);
    let loaded = load(&handle, &spec).unwrap();
    let request = Request::new(1).input("X", dtype::FP32, &[1, 4], &bytes(&[1f32, 2.0, 3.0, 4.0]));
    let outcome = loaded.run(request.request_output("Y"));
    assert_eq!(floats(&outcome, "Y"), [2.0, 4.0, 6.0, 8.0]);
    // Not stateful, as its definition says.
    assert!(session.logged("no state"), "{:?}", session.log());
    // Loaded once for all models; here also by the backend's setting.
    let path = super::library();
    let both = [("library", path.to_str().unwrap()), ("op-libraries", library.to_str().unwrap())];
    drop(load(&backend(&both), &spec).unwrap());
}

fn library_dir() -> PathBuf {
    let library = library().canonicalize().unwrap();
    library.parent().unwrap().to_path_buf()
}
