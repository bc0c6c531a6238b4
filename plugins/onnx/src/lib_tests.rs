//! Unit tests of `lib.rs`: which file a model is. None of them opens ONNX Runtime.

use super::*;
use trtserver_model_files::testing::HostileModel;
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_testkit::{Backend, Failure, ModelSpec, Session, table};

fn open(version_dir: &str, file: &str) -> Failure {
    let _session = Session::start();
    // No library can be opened, so a model whose file is found fails for that reason.
    let settings = [("library", "/nowhere/libonnxruntime.so")];
    let backend = Backend::open(table::<Engine<Onnx>>(), "onnxruntime", "/nowhere", &settings);
    let spec = ModelSpec {
        version_dir: version_dir.to_owned(),
        file: file.to_owned(),
        ..ModelSpec::new("M")
    };
    backend.unwrap().open_model(&spec).err().unwrap()
}

#[test]
fn missing_file_is_named() {
    let failure = open("/nowhere/1", "absent.onnx");
    assert_eq!(failure.code, code::INTERNAL);
    let expected = "unable to find ONNX model 'absent.onnx' for M: there is no file \
                    /nowhere/1/absent.onnx";
    assert_eq!(failure.text, expected);
    assert!(open("/nowhere/1", "").text.contains("/nowhere/1/model.onnx"));
}

#[test]
fn file_may_be_in_a_directory_of_its_name() {
    let dir = std::env::temp_dir().join(format!("onnx-files-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("model.onnx")).unwrap();
    std::fs::write(dir.join("model.onnx/model.onnx"), "").unwrap();
    let failure = open(dir.to_str().unwrap(), "");
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(failure.text.starts_with("ONNX Runtime library '/nowhere/"), "{failure}");
}

#[test]
fn files_outside_are_refused() {
    let _session = Session::start();
    let model = HostileModel::new(&["1"]);
    let (dir, version_dir) = (model.model(), model.model().join("1"));
    // No library can be opened, so a model whose file is found fails for that reason.
    let settings = [("library", "/nowhere/library.so")];
    let backend =
        Backend::open(table::<Engine<Onnx>>(), "onnxruntime", "/nowhere", &settings).unwrap();
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
}
