//! Damaged files: each is refused, or loaded and asked, and never ends the process.

use super::*;
use std::fs;
use trtserver_plugin_testkit::damaged_files::{SeededNumbers, damage_bytes, find_fatal_files};

/// Names the folder with damaged files, for the child.
const FOLDER: &str = "TRTSERVER_OPENVINO_DAMAGED";

/// The part of the child: tries the files of a folder in the order of their names, and removes each.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = PathBuf::from(folder);
    let (_session, backend) = start(&[]);
    for path in damaged_files(&folder) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let spec = at(&folder, &folder, name);
        let _ = backend.autocomplete(&spec);
        let names = match name.starts_with("one_row") {
            true => ("x", "y", 3),
            false => ("INPUT0", "OUTPUT0", 4),
        };
        let spec = spec.max_batch_size(8).input(names.0, dtype::FP32, &[4]).output(
            names.1,
            dtype::FP32,
            &[names.2],
        );
        if let Ok(model) = load(&backend, &spec) {
            let request = Request::new(2).input(names.0, dtype::FP32, &[2, 4], &[0; 32]);
            let _ = model.one(request.request_output(names.1));
        }
        fs::remove_file(path).unwrap();
    }
}

/// Without the weights beside them.
fn damaged_files(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        all.filter(|path| path.extension().is_some_and(|own| own != "bin")).collect();
    files.sort();
    files
}

/// Tries damaged copies of a file in children. Returns those that ended one.
fn fatal_files(name: &str, file: &str, count: usize, seed: u64) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = SeededNumbers::new(seed);
    let path = Path::new(MODELS).join("openvino").join(name).join("1").join(file);
    let bytes = fs::read(&path).unwrap();
    let extension = path.extension().unwrap().to_str().unwrap();
    for nth in 0..count {
        let damaged = folder.path().join(format!("{name}-{nth:02}.{extension}"));
        fs::write(&damaged, damage_bytes(&bytes, false, &mut numbers)).unwrap();
        if extension == "xml" {
            fs::copy(path.with_extension("bin"), damaged.with_extension("bin")).unwrap();
        }
    }
    let test = "with_openvino::mutations::child";
    find_fatal_files((test, FOLDER), folder.path(), damaged_files).unwrap()
}

#[test]
fn damaged_files_end_no_process() {
    let files = [("one_row", "model.xml"), ("lite", "model.tflite"), ("paddle", "model.pdmodel")];
    let mut fatal = Vec::new();
    for (name, file) in files {
        fatal.extend(fatal_files(name, file, 17, 5));
    }
    assert_eq!(fatal, Vec::<String>::new());
}
