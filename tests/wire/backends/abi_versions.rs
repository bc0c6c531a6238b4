//! Version rules of the plugin interface: backends of another major version or a newer minor
//! version, with tables of the wrong size, or with extensions that this host lacks are refused, in
//! C and in Rust.
//!
//! From the first release on this test has to run backends, too, that were built against each released
//! interface: see *Releases* in CONTRIBUTING.md.

#![allow(clippy::unwrap_used)] // the functions here are parts of tests

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use trtserver_tests::versions::{Version, Versions, model};
use trtserver_tests::{Server, backends, folder, probe, root};

/// Next to the installed backends.
fn server(dir: &TempDir) -> Server {
    let server = Server::new().backend_dir(dir.path()).backend_dir(backends());
    server.model("echo", probe("echo", &[]))
}

/// That backend is refused with a log line of these parts, and the others serve.
fn refused(dir: &TempDir, parts: &[&str]) {
    let server = server(dir).start();
    let line = server.wait_for_log_with(parts);
    assert_eq!(server.infer("echo", "").status, 200, "{line}");
    assert!(server.stop().success());
}

/// A C backend compiled with these macros is refused with a log line of these parts.
fn refused_in_c(name: &str, macros: &[&str], parts: &[&str]) {
    let dir = folder();
    Version { macros, ..Version::named(name, "1.0", 0.0) }.put(dir.path(), name);
    let file = format!("libtrtserver_{name}.so");
    refused(&dir, &[&[&*file], parts].concat());
}

fn built_for(interface: &str) -> String {
    format!("built for plugin interface {interface}, this host offers 1.0")
}

#[test]
fn other_major_and_newer_minor_versions_are_refused_in_c() {
    refused_in_c("major", &["MAJOR=2", "MINOR=0"], &[&built_for("2.0")]);
    refused_in_c("minor", &["MAJOR=1", "MINOR=7"], &[&built_for("1.7")]);
}

#[test]
fn small_table_is_refused_with_both_sizes() {
    let parts = ["its table has 64 bytes, interface 1.0 has "];
    refused_in_c("small", &["SIZE=64"], &parts);
}

#[test]
fn required_extension_that_the_host_lacks_is_named() {
    let offers = "this host offers: 'trts.batch_parts' 1, 'trts.histograms' 1, 'trts.inference' 1, 'trts.memory' 1, 'trts.metrics' 2, 'trts.process' 1";
    let unknown = "it requires the host extension 'trts.teleport' 1, ";
    refused_in_c("unknown", &["REQUIRES=\"trts.teleport\""], &[unknown, offers]);
    let newer = "it requires the host extension 'trts.metrics' 3, ";
    let macros = ["REQUIRES=\"trts.metrics\"", "REQUIRES_VERSION=3"];
    refused_in_c("newer", &macros, &[newer, offers]);
}

#[test]
fn listed_extension_that_is_not_returned_is_named() {
    let parts = ["it lists the extension 'trts.cancel' 1 and does not return it"];
    refused_in_c("unreturned", &["LISTS=\"trts.cancel\""], &parts);
}

#[test]
fn required_extension_that_the_host_offers_is_accepted() {
    let dir = folder();
    let macros = ["REQUIRES=\"trts.metrics\""];
    Version { macros: &macros, ..Version::named("v", "1.0", 3.0) }.put(dir.path(), "v");
    let server = server(&dir).model("v", model("v", "v", "")).start();
    assert_eq!(server.number("v"), 3.0);
    let all = server.backends();
    let of = |b: &&Value| b["name"] == "v";
    let found = all["backends"].as_array().unwrap().iter().find(of).unwrap();
    assert_eq!(found["interface"], json!("1.0"), "{all}");
    assert!(server.stop().success());
}

/// A Rust example built against this package as a later version of the interface.
#[test]
fn other_major_and_newer_minor_versions_are_refused_in_rust() {
    for (version, interface) in [("2.0.0", "2.0"), ("1.7.0", "1.7")] {
        let (major, minor) = interface.split_once('.').unwrap();
        let later = |text: &str| {
            text.replace("ABI_MAJOR: u32 = 1;", &format!("ABI_MAJOR: u32 = {major};"))
                .replace("ABI_MINOR: u32 = 0;", &format!("ABI_MINOR: u32 = {minor};"))
                .replace("version = \"1.0.0\"", &format!("version = \"{version}\""))
        };
        let to = root().join(format!("target/tmp/interface-{version}"));
        mirror(&root().join("plugin-api/src"), &to.join("plugin-api/src"), &later);
        write(&to.join("plugin-api/Cargo.toml"), &later(PACKAGE));
        let example = root().join("examples/backends/rust-addsub");
        mirror(&example.join("src"), &to.join("backend/src"), &str::to_owned);
        write(&to.join("backend/Cargo.toml"), BACKEND);
        let lock = fs::read_to_string(example.join("Cargo.lock")).unwrap();
        let lock = lock.replace("\"trtserver_rust_addsub\"", "\"later-backend\"");
        write(&to.join("Cargo.lock"), &later(&lock));
        write(
            &to.join("Cargo.toml"),
            "[workspace]\nresolver = \"3\"\nmembers = [\"plugin-api\", \"backend\"]\n",
        );
        let dir = folder();
        build(&to, &dir);
        refused(&dir, &["libtrtserver_later.so", &built_for(interface)]);
    }
}

const PACKAGE: &str = "[package]
name = \"trtserver-plugin-api\"
version = \"1.0.0\"
edition = \"2024\"

[dependencies]
abi_stable = { version = \"0.11.3\", default-features = false }
";

const BACKEND: &str = "[package]
name = \"later-backend\"
version = \"0.1.0\"
edition = \"2024\"

[lib]
crate-type = [\"cdylib\"]

[dependencies]
trtserver-plugin-api = { path = \"../plugin-api\" }
";

/// Copies a folder of text files with a change.
fn mirror(from: &Path, to: &Path, change: &dyn Fn(&str) -> String) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            mirror(&from, &to, change);
        } else if from.extension() == Some(OsStr::new("rs")) {
            write(&to, &change(&fs::read_to_string(&from).unwrap()));
        }
    }
}

/// Writes a file unless it has this content, so that cargo does not compile it again.
fn write(to: &Path, text: &str) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    if fs::read_to_string(to).ok().as_deref() != Some(text) {
        fs::write(to, text).unwrap();
    }
}

/// Builds the backend of a workspace with the dependencies that were built for this one, and puts
/// it into `dir`.
fn build(workspace: &Path, dir: &TempDir) {
    let target = root().join("target");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--offline", "-p", "later-backend", "--manifest-path"]);
    cargo.arg(workspace.join("Cargo.toml")).arg("--target-dir").arg(&target);
    let done = cargo.output().unwrap_or_else(|e| panic!("cargo: {e}"));
    assert!(done.status.success(), "{cargo:?}\n{}", String::from_utf8_lossy(&done.stderr));
    let file = dir.path().join("libtrtserver_later.so");
    fs::copy(target.join("debug/liblater_backend.so"), file).unwrap();
}
