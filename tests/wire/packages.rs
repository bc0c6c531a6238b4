//! Packages of the server, made from the debug install: the Python wheel is installed and serves a
//! model, the Debian package is unpacked and its programs start.

use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use trtserver_tests::versions::Versions;
use trtserver_tests::{Server, dist, folder, root};

/// Packs the debug install.
fn pack(kind: &str, into: &Path) {
    let mut xtask = Command::new(env!("CARGO"));
    xtask.current_dir(root()).args(["xtask", "package", "--only", kind, "--from"]).arg(dist());
    run(xtask.arg("--into").arg(into));
}

fn run(command: &mut Command) {
    let ended = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{command:?}: {}: {errors}", ended.status);
}

/// The only file of a directory with this ending.
fn made(directory: &Path, ending: &str) -> std::path::PathBuf {
    let files = fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut paths = files.flatten().map(|entry| entry.path());
    let found = paths.find(|path| path.extension().is_some_and(|found| found == ending));
    found.unwrap_or_else(|| panic!("no .{ending} in {}", directory.display()))
}

#[test]
fn wheel_serves_with_the_runtime_beside_it() {
    let dir = folder();
    pack("wheel", dir.path());
    let site = dir.path().join("site-packages");
    let python = std::env::var_os("TRTSERVER_PY_V2").unwrap_or_else(|| "python3".into());
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]);
    run(pip.arg("--target").arg(&site).arg(made(dir.path(), "whl")));
    // As the package onnxruntime has it.
    let capi = site.join("onnxruntime/capi");
    fs::create_dir_all(&capi).unwrap_or_else(|e| panic!("{}: {e}", capi.display()));
    let library = dist().join("lib/libonnxruntime.so.1");
    symlink(&library, capi.join("libonnxruntime.so.1.31.1")).unwrap_or_else(|e| panic!("{e}"));
    for program in [
        vec![python.clone(), "-m".into(), "trtserver".into()],
        vec![site.join("bin/trtserver").into_os_string()],
    ] {
        let server = Server::new()
            .program(program)
            .backend_dir(site.join("trtserver/backends"))
            .env("PYTHONPATH", &site)
            .env("TRTSERVER_ONNXRUNTIME_LIBRARY", "")
            .copy_model("examples/models/dynamic_shape")
            .start();
        let input = json!({"name": "INPUT", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]});
        let request = json!({ "inputs": [input] }).to_string();
        let response = server.post("/v2/models/dynamic_shape/infer", &[], request);
        assert_eq!(response.status, 200, "{}", response.text());
        let backends = server.backends()["backends"].to_string();
        assert!(backends.contains("site-packages/trtserver/backends/onnxruntime"), "{backends}");
        assert!(server.stop().success());
    }
}

#[test]
fn debian_package_has_what_its_unit_starts() {
    let dir = folder();
    pack("deb", dir.path());
    let to = dir.path().join("root");
    run(Command::new("dpkg-deb").arg("-x").arg(made(dir.path(), "deb")).arg(&to));
    run(Command::new(to.join("usr/bin/trtserver")).arg("--version"));
    run(Command::new(to.join("usr/bin/trtserver-perf")).arg("--version"));
    for file in [
        "etc/trtserver/trtserver.toml",
        "lib/systemd/system/trtserver.service",
        "usr/lib/trtserver/backends/onnxruntime/libtrtserver_onnxruntime.so",
        "usr/share/man/man1/trtserver.1.gz",
    ] {
        assert!(to.join(file).is_file(), "no {file}");
    }
    let configuration = fs::read_to_string(to.join("etc/trtserver/trtserver.toml"));
    let keys = configuration.unwrap_or_default();
    let help = Command::new(to.join("usr/bin/trtserver")).arg("--help").output();
    let help = String::from_utf8_lossy(&help.unwrap_or_else(|e| panic!("{e}")).stdout).into_owned();
    for (key, _) in keys.lines().filter_map(|line| line.split_once(" = ")) {
        assert!(help.contains(&format!("--{key} ")), "the unit's file has the unknown flag {key}");
    }
}
