//! Packages of the server, made from the debug install: the Python wheel is installed and serves a
//! model, the Debian package is unpacked and its programs start. `cargo xtask package --try-in` tries
//! those of a release in systems of their own.

use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use trtserver_tests::versions::Versions;
use trtserver_tests::{Server, command_output, dist, folder, root};

/// Packs the debug install.
fn pack(kind: &str, into: &Path) {
    let mut xtask = Command::new(env!("CARGO"));
    xtask.current_dir(root()).args(["xtask", "package", "--only", kind, "--from"]).arg(dist());
    command_output(xtask.arg("--into").arg(into));
}

/// The only file of a directory with this ending.
fn made(directory: &Path, ending: &str) -> PathBuf {
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
    command_output(pip.arg("--target").arg(&site).arg(made(dir.path(), "whl")));
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
    command_output(Command::new("dpkg-deb").arg("-x").arg(made(dir.path(), "deb")).arg(&to));
    command_output(Command::new(to.join("usr/bin/trtserver")).arg("--version"));
    command_output(Command::new(to.join("usr/bin/trtserver-perf")).arg("--version"));
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

/// An install of a few files, whose program passes on to the real one.
fn small_install(into: &Path) {
    let write = |name: &str, text: &str| {
        let path = into.join(name);
        fs::create_dir_all(path.parent().unwrap_or(into)).unwrap_or_else(|e| panic!("{name}: {e}"));
        fs::write(&path, text).unwrap_or_else(|e| panic!("{name}: {e}"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
    };
    let program = dist().join("bin/trtserver");
    write("bin/trtserver", &format!("#!/bin/sh\nexec {} \"$@\"\n", program.display()));
    for name in [
        "LICENSE",
        "plugins/triton/plugin.toml",
        "plugins/triton/fetch/python.toml",
        "include/trtserver/backend.hpp",
    ] {
        write(name, name);
    }
    write("base/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
    write("base/etc/group", "root:x:0:\n");
}

fn pack_small(install: &Path, into: &Path) {
    let mut xtask = Command::new(env!("CARGO"));
    xtask.current_dir(root()).args(["xtask", "package", "--from"]).arg(install);
    command_output(xtask.arg("--base").arg(install.join("base")).arg("--into").arg(into));
}

/// What a program prints for a file, up to the first space.
fn hash_of(script: &str, file: &Path) -> String {
    let out = Command::new("sh").args(["-c", script, "sh"]).arg(file).output();
    let text = out.unwrap_or_else(|e| panic!("{script}: {e}")).stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    format!("sha256:{}", text.split(' ').next().unwrap_or_default())
}

/// The files below a directory with their hashes.
fn files_below(directory: &Path, found: &mut BTreeMap<PathBuf, String>, top: &Path) {
    for entry in fs::read_dir(directory).unwrap_or_else(|e| panic!("{directory:?}: {e}")).flatten()
    {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, found, top);
        } else {
            let name = path.strip_prefix(top).unwrap_or(&path).to_owned();
            found.insert(name, hash_of("sha256sum < \"$1\"", &path));
        }
    }
}

#[test]
fn packages_have_the_same_bytes_when_they_are_packed_again() {
    let dir = folder();
    let install = dir.path().join("install");
    small_install(&install);
    let packed = ["first", "second"].map(|name| {
        let (into, mut files) = (dir.path().join(name), BTreeMap::new());
        pack_small(&install, &into);
        files_below(&into, &mut files, &into);
        files
    });
    let [first, second] = &packed;
    for ending in ["whl", "zst", "deb", "json"] {
        let has = |path: &PathBuf| path.extension().is_some_and(|found| found == ending);
        assert!(first.keys().any(has), "no .{ending} in {first:?}");
    }
    assert_eq!(first, second);
    check_image(&dir.path().join("first/image"));
    let archive = made(&dir.path().join("first"), "zst");
    let listed = Command::new("tar").arg("--zstd").arg("-tf").arg(archive).output();
    let listed = String::from_utf8_lossy(&listed.expect("tar").stdout).into_owned();
    for part in ["bin/trtserver", "licences/", "share/sbom.cdx.json", "include/", "plugins/"] {
        let has = listed.lines().any(|line| line.split_once('/').is_some_and(|(_, at)| at == part));
        assert!(has, "no {part} in {listed}");
    }
}

/// Every blob has the digest and the size that its descriptor says, and the layers those of the
/// configuration.
fn check_image(layout: &Path) {
    let read = |path: PathBuf| -> serde_json::Value {
        let text = fs::read(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{path:?}: {e}"))
    };
    let blob = |descriptor: &serde_json::Value| {
        let digest = descriptor["digest"].as_str().unwrap_or_default();
        let path = layout.join("blobs").join(digest.replace(':', "/"));
        assert_eq!(hash_of("sha256sum < \"$1\"", &path), digest);
        let size = path.metadata().map(|file| file.len()).ok();
        assert_eq!(size, descriptor["size"].as_u64(), "{descriptor}");
        path
    };
    assert_eq!(read(layout.join("oci-layout"))["imageLayoutVersion"], "1.0.0");
    let index = read(layout.join("index.json"));
    let images = index["manifests"].as_array().unwrap_or_else(|| panic!("{index}"));
    assert_eq!(images.len(), 1, "{index}");
    let manifest = read(blob(&images[0]));
    let config = read(blob(&manifest["config"]));
    let layers = manifest["layers"].as_array().unwrap_or_else(|| panic!("{manifest}"));
    let unpacked: Vec<String> =
        layers.iter().map(|layer| hash_of("gzip -dc \"$1\" | sha256sum", &blob(layer))).collect();
    assert_eq!(json!(unpacked), config["rootfs"]["diff_ids"]);
    assert_eq!(layers.len(), 2);
    let listed = Command::new("tar").arg("-tvzf").arg(blob(&layers[1])).output();
    let listed = listed.unwrap_or_else(|e| panic!("tar: {e}"));
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for end in [
        " opt/tritonserver/bin/tritonserver -> trtserver",
        " opt/tensorrtserver/bin/trtserver -> ../../tritonserver/bin/trtserver",
        " opt/inference_server/bin/inference_server -> ../../tritonserver/bin/trtserver",
        " opt/tritonserver/caches/",
        " opt/tritonserver/entrypoint.sh",
        " etc/passwd",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(end)), "no{end} in {listed}");
    }
    let settings = &config["config"];
    assert_eq!(settings["User"], "1000:1000");
    assert_eq!(settings["StopSignal"], "SIGTERM");
    assert_eq!(settings["WorkingDir"], "/opt/tritonserver");
    // Where it is installed: a second reader of the format.
    if let Ok(skopeo) = Command::new("skopeo").arg("--version").output()
        && skopeo.status.success()
    {
        let image = format!("oci:{}:{}", layout.display(), env!("CARGO_PKG_VERSION"));
        command_output(Command::new("skopeo").args(["inspect", &image]));
    }
}

/// The crates that registries may have, together: they depend on each other. Nothing is compiled.
#[test]
fn published_crates_can_be_packaged() {
    let mut metadata = Command::new("cargo");
    metadata.args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let metadata: serde_json::Value =
        serde_json::from_str(&command_output(metadata.current_dir(root()))).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let published: Vec<_> = packages.iter().filter(|p| p["publish"].is_null()).collect();
    let name_of = |package: &serde_json::Value| package["name"].as_str().unwrap().to_owned();
    let names: Vec<_> = published.iter().map(|package| name_of(package)).collect();
    for name in ["trtserver", "trtserver-client", "trtserver-plugin-api"] {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
    for package in &published {
        // The workspace's address, which is empty until there is one: `cargo xtask release-check`.
        for key in ["description", "license", "repository"] {
            assert!(package[key].is_string(), "{}: no {key}", package["name"]);
        }
    }
    let target = root().join("target/sdk");
    let mut cargo = Command::new("cargo");
    cargo
        .args(["package", "--no-verify", "--allow-dirty", "--offline", "--target-dir"])
        .arg(&target);
    cargo.args(names.iter().flat_map(|name| ["--package", name]));
    command_output(cargo.current_dir(root()));
    for (package, files) in [
        ("trtserver-plugin-api", ["LICENSE", "include/trtserver/backend.hpp"]),
        ("trtserver-plugin-testkit", ["LICENSE", "src/lib.rs"]),
        // Links to other folders of the checkout.
        ("trtserver-tool", ["sources/workspace.toml", "sources/interface/abi/mod.rs"]),
        ("trtserver", ["Cargo.lock", "src/main.rs"]),
    ] {
        let found = published.iter().find(|found| found["name"] == package).unwrap();
        let package = format!("{package}-{}", found["version"].as_str().unwrap());
        let archive = target.join(format!("package/{package}.crate"));
        let listed = command_output(Command::new("tar").arg("-tzf").arg(archive));
        for file in ["Cargo.toml", files[0], files[1]] {
            assert!(listed.lines().any(|l| l == format!("{package}/{file}")), "{file}: {listed}");
        }
    }
}
