//! Unit tests of `labels.rs`.

use super::*;

fn load(dir: &Path, outputs: &[ModelOutput]) -> Result<OutputLabels, ConfigError> {
    OutputLabels::load(&FilePlaces::new(dir, []), outputs, &mut LoadMemory::new(1000))
}

#[test]
fn bytes_that_are_not_utf8_are_replaced() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), b"caf\xe9\n").unwrap();
    assert_eq!(load(dir.path(), &[output("A", "f")]).unwrap().get("A", 0), Some("caf\u{fffd}"));
}

#[test]
fn lines_count_against_the_memory_limit() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), [b'\n'; 600]).unwrap();
    let error = load(dir.path(), &[output("A", "f")]).unwrap_err().message;
    let end = "takes 2400 bytes, more than the 400 left of --max-load-memory=1000";
    assert!(error.ends_with(end), "{error}");
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
    let labels = load(dir.path(), &[&outputs[..], &[output("D", "")]].concat()).unwrap();
    for name in ["A", "B", "C"] {
        assert_eq!(labels.get(name, 1), Some("dog"));
        assert_eq!(labels.get(name, 2), None);
    }
    assert_eq!(labels.get("D", 0), None);
    assert!(Arc::ptr_eq(labels.for_output("A").unwrap(), labels.for_output("C").unwrap()));
    assert!(load(dir.path(), &[output("D", "")]).unwrap().is_empty());
}

#[test]
fn missing_file_and_path_outside_the_model_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = load(dir.path(), &[output("A", "no.txt")]).unwrap_err().message;
    let start =
        format!("unable to read label file '{}/no.txt' of output 'A': ", dir.path().display());
    assert!(error.starts_with(&start), "{error}");
    for file in ["../no.txt", "/etc/passwd", "1/../../no.txt"] {
        let error = load(dir.path(), &[output("A", file)]).unwrap_err().message;
        let dir = dir.path().display();
        assert_eq!(
            error,
            format!("label file '{file}' of output 'A' leaves the model directory '{dir}'")
        );
    }
}
