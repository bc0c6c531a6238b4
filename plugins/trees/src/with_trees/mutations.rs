//! Damaged files of LightGBM: each is refused, or loaded and asked, and never ends the process.
//! (Files of XGBoost may: `tests/wire/frameworks/with_trees.rs`.)

use super::*;
use std::fs;
use trtserver_plugin_testkit::damaged_files::{SeededNumbers, damage_bytes, find_fatal_files};

/// Names the folder with damaged files, for the child.
const FOLDER: &str = "TRTSERVER_TREES_DAMAGED";

/// In the order of their names.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The part of the child: tries the files of a folder in the order of their names, and removes each.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (_session, backend) = start();
    let rows = Expected::read().rows;
    for path in files_in(Path::new(&folder)) {
        let outputs = vec![
            tensor("output__0", dtype::FP32, &[-1]),
            tensor("leaf__output", dtype::FP32, &[-1]),
            tensor("shap__output", dtype::FP32, &[-1]),
        ];
        if let Ok(model) = load(&backend, &spec(&path, dtype::FP32, outputs)) {
            let ask = request(&rows).request_output("output__0").request_output("leaf__output");
            model.run(&[ask.request_output("shap__output")]);
        }
        fs::remove_file(path).unwrap();
    }
}

/// Files that ended the child.
fn fatal_files(models: &[&str], each: usize, seed: u64) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = SeededNumbers::new(seed);
    for name in models {
        let path = file_of(name);
        let bytes = fs::read(&path).unwrap();
        let end = path.extension().unwrap().to_str().unwrap();
        for nth in 0..each {
            let file = folder.path().join(format!("{name}-{nth}.{end}"));
            fs::write(file, damage_bytes(&bytes, true, &mut numbers)).unwrap();
        }
    }
    find_fatal_files(("with_trees::mutations::child", FOLDER), folder.path(), files_in).unwrap()
}

#[test]
fn damaged_files_of_lightgbm_end_no_process() {
    let models = ["lgbm_binary", "lgbm_three", "lgbm_dart", "lgbm_linear"];
    let none: Vec<String> = Vec::new();
    assert_eq!(fatal_files(&models, 50, 11), none);
}
