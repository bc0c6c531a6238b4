// SPDX-License-Identifier: Apache-2.0
//! The backend on the test host, without a server: `make test`.

use super::{BACKEND, DEFAULT_FILE, ToyBackend};
use std::fs;
use std::path::{Path, PathBuf};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::damaged_files::{SeededNumbers, damage_bytes, find_fatal_files};
use trtserver_plugin_testkit::{
    Backend, InstanceSpec, ModelSpec, Request, Session, bytes, table, values,
};

const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/libtoy.so");
const MODEL: &str = "toy 1\ntoy 10\n";
/// Names the folder with damaged files, for the child.
const FOLDER: &str = "TOY_DAMAGED";

fn open(library: &str) -> Backend {
    Backend::open(table::<ToyBackend>(), BACKEND, "", &[("library", library)]).unwrap()
}

/// A new folder of this test.
fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("{BACKEND}-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn spec(folder: &Path, file: &str) -> ModelSpec {
    let dir = folder.display().to_string();
    ModelSpec { dir: dir.clone(), version_dir: dir, file: file.to_owned(), ..ModelSpec::new("m") }
}

fn configured(folder: &Path, file: &str) -> ModelSpec {
    let spec = spec(folder, file).max_batch_size(8);
    spec.input("INPUT", dtype::FP32, &[2]).output("SCORE", dtype::FP32, &[1])
}

fn request(rows: &[[f32; 2]]) -> Request {
    let shape = [rows.len() as i64, 2];
    let data = bytes(rows.as_flattened());
    Request::new(rows.len() as u32).input("INPUT", dtype::FP32, &shape, &data)
}

#[test]
fn a_batch_is_one_run_and_a_configuration_is_completed() {
    // Fails the test at its end if the backend violated the interface.
    let _session = Session::start();
    let folder = folder("batch");
    fs::write(folder.join(DEFAULT_FILE), MODEL).unwrap();
    let backend = open(LIBRARY);
    let completed = backend.autocomplete(&spec(&folder, "")).unwrap().unwrap();
    let completed = String::from_utf8(completed[0].1.clone()).unwrap();
    for part in ["max_batch_size: 4", "dynamic_batching", "INPUT", "dims: [ 2 ]", "SCORE"] {
        assert!(completed.contains(part), "no {part} in {completed}");
    }
    let model = backend.open_model(&configured(&folder, "")).unwrap();
    let instance = model.open_instance(&InstanceSpec::default()).unwrap();
    let requests = [request(&[[1.0, 2.0], [3.0, 4.0]]), request(&[[0.5, 0.0]])];
    let outcomes = instance.execute(&requests.map(|request| request.request_output("SCORE")));
    for (outcome, expected) in outcomes.iter().zip([vec![21.0, 43.0], vec![0.5]]) {
        let output = outcome.response().unwrap().output("SCORE").unwrap();
        assert_eq!(values::<f32>(&output.data), expected);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_cannot_be_used_is_named() {
    let _session = Session::start();
    let folder = folder("refused");
    fs::write(folder.join(DEFAULT_FILE), MODEL).unwrap();
    fs::write(folder.join("text"), "hello").unwrap();
    fs::write(folder.join("pointer"), "version https://git-lfs.github.com/spec/v1\n").unwrap();
    let wide = configured(&folder, "").input("OTHER", dtype::FP32, &[2]);
    for (library, spec, part) in [
        ("/nowhere", configured(&folder, ""), "library '/nowhere' (named by --backend-config="),
        (LIBRARY, configured(&folder, "text"), "text: line 1: expected \"toy\" and a number"),
        (LIBRARY, configured(&folder, "pointer"), "a Git LFS pointer"),
        (LIBRARY, configured(&folder, "../m"), "expected a relative path without '..'"),
        (LIBRARY, configured(&folder, "absent"), "absent: No such file"),
        (LIBRARY, wide, "unexpected inference input 'OTHER'"),
    ] {
        let refused = open(library).open_model(&spec).err().unwrap();
        assert!(refused.text.contains(part), "no {part:?} in {}", refused.text);
    }
    fs::remove_dir_all(folder).unwrap();
}

/// The part of the child: tries the files in the order of their names, and removes each.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let _session = Session::start();
    let backend = open(LIBRARY);
    for path in files(&folder) {
        let spec = configured(&folder, path.file_name().unwrap().to_str().unwrap());
        let _ = backend.autocomplete(&spec);
        if let Ok(model) = backend.open_model(&spec) {
            let instance = model.open_instance(&InstanceSpec::default()).unwrap();
            let _ = instance.execute(&[request(&[[1.0, 2.0]]).request_output("SCORE")]);
        }
        fs::remove_file(path).unwrap();
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// A library that fails this trusts its files: set `isolation = "process"` in plugin.toml, or check
/// files before the library reads them.
#[test]
fn damaged_files_end_no_process() {
    let folder = folder("damaged");
    let mut numbers = SeededNumbers::new(1);
    for nth in 0..200 {
        let damaged = damage_bytes(MODEL.as_bytes(), true, &mut numbers);
        fs::write(folder.join(format!("{nth:03}")), damaged).unwrap();
    }
    let fatal = find_fatal_files(("tests::child", FOLDER), &folder, files).unwrap();
    assert_eq!(fatal, Vec::<String>::new());
    fs::remove_dir_all(folder).unwrap();
}
