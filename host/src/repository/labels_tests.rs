//! Unit tests of `labels.rs`.

use super::*;

#[test]
fn each_line_is_a_label() {
    let rows: &[(&[u8], &[&str])] = &[
        (b"cat\ndog\n", &["cat", "dog"]),
        (b"cat\ndog", &["cat", "dog"]),
        (b"cat\r\ndog\r\n", &["cat", "dog"]),
        (b"cat\r", &["cat"]),
        (b"a\rb\n", &["a\rb"]),
        (b"cat\n\n dog \n\n", &["cat", "", " dog ", ""]),
        (b"\n", &[""]),
        (b"", &[]),
        (b"caf\xe9\n", &["caf\u{fffd}"]),
    ];
    for (bytes, labels) in rows {
        assert_eq!(*split(bytes), **labels, "{bytes:?}");
    }
}

fn output(name: &str, file: &str) -> ModelOutput {
    ModelOutput { name: name.into(), label_filename: file.into(), ..Default::default() }
}

#[test]
fn labels_are_found_by_output() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("animals.txt"), "cat\ndog\n").unwrap();
    let outputs =
        [output("A", "animals.txt"), output("B", "./animals.txt"), output("C", "animals.txt")];
    let labels = Labels::load(dir.path(), &[&outputs[..], &[output("D", "")]].concat()).unwrap();
    for name in ["A", "B", "C"] {
        assert_eq!(labels.get(name, 1), Some("dog"));
        assert_eq!(labels.get(name, 2), None);
    }
    assert_eq!(labels.get("D", 0), None);
    assert!(Arc::ptr_eq(labels.of("A").unwrap(), labels.of("C").unwrap()));
    assert!(Labels::load(dir.path(), &[output("D", "")]).unwrap().is_empty());
}

#[test]
fn missing_file_and_path_outside_the_model_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = Labels::load(dir.path(), &[output("A", "no.txt")]).unwrap_err().message;
    let start =
        format!("unable to read label file '{}/no.txt' of output 'A': ", dir.path().display());
    assert!(error.starts_with(&start), "{error}");
    for file in ["../no.txt", "/etc/passwd", "1/../../no.txt"] {
        let error = Labels::load(dir.path(), &[output("A", file)]).unwrap_err().message;
        let dir = dir.path().display();
        assert_eq!(
            error,
            format!("label file '{file}' of output 'A' leaves the model directory '{dir}'")
        );
    }
}
