//! Unit tests of `bare.rs`.

use super::*;
use std::fs;

/// The repository `models` with these files.
fn repository(files: &[&str]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("models");
    for file in files {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    (dir, root)
}

fn open(root: &Path) -> BareStore {
    let files = ["model.onnx", "model.savedmodel"].map(str::to_owned).into();
    BareStore::open(root, "m".to_owned(), &files).unwrap()
}

#[test]
fn load_sees_a_model_directory_of_links() {
    let (_dir, root) =
        repository(&["model.onnx", "model.onnx.data", "labels.txt", "config.pbtxt", "warmup/one"]);
    let store = open(&root);
    assert_eq!((store.models().unwrap(), store.has("m").unwrap()), (vec!["m".to_owned()], true));
    assert!(!store.has("models").unwrap());
    let model = store.materialise("m", &CancelFlag::default()).unwrap();
    let path = model.path().to_owned();
    for (file, link) in [
        ("model.onnx", "1/model.onnx"),
        ("model.onnx.data", "1/model.onnx.data"),
        ("labels.txt", "labels.txt"),
        ("config.pbtxt", "config.pbtxt"),
        ("warmup/one", "warmup/one"),
    ] {
        assert_eq!(fs::read_to_string(path.join(link)).unwrap(), file);
    }
    assert!(model.is_bare() && !path.join("1/labels.txt").exists());
    let text = format!("'{0}/1/model.onnx' and '{0}/labels.txt'", path.display());
    let shown = root.display();
    assert_eq!(model.show_origin(text), format!("'{shown}/model.onnx' and '{shown}/labels.txt'"));
    drop(model);
    assert!(!path.exists());
}

#[test]
fn saved_model_is_linked_as_a_whole() {
    let (_dir, root) = repository(&["saved_model.pb", "variables/v", "config.pbtxt"]);
    let store = open(&root);
    let model = store.materialise("m", &CancelFlag::default()).unwrap();
    let linked = model.path().join("1/model.savedmodel");
    assert_eq!(linked.canonicalize().unwrap(), root.canonicalize().unwrap());
    assert!(model.path().join("config.pbtxt").exists());
    let text = format!("no graph in {}/saved_model.pb", linked.display());
    assert_eq!(model.show_origin(text), format!("no graph in {}/saved_model.pb", root.display()));
}

#[test]
fn model_without_its_file_is_absent() {
    let (_dir, root) = repository(&["model.onnx", "labels.txt"]);
    let store = open(&root);
    let before = store.fingerprint("m").unwrap();
    fs::write(root.join("model.onnx"), "other contents").unwrap();
    assert_ne!(store.fingerprint("m").unwrap(), before);
    fs::remove_file(root.join("model.onnx")).unwrap();
    assert!(store.models().unwrap().is_empty() && !store.has("m").unwrap());
}

#[test]
fn model_is_named_by_flag_variable_configuration_or_directory() {
    let (_dir, root) = repository(&["model.onnx"]);
    let (_other, configured) = repository(&["model.onnx"]);
    fs::write(configured.join("config.pbtxt"), "name: \"from_config\"").unwrap();
    let text = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
    for (root, flag, service, only, want) in [
        (&root, "", "", true, "models"),
        (&root, "flag", "service", true, "flag"),
        (&root, "", "service", true, "service"),
        (&root, "", "service", false, "models"),
        (&configured, "", "", true, "from_config"),
        (&configured, "", "service", true, "service"),
        (&configured, "flag", "", true, "flag"),
    ] {
        let settings =
            BareSettings { name: text(flag), service: text(service), ..Default::default() };
        assert_eq!(settings.model_name(root, only).unwrap(), want);
    }
    let named = BareSettings { service: text("a/b"), ..Default::default() };
    let refused = named.model_name(&root, true).unwrap_err().message;
    assert!(refused.starts_with("INFERENCE_SERVICE_NAME=a/b: expected the name"), "{refused}");
    let refused = BareSettings::default().model_name(Path::new("/"), true).unwrap_err().message;
    assert!(refused.contains("name it with --model-name"), "{refused}");
}
