//! Unit tests of `model_file.rs`.

use super::*;

#[test]
fn names() {
    for (configured, present, expected) in [
        ("", &[][..], "model.xml"),
        ("model.xml", &["model.onnx"], "model.onnx"),
        ("", &["model.xml", "model.onnx"], "model.xml"),
        ("model.xml", &["model.xml"], "model.xml"),
        ("", &["model.pb", "model.tflite"], "model.tflite"),
        ("own.onnx", &["model.xml"], "own.onnx"),
        ("model.xml", &["other.xml"], "model.xml"),
    ] {
        assert_eq!(choose_name(configured, |name| present.contains(&name)), expected);
    }
}

#[test]
fn contents_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, contents: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, contents).unwrap();
        let weights = has_extension(&path, "xml").then(|| path.with_extension("bin"));
        ModelFile { path, weights }
    };
    put("whole.bin", b"");
    let ir = b"<?xml version=\"1.0\"?>\n<net name=\"x\" version=\"11\">";
    let pointer = b"version https://git-lfs.github.com/spec/v1\n";
    let cases: [(&str, &[u8], &str); 11] = [
        ("whole.xml", ir, ""),
        ("alone.xml", ir, "the weights are missing: there is no file"),
        ("a.xml", pointer, "the file is a Git LFS pointer"),
        ("b.xml", b"<?xml version=\"1.0\"?><Error>", "the file is a text and not a model"),
        ("c.xml", b"\x08\x07", "not a model in OpenVINO's format"),
        ("a.tflite", b"\x1c\0\0\0TFL3", ""),
        ("b.tflite", b"\x1c\0\0\0TFL2", "not a TensorFlow Lite model"),
        ("c.tflite", b"", "the file is empty"),
        ("a.onnx", b"<html>", "the file is an HTML page"),
        ("b.pdmodel", b"\x0a\xff\x01", "the file is truncated"),
        ("c.pb", b"\x0a\x01\x00", ""),
    ];
    for (name, contents, expected) in cases {
        let found = put(name, contents).look_inside().unwrap_or_default();
        assert!(
            found.contains(expected) && found.is_empty() == expected.is_empty(),
            "{name}: {found}"
        );
    }
    let folder = ModelFile { path: dir.path().to_owned(), weights: None };
    assert_eq!(folder.look_inside().as_deref(), Some("the directory has no file saved_model.pb"));
}
