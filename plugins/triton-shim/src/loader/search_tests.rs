//! Unit tests of `search.rs`.

use super::*;
use std::fs;

#[test]
fn version_before_model_before_backend_directory() {
    let root = tempfile::tempdir().unwrap();
    let [version, model, dir] = ["m/1", "m", "backends/be"].map(|d| root.path().join(d));
    fs::create_dir_all(&version).unwrap();
    fs::create_dir_all(&dir).unwrap();
    let search = |runtime: &str| {
        let of_model = Some([version.as_path(), model.as_path()]);
        Search { name: "be", model: "m", runtime, of_model, dir: &dir, fallback: None }.run()
    };
    let error = search("").unwrap_err().text;
    assert!(error.contains("m/1/libtriton_be.so' ") && error.contains("be/model.py'"), "{error}");
    let start = "unable to find backend library for backend 'be', try specifying runtime on the model configuration.";
    assert!(error.starts_with(start), "{error}");
    for place in [&dir, &model, &version] {
        fs::write(place.join("libtriton_be.so"), "").unwrap();
        assert_eq!(search("").unwrap().dir, *place);
    }
    fs::write(model.join("other.so"), "").unwrap();
    assert_eq!(search("other.so").unwrap().library, model.join("other.so"));
    let error = search("absent.so").unwrap_err().text;
    let start = "unable to find backend library 'absent.so' for model 'm', searched: '";
    assert!(error.starts_with(start), "{error}");
    let error = search("../x.so").unwrap_err().text;
    assert!(
        error.starts_with("backend library name '../x.so' escapes backend directory '"),
        "{error}"
    );
    assert!(error.contains("', for model 'm', check model config runtime field"), "{error}");
}

#[test]
fn backend_in_python_is_opened_through_the_python_backend() {
    let root = tempfile::tempdir().unwrap();
    let (dir, python) = (root.path().join("vllm"), root.path().join("python"));
    fs::create_dir_all(&dir).unwrap();
    fs::create_dir_all(&python).unwrap();
    fs::write(dir.join(MODEL_PY), "").unwrap();
    let search = |runtime| {
        Search { name: "vllm", model: "", runtime, of_model: None, dir: &dir, fallback: None }.run()
    };
    let error = search("").unwrap_err().text;
    assert!(error.contains("the backend 'python' that runs it is not installed"), "{error}");
    let library = python.join("libtriton_python.so");
    fs::write(&library, "").unwrap();
    for runtime in ["", MODEL_PY] {
        let found = LocatedLibrary { library: library.clone(), dir: dir.clone() };
        assert_eq!(search(runtime).unwrap(), found);
    }
}
