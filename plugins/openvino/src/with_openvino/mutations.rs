//! Damaged files: each is refused, or loaded and asked, and never ends the process.
//!
//! A child process does it, so that a file that ends it is found by its name.

use super::*;
use std::fs;
use std::process::Command;

/// Names the folder with damaged files, for the child.
const FOLDER: &str = "TRTSERVER_OPENVINO_DAMAGED";

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// A copy with a few bytes changed, a part left out, a part twice, or without its end.
fn damage(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let (at, n) = (numbers.below(out.len()), 1 + numbers.below(40));
    let end = (at + n).min(out.len());
    match numbers.below(4) {
        0 => drop(out.drain(at..end)),
        1 => {
            let part = out[at..end].to_vec();
            out.splice(at..at, part);
        }
        2 => out.truncate(at),
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
    let mut numbers = Numbers(seed);
    let path = Path::new(MODELS).join("openvino").join(name).join("1").join(file);
    let bytes = fs::read(&path).unwrap();
    let extension = path.extension().unwrap().to_str().unwrap();
    for nth in 0..count {
        let damaged = folder.path().join(format!("{name}-{nth:02}.{extension}"));
        fs::write(&damaged, damage(&bytes, &mut numbers)).unwrap();
        if extension == "xml" {
            fs::copy(path.with_extension("bin"), damaged.with_extension("bin")).unwrap();
        }
    }
    let mut fatal = Vec::new();
    loop {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "with_openvino::mutations::child", "--nocapture"]);
        let ended = child.env(FOLDER, folder.path()).output().unwrap();
        let left = damaged_files(folder.path());
        let Some(first) = left.first() else { return fatal };
        assert!(!ended.status.success(), "the child left {}", first.display());
        fatal.push(format!("{}: {}", first.display(), ended.status));
        fs::remove_file(first).unwrap();
    }
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
