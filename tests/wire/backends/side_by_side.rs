//! Two versions of a backend in one process: a version that would use libraries or variables of the
//! other is refused.

#![allow(clippy::unwrap_used)] // the functions here are parts of tests

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::versions::{Versions, model};
use trtserver_tests::{Server, compile, folder, parameters, root, trtserver};

const SOURCE: &str = "tests/plugins/versions/version.c";

/// Compiles backend `v` of this version, with these options.
fn put(dir: &Path, version: &str, options: &[String]) -> PathBuf {
    let dir = dir.join("v").join(version);
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("libtrtserver_v.so");
    let include = root().join("plugin-api/include");
    let mut all = vec![format!("-I{}", include.display()), "-DNAME=\"v\"".into()];
    all.push(format!("-DVERSION=\"{version}\""));
    all.extend_from_slice(options);
    compile(SOURCE, &file, &all);
    file
}

/// A version with its own `libdep.so.1`, which returns `number`.
fn with_library(dir: &Path, version: &str, number: i32) -> PathBuf {
    let own = dir.join("v").join(version);
    fs::create_dir_all(&own).unwrap();
    let dep = own.join("libdep.so.1");
    let options = [format!("-DNUMBER={number}"), "-Wl,-soname,libdep.so.1".into()];
    compile("tests/plugins/versions/dep.c", &dep, &options);
    let link = ["-DLIBRARY", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"].map(str::to_owned);
    put(dir, version, &[&link[..], &[dep.display().to_string()]].concat())
}

fn with_unique_variable(dir: &Path, version: &str, number: i32) -> PathBuf {
    put(dir, version, &[format!("-DUNIQUE={number}")])
}

fn server(dir: &TempDir) -> Server {
    let isolated = model("isolated", "v", "2.0") + &parameters(&[("isolation", "process")]);
    let server = explicit().backend_dir(dir.path()).flag("--load-model=m0");
    let server = server.model("m0", model("m0", "v", "")).model("m1", model("m1", "v", ""));
    server.model("pinned", model("pinned", "v", "2.0")).model("isolated", isolated)
}

/// Version 2.0 appears beside 1.0, which is in use. It is refused with a reason of these parts, and
/// only isolated models use it; a server that is started with both uses 2.0.
fn newer_version_is_refused(put: impl Fn(&Path, &str, i32) -> PathBuf, parts: &[&str]) {
    let dir = folder();
    let old = put(dir.path(), "1.0", 1);
    let running = server(&dir).start();
    let new = put(dir.path(), "2.0", 2);
    assert_ok(running.load("m1"));
    assert_eq!((running.number("m0"), running.number("m1")), (1.0, 1.0));
    let unusable = running.backends()["unusable"].clone();
    assert_eq!(unusable[0]["file"], json!(new), "{unusable}");
    let refusals = [running.load("pinned").error_text(), unusable[0]["reason"].to_string()];
    for text in refusals {
        for part in [parts, &["v/1.0/", "v/2.0/", "isolation=process"]].concat() {
            assert!(text.contains(part), "no {part:?} in {text:?}");
        }
    }
    assert_ok(running.load("isolated"));
    assert_eq!(running.number("isolated"), 2.0);
    assert!(running.stop().success());

    let listed = trtserver(
        ["plugin", "list", "--json", "--backend-dir"]
            .map(Into::into)
            .into_iter()
            .chain([dir.path().as_os_str().to_owned()]),
    );
    assert_eq!(listed.code(), 1);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let problem = |file: &Path| {
        let all = listed["backends"].as_array().unwrap();
        all.iter().find(|b| b["file"] == json!(file)).unwrap()["problem"].clone()
    };
    assert_eq!(problem(&new), Value::Null);
    for part in parts {
        assert!(problem(&old).to_string().contains(part), "{}", problem(&old));
    }

    let started = server(&dir).start();
    assert_eq!(started.number("m0"), 2.0);
    assert_eq!(started.backends()["unusable"][0]["file"], json!(old));
    assert!(started.stop().success());
}

#[test]
fn version_with_another_file_of_one_soname_is_refused() {
    newer_version_is_refused(with_library, &["SONAME 'libdep.so.1'"]);
}

#[test]
fn version_with_the_same_unique_symbol_is_refused() {
    newer_version_is_refused(with_unique_variable, &["unique symbols unique_number as well"]);
}

/// As projects of `trtserver plugin new` are linked.
#[test]
fn version_script_keeps_variables_apart() {
    let dir = folder();
    let script = root().join("plugin-api/package/exports.map");
    let script = format!("-Wl,--version-script={}", script.display());
    put(dir.path(), "1.0", &["-DUNIQUE=1".into(), script.clone()]);
    let server = server(&dir).start();
    put(dir.path(), "2.0", &["-DUNIQUE=2".into(), script]);
    assert_ok(server.load("m1"));
    assert_eq!((server.number("m0"), server.number("m1")), (1.0, 2.0));
    assert!(server.stop().success());
}
