//! Damaged files of LightGBM: each is refused, or loaded and asked, and never ends the process.
//! (Files of XGBoost may: `tests/wire/frameworks/with_trees.rs`.)
//!
//! A child process does it, so that a file that ends it is found by its name.

use super::*;
use std::fs;
use std::process::Command;

/// Names the folder with damaged files, for the child.
const FOLDER: &str = "TRTSERVER_TREES_DAMAGED";

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// A copy with a few bytes changed, a part left out, or a part twice.
fn damage(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let (at, n) = (numbers.below(out.len()), 1 + numbers.below(40));
    let end = (at + n).min(out.len());
    match numbers.below(5) {
        0 => drop(out.drain(at..end)),
        1 => {
            let part = out[at..end].to_vec();
            out.splice(at..at, part);
        }
        2 => out.truncate(at),
        3 => {
            // A digit keeps the syntax and changes an index or a length.
            let digits: Vec<usize> =
                (0..out.len()).filter(|at| out[*at].is_ascii_digit()).collect();
            for _ in 0..1 + numbers.below(4) {
                let at = digits[numbers.below(digits.len())];
                out[at] = b'0' + numbers.below(10) as u8;
            }
        }
        _ => {
            for _ in 0..1 + numbers.below(3) {
                let at = numbers.below(out.len());
                out[at] = numbers.below(256) as u8;
            }
        }
    }
    out
}

/// The part of the child: tries the files of a folder in the order of their names, and removes each.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (_session, backend) = start();
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let rows = Expected::read().rows;
    for path in files {
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
    let mut numbers = Numbers(seed);
    for name in models {
        let path = file_of(name);
        let bytes = fs::read(&path).unwrap();
        let end = path.extension().unwrap().to_str().unwrap();
        for nth in 0..each {
            let file = folder.path().join(format!("{name}-{nth}.{end}"));
            fs::write(file, damage(&bytes, &mut numbers)).unwrap();
        }
    }
    let mut fatal = Vec::new();
    loop {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "with_trees::mutations::child", "--nocapture"]);
        let ended = child.env(FOLDER, folder.path()).output().unwrap();
        let mut left: Vec<PathBuf> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        left.sort();
        let Some(first) = left.first() else { return fatal };
        assert!(!ended.status.success(), "the child left {}", first.display());
        fatal.push(format!("{}: {}", first.display(), ended.status));
        fs::remove_file(first).unwrap();
    }
}

#[test]
fn damaged_files_of_lightgbm_end_no_process() {
    let models = ["lgbm_binary", "lgbm_three", "lgbm_dart", "lgbm_linear"];
    let none: Vec<String> = Vec::new();
    assert_eq!(fatal_files(&models, 50, 11), none);
}
