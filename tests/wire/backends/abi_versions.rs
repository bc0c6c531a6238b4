//! Backends that were built for another version of the plugin interface: older minor numbers run, newer ones and other
//! majors are refused in words. In C and, where abi_stable compares layouts, in Rust.

#![allow(clippy::unwrap_used)] // the functions here are parts of tests

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;
use trtserver_tests::versions::{Version, Versions, model};
use trtserver_tests::{Server, backends, folder, probe, root};

const FROZEN: &str = "tests/plugins/frozen/1.0";

/// Beside the backends of the install.
fn server(dir: &TempDir) -> Server {
    let server = Server::new().backend_dir(dir.path()).backend_dir(backends());
    server.model("echo", probe("echo", &[]))
}

/// That backend is refused with a line of these parts, and the others serve.
fn refused(dir: &TempDir, parts: &[&str]) {
    let server = server(dir).start();
    let line = server.wait_for_log_with(parts);
    assert_eq!(server.infer("echo", "").status, 200, "{line}");
    assert!(server.stop().success());
}

#[test]
fn c_backend_of_newer_abi() {
    for (name, macros, built) in
        [("major", ["MAJOR=2", "MINOR=0"], "2.0"), ("minor", ["MAJOR=1", "MINOR=7"], "1.7")]
    {
        let dir = folder();
        Version { macros: &macros, ..Version::of(name, "1.0", 0.0) }.put(dir.path(), name);
        let (file, built) = (format!("libtrtserver_{name}.so"), built_for(built));
        refused(&dir, &[&file, &built]);
    }
}

fn built_for(interface: &str) -> String {
    format!("built for plugin interface {interface}, this host offers 1.1")
}

#[test]
fn c_backend_of_older_abi() {
    let dir = folder();
    Version { interface: "1.0", ..Version::of("v", "0.9", 9.0) }.put(dir.path(), "v/0.9");
    Version::of("v", "1.0", 1.0).put(dir.path(), "v/1.0");
    let server =
        server(&dir).model("old", model("old", "v", "0.9")).model("new", model("new", "v", ""));
    let server = server.start();
    assert_eq!((server.number("old"), server.number("new")), (9.0, 1.0));
    let all = server.backends();
    let interface = |version: &str| {
        let of = |b: &&Value| b["name"] == "v" && b["version"] == version;
        all["backends"].as_array().unwrap().iter().find(of).map(|b| b["interface"].clone())
    };
    assert_eq!((interface("0.9"), interface("1.0")), (Some(json!("1.0")), Some(json!("1.1"))));
    assert!(server.stop().success());
}

#[test]
fn rust_backend_of_older_abi() {
    let dir = folder();
    build(&root().join(FROZEN), &["--locked"], &dir);
    let server = server(&dir).model("old", model("old", "frozen_rust", "")).start();
    assert_eq!((server.number("old"), server.number("echo")), (2.0, 1.0));
    let all = server.backends();
    let of = |b: &&Value| b["name"] == "frozen_rust";
    let old = all["backends"].as_array().unwrap().iter().find(of);
    assert_eq!(old.unwrap()["interface"], json!("1.0"), "{all}");
    assert!(server.stop().success());
}

/// Today's package as it might be later, and the backend that was written for 1.0.
#[test]
fn rust_backend_of_newer_abi() {
    for (version, interface) in [("2.0.0", "2.0"), ("1.7.0", "1.7")] {
        let (major, minor) = interface.split_once('.').unwrap();
        let later = |text: &str| {
            text.replace("ABI_MAJOR: u32 = 1;", &format!("ABI_MAJOR: u32 = {major};"))
                .replace("ABI_MINOR: u32 = 1;", &format!("ABI_MINOR: u32 = {minor};"))
                .replace("version = \"1.0.0\"", &format!("version = \"{version}\""))
        };
        let to = root().join(format!("target/tmp/interface-{version}"));
        mirror(&root().join(FROZEN), &to, &later);
        mirror(&root().join("plugin-api/src"), &to.join("plugin-api/src"), &later);
        let dir = folder();
        build(&to, &[], &dir);
        refused(&dir, &["libtrtserver_frozen_rust.so", &built_for(interface)]);
    }
}

/// Copies a folder of texts with a change; files that are as they should be are not touched, so that they are not
/// compiled again.
fn mirror(from: &Path, to: &Path, change: &dyn Fn(&str) -> String) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.file_name() == Some(OsStr::new("include")) {
            continue;
        }
        if from.is_dir() {
            mirror(&from, &to, change);
            continue;
        }
        let text = change(&fs::read_to_string(&from).unwrap());
        if fs::read_to_string(&to).ok().as_ref() != Some(&text) {
            fs::write(&to, text).unwrap();
        }
    }
}

/// Builds the backend of a workspace with the dependencies that were built for today's, and puts it into `dir`.
fn build(workspace: &Path, options: &[&str], dir: &TempDir) {
    /// All of them are built to one place.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let target = root().join("target");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--offline", "-p", "frozen-backend"]).args(options);
    cargo.arg("--manifest-path").arg(workspace.join("Cargo.toml")).arg("--target-dir").arg(&target);
    let done = cargo.output().unwrap_or_else(|e| panic!("cargo: {e}"));
    assert!(done.status.success(), "{cargo:?}\n{}", String::from_utf8_lossy(&done.stderr));
    let file = dir.path().join("libtrtserver_frozen_rust.so");
    fs::copy(target.join("debug/libfrozen_backend.so"), file).unwrap();
}
