//! Unit tests of `init_ops.rs`.

use super::*;
use crate::backend::TensorFlow;
use trtserver_model_files::testing::HostileModel;
use trtserver_plugin_testkit::{Backend, ModelSpec, Session, table};

#[test]
fn names_are_a_list_of_texts() {
    assert_eq!(
        operation_names(br#"{"init_ops": ["init", "scope/fill"]}"#).unwrap(),
        ["init", "scope/fill"]
    );
    for text in [r#"{"init_ops": "init"}"#, r#"{"init_ops": [1]}"#, "[]", "{}"] {
        assert_eq!(
            operation_names(text.as_bytes()).unwrap_err(),
            r#"expected {"init_ops": ["operation", ...]}"#
        );
    }
    assert!(operation_names(b"{").is_err());
}

#[test]
fn files_outside_are_refused() {
    let _session = Session::start();
    let model = HostileModel::new(&["1"]);
    let (dir, version_dir) = (model.model(), model.model().join("1"));
    // No library can be opened, so a model whose file is found fails for that reason.
    let settings = [("library", "/nowhere/library.so")];
    let backend =
        Backend::open(table::<TensorFlow>(), "tensorflow", "/nowhere", &settings).unwrap();
    let spec = ModelSpec {
        dir: dir.display().to_string(),
        version_dir: version_dir.display().to_string(),
        ..ModelSpec::new("M")
    };
    let open = |file: &str| {
        let spec = ModelSpec { file: file.to_owned(), ..spec.clone() };
        backend.open_model(&spec).err().map(|failure| failure.text).unwrap_or_default()
    };
    assert!(!HostileModel::is_refusal(&open("own")));
    for name in model.names_of_secret().iter().filter(|name| !name.contains('\0')) {
        let text = open(name);
        assert!(HostileModel::is_refusal(&text) && text.contains("'M'"), "{name}: {text}");
    }
    for name in model.names_of_secret().iter().filter(|name| !name.contains('\0')) {
        let spec = ModelSpec { file: "own".to_owned(), ..spec.clone() }.parameter(PARAMETER, name);
        let text = backend.open_model(&spec).err().unwrap().text;
        assert!(HostileModel::is_refusal(&text) && text.contains(PARAMETER), "{name}: {text}");
    }
}
