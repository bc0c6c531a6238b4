//! Damaged files: each is refused, or loaded and asked, and never ends the process.

use super::*;
use std::fs;
use trtserver_plugin_testkit::damaged_files::{SeededNumbers, damage_bytes, find_fatal_files};

/// Names the folder with damaged files, for the child.
const FOLDER: &str = "TRTSERVER_TREES_DAMAGED";

const LIGHTGBM: [&str; 4] = ["lgbm_binary", "lgbm_three", "lgbm_dart", "lgbm_linear"];
const XGBOOST: [&str; 4] = ["xgb_binary", "xgb_class", "xgb_three", "xgb_dart"];

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
            fs::write(file, damage_bytes(&bytes, end != "ubj", &mut numbers)).unwrap();
        }
    }
    find_fatal_files(("with_trees::mutations::child", FOLDER), folder.path(), files_in).unwrap()
}

#[test]
fn damaged_files_of_lightgbm_end_no_process() {
    assert_eq!(fatal_files(&LIGHTGBM, 50, 11), Vec::<String>::new());
}

#[test]
fn damaged_files_of_xgboost_end_no_process() {
    assert_eq!(fatal_files(&XGBOOST, 50, 12), Vec::<String>::new());
}

/// `TRTSERVER_TREES_COPIES=1000 cargo test -p trtserver-plugin-trees -- --ignored mutations`
#[test]
#[ignore = "takes minutes"]
fn many_damaged_files_end_no_process() {
    let each = std::env::var("TRTSERVER_TREES_COPIES").ok().and_then(|count| count.parse().ok());
    let models = [LIGHTGBM, XGBOOST].concat();
    assert_eq!(fatal_files(&models, each.unwrap_or(200), 13), Vec::<String>::new());
}
