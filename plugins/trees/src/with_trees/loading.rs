//! Completion, and files that cannot be loaded.

use super::*;
use std::fs;

fn put(dir: &Path, name: &str, contents: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, contents).unwrap();
    path
}

#[track_caller]
fn refusal(backend: &Backend, spec: &ModelSpec) -> String {
    match load(backend, spec) {
        Ok(_) => panic!("{} was loaded", spec.file),
        Err(failure) => failure.text,
    }
}

fn scores() -> Vec<TensorSpec> {
    vec![tensor("output__0", dtype::FP32, &[1])]
}

#[test]
fn a_configuration_is_completed_from_the_file() {
    let (_session, backend) = start();
    for (name, width) in [("lgbm_three", 3), ("xgb_binary", 1), ("xgb_three", 3)] {
        let mut empty = spec(&file_of(name), dtype::FP32, Vec::new());
        (empty.inputs, empty.max_batch_size) = (Vec::new(), 0);
        let patches = backend.autocomplete(&empty).unwrap().unwrap();
        let text: String =
            patches.into_iter().map(|(_, patch)| String::from_utf8(patch).unwrap()).collect();
        let expected = format!(
            "max_batch_size: 131072\ndynamic_batching {{ }}\n\
             input {{ name: \"input__0\" data_type: TYPE_FP32 dims: [ 6 ] }}\n\
             output {{ name: \"output__0\" data_type: TYPE_FP32 dims: [ {width} ] }}\n"
        );
        assert_eq!(text, expected, "{name}");
    }
}

#[test]
fn files_of_fil_are_found_by_their_type() {
    let (_session, backend) = start();
    let dir = tempfile::tempdir().unwrap();
    for (from, to, model_type) in [
        ("xgb_binary", "xgboost.json", "xgboost_json"),
        ("xgb_regression", "xgboost.ubj", "xgboost_ubj"),
        // Releases of XGBoost since 2.1 write UBJSON under this name.
        ("xgb_regression", "xgboost.model", "xgboost"),
        ("lgbm_binary", "model.txt", "lightgbm"),
    ] {
        let path = put(dir.path(), to, &fs::read(file_of(from)).unwrap());
        let mut own = spec(&path, dtype::FP32, scores());
        // What the host completes where the configuration names no file.
        own.file = "model.txt".to_owned();
        own.parameters = vec![("model_type".to_owned(), model_type.to_owned())];
        load(&backend, &own).unwrap_or_else(|failure| panic!("{to}: {failure:?}"));
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn files_that_are_no_models_are_explained() {
    let (_session, backend) = start();
    let dir = tempfile::tempdir().unwrap();
    let text = fs::read(file_of("lgbm_binary")).unwrap();
    let json = fs::read(file_of("xgb_binary")).unwrap();
    let ubj = fs::read(file_of("xgb_regression")).unwrap();
    let cut = |bytes: &[u8]| bytes[..bytes.len() * 2 / 3].to_vec();
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let cases: [(&str, &[u8], &str); 13] = [
        ("model.txt", &text[..text.len() / 3], "the file is truncated: it ends within the model"),
        ("model.json", &cut(&json), "the file is truncated: it ends within the model"),
        ("model.ubj", &cut(&ubj), "the file is truncated: it ends within the model"),
        ("a.txt", pointer, "the file is a Git LFS pointer"),
        ("b.json", b"<!DOCTYPE html><html>", "the file is an HTML page"),
        ("c.txt", b"", "the file is empty"),
        ("d.json", b"{\"error\": \"not found\"}", "the file is JSON and not a model of XGBoost"),
        ("e.txt", b"booster[0]:\n0:[f0<1]", "a dump of XGBoost for people"),
        ("f.bin", b"\x80\x04\x95pickle", "the file is a pickle of Python"),
        ("g.txt", b"forest\n", "the file of 7 bytes is neither a model of LightGBM"),
        (
            "h.model",
            &[0, 0, 0, 0x3f, 1, 0, 0, 0],
            "XGBoost 3.1 and newer read JSON and UBJSON only",
        ),
        ("i.json", b"{\"learner\":{\"x\":[}", "byte 17 closes what is not open"),
        ("j.json", b"{\"learner\":{}}", "the file is damaged: missing field `learner_model_param`"),
    ];
    for (name, contents, expected) in cases {
        let path = put(dir.path(), name, contents);
        let refused = refusal(&backend, &spec(&path, dtype::FP32, scores()));
        let head = format!("unable to load model 'M' from {}: ", path.display());
        assert!(refused.starts_with(&head) && refused.contains(expected), "{refused}");
    }
    let absent = spec(&dir.path().join("absent.txt"), dtype::FP32, scores());
    let refused = refusal(&backend, &absent);
    assert!(refused.contains("expected the file 'model.txt', 'xgboost.json'"), "{refused}");
}

#[test]
fn configurations_that_do_not_fit_are_refused() {
    let (_session, backend) = start();
    let own = |outputs| spec(&file_of("lgbm_binary"), dtype::FP32, outputs);
    let with = |name: &str, value: &str| ModelSpec {
        parameters: vec![(name.to_owned(), value.to_owned())],
        ..own(scores())
    };
    let mut five = own(scores());
    five.inputs = vec![tensor("input__0", dtype::FP32, &[5])];
    for (spec, expected) in [
        (five, "input 'input__0' has dims [5], and the model has 6 features: expected dims [6]"),
        (
            own(vec![tensor("output__0", dtype::FP32, &[2])]),
            "output 'output__0' has dims [2], expected [1]",
        ),
        (
            with("model_type", "xgboost_json"),
            "the file is a LightGBM model, and the parameter 'model_type' is 'xgboost_json'",
        ),
        (with("model_type", "treelite_checkpoint"), "which only Treelite reads"),
        (
            with("threshold", "x"),
            "unable to load model 'M': parameter 'threshold' is 'x', expected a number",
        ),
    ] {
        let refused = refusal(&backend, &spec);
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn a_missing_library_is_explained() {
    let _session = Session::start();
    let settings = [("lightgbm-library", "/nowhere/lib.so"), ("xgboost-library", "/lib")];
    let backend = backend(&settings);
    for (name, expected) in [
        (
            "lgbm_binary",
            [
                "LightGBM library '/nowhere/lib.so' (named by --backend-config=fil,lightgbm-library=…)",
                "pip install lightgbm",
            ],
        ),
        (
            "xgb_binary",
            [
                "XGBoost library '/lib' (named by --backend-config=fil,xgboost-library=…)",
                "pip install xgboost-cpu",
            ],
        ),
    ] {
        let refused = refusal(&backend, &spec(&file_of(name), dtype::FP32, scores()));
        for part in expected {
            assert!(refused.contains(part), "{refused}");
        }
    }
}
