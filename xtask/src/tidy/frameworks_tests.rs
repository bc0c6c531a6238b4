//! Unit tests of `frameworks.rs`.

use super::*;

#[test]
fn names_of_frameworks_in_code_of_the_host_are_found() {
    let code = "if config.backend == \"lightgbm\" {";
    for (file, text, findings) in [
        ("host/models/src/load.rs", code, 1),
        ("host/models/src/load.rs", "let TensorRT = 1;\nlet x = \"model.onnx\";", 2),
        ("host/models/src/load.rs", "entry(\"custom\")", 1),
        ("host/models/src/load.rs", "self.custom.push(\"custom batching\")", 0),
        ("host/models/src/load.rs", "/// `backend onnxruntime`, for example\nx(); // as ONNX", 0),
        ("host/models/src/load_tests.rs", code, 0),
        ("host/models/src/testing.rs", code, 0),
        ("host/models/Cargo.toml", code, 0),
        ("plugins/onnx/src/lib.rs", code, 0),
        (ALLOWED[0].0, code, 0),
    ] {
        let mut found = Vec::new();
        Frameworks::default().check(file, text, &mut found);
        assert_eq!(found.len(), findings, "{file}: {text}: {found:?}");
    }
}

#[test]
fn exceptions_that_nothing_needs_are_found() {
    let mut rule = Frameworks::default();
    let mut found = Vec::new();
    rule.check(ALLOWED[0].0, "\"tensorflow\"", &mut found);
    rule.finish(&mut found);
    assert_eq!(found.len(), ALLOWED.len() - 1, "{found:?}");
}
