//! `trtserver plugin list`: installed backends, and why files cannot be used.

use super::{json, tool, violation};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use trtserver_tests::triton::Triton;
use trtserver_tests::{Server, compile_c, dist, folder};

#[test]
fn list_shows_installed_backends() {
    let ended = tool("list", &[&"--json"]);
    assert_eq!(ended.code(), 0, "{}{}", ended.stdout, ended.stderr);
    let all = json(&ended);
    let backends = all["backends"].as_array().expect("a list");
    let find = |name: &str| backends.iter().find(|b| b["name"] == name).expect("installed");
    let probe = find("probe");
    assert_eq!((&probe["abi"], &probe["usable"]), (&"1.0".into(), &true.into()));
    assert_eq!(probe["platforms"], serde_json::json!(["probe"]));
    assert!(probe["runtime"].as_str().is_some_and(|r| r.starts_with("probe ")), "{probe}");
    assert_eq!(probe["isolation"], "none");
    let file = find("onnxruntime")["file"].as_str().map(PathBuf::from).expect("a path");
    assert!(file.starts_with(dist()), "{}", file.display());
    let table = tool("list", &[]);
    let line = table.stdout.lines().find(|l| l.starts_with("onnxruntime ")).expect("a line");
    assert!(line.contains("onnxruntime_onnx") && line.contains("ONNX Runtime"), "{line}");
}

/// A library `libNAME.so` with one function, linked against `with`.
fn library(dir: &Path, name: &str, with: &[&str]) -> PathBuf {
    let source = dir.join(format!("{name}.c"));
    let calls: String = with
        .iter()
        .map(|w| format!("int {w}(void);\nint (*const use_{w})(void) = {w};\n"))
        .collect();
    fs::write(&source, format!("{calls}int {name}(void) {{ return 1; }}\n")).expect("a file");
    let file = dir.join(format!("lib{name}.so"));
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-shared", "-fPIC", "-o"]).arg(&file).arg(&source).arg("-L").arg(dir);
    cc.arg("-Wl,-rpath,$ORIGIN").args(with.iter().map(|w| format!("-l{w}")));
    let done = cc.output().expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    file
}

#[test]
fn list_gives_reason_for_unusable_files() {
    let dir = folder();
    let at = |name: &str| dir.path().join(format!("libtrtserver_{name}.so"));
    compile_c("tests/plugins/c-merge/merge.c", dir.path(), "c_merge");
    compile_c("tests/plugins/broken/wrong_major.c", dir.path(), "wrong_major");
    fs::copy(violation(dir.path(), "CRASHES_ON_CLOSE"), at("crasher")).expect("a copy");
    fs::remove_file(at("crashes_on_close")).expect("it was there");
    fs::write(at("text"), "not a library").expect("a file");
    fs::write(at("empty"), "").expect("a file");
    let mut foreign = fs::read(at("c_merge")).expect("a library");
    foreign[18] = if foreign[18] == 183 { 62 } else { 183 };
    fs::write(at("foreign"), foreign).expect("a file");
    library(dir.path(), "gone", &[]);
    library(dir.path(), "lost", &[]);
    library(dir.path(), "between", &["lost"]);
    let needy = library(dir.path(), "needy", &["gone", "between"]);
    fs::rename(needy, at("needy")).expect("a rename");
    for gone in ["gone", "lost"] {
        fs::remove_file(dir.path().join(format!("lib{gone}.so"))).expect("it was there");
    }
    let ended = tool("list", &[&"--json", &"--backend-dir", &dir.path()]);
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    let all = json(&ended);
    let entry = |name: &str| {
        let found = all["backends"].as_array().expect("a list").iter().find(|b| b["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {all:#}"))
    };
    assert_eq!(entry("c_merge")["usable"], true);
    for (name, text) in [
        ("wrong_major", "99.0"),
        ("violation", "SIGABRT"),
        ("text", "not a shared library"),
        ("empty", "empty"),
        ("foreign", "another machine"),
        ("needy", "libgone.so"),
        ("needy", "liblost.so (needed by libbetween.so)"),
    ] {
        let problem = entry(name)["problem"].as_str().unwrap_or_default().to_owned();
        assert!(problem.contains(text), "{name}: no {text:?} in {problem:?}");
    }
    assert_eq!(entry("wrong_major")["abi"], "99.0");
    assert_eq!(entry("needy")["missing_libraries"].as_array().map(Vec::len), Some(2));
    // Isolation is the operator's decision.
    fs::write(dir.path().join("plugin.toml"), "isolation = \"process\"\n").expect("a file");
    let table = tool("list", &[&"--backend-dir", &dir.path()]);
    let line = table.stdout.lines().find(|l| l.starts_with("c_merge ")).expect("a line");
    assert!(line.contains(" process "), "{line}");
    assert!(
        table.stdout.contains("cannot be used: shared libraries are missing"),
        "{}",
        table.stdout
    );
}

#[test]
fn list_names_a_library_that_is_not_named_like_a_plugin() {
    let dir = folder();
    let file = dir.path().join("hello/hello.so");
    fs::create_dir(dir.path().join("hello")).expect("a directory");
    fs::rename(library(dir.path(), "hello", &[]), &file).expect("a rename");
    let listed = tool("list", &[&"--backend-dir", &dir.path()]);
    let text = format!("'{}' is not a plugin by its name", file.display());
    assert!(listed.stdout.contains(&text), "{}", listed.stdout);
}

#[test]
fn list_names_the_interface_of_backends_built_with_triton() {
    let listed = tool("list", &[&"--backend-directory", &Triton::backends()]);
    assert_eq!(listed.code(), 0, "{}{}", listed.stdout, listed.stderr);
    let line = listed.stdout.lines().find(|line| line.starts_with("python ")).expect("a line");
    for part in
        ["triton-1.", "Triton backend API 1.", "process", "libtriton_python.so (through triton)"]
    {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn list_marks_backends_the_server_refuses() {
    let dir = folder();
    let first = compile_c("tests/plugins/c-merge/merge.c", dir.path(), "c_merge");
    let problems = |args: &[&str]| {
        let path = dir.path();
        let mut all: Vec<&dyn AsRef<Path>> = vec![&"--json", &"--backend-dir", &path];
        all.extend(args.iter().map(|w| w as &dyn AsRef<Path>));
        let ended = tool("list", &all);
        let list = json(&ended)["backends"].as_array().expect("a list").clone();
        let reason = |b: &Value| b["problem"].as_str().unwrap_or("none").to_owned();
        (list.iter().map(reason).collect::<Vec<_>>(), ended.code())
    };
    // Another name of one file is not a second file.
    std::os::unix::fs::symlink(&first, dir.path().join("libtrtserver_link.so")).expect("a link");
    assert_eq!(problems(&[]), (vec!["none".to_owned(); 2], 0));
    fs::copy(&first, dir.path().join("libtrtserver_twin.so")).expect("a copy");
    let (reasons, code) = problems(&[]);
    assert!(code == 1 && reasons[2].contains("claimed by"), "{reasons:?}");
    let (reasons, code) = problems(&["--backend-config=c_merge,isolation=proces"]);
    assert!(
        code == 1 && reasons[0].contains("must be 'none' or 'process', got 'proces'"),
        "{reasons:?}"
    );
    fs::write(dir.path().join("plugin.toml"), "isolation = 1\n").expect("a file");
    let (reasons, code) = problems(&[]);
    assert!(code == 1 && reasons.len() == 3, "{reasons:?}");
    assert!(
        reasons.iter().all(|t| t.contains("plugin.toml") && t.contains("isolation")),
        "{reasons:?}"
    );
}

#[test]
fn unknown_key_in_plugin_toml_is_a_warning() {
    let dir = folder();
    compile_c("tests/plugins/c-merge/merge.c", dir.path(), "c_merge");
    fs::write(dir.path().join("plugin.toml"), "isolaton = \"process\"\n").expect("a file");
    let text = "plugin.toml': unknown key 'isolaton' is ignored; did you mean 'isolation'?";
    let listed = tool("list", &[&"--backend-dir", &dir.path()]);
    assert_eq!(listed.code(), 0, "{}", listed.stdout);
    let warned = listed.stdout.lines().any(|l| l.starts_with("  warning: ") && l.ends_with(text));
    assert!(warned, "{}", listed.stdout);
    let server = Server::new().backend_dir(dir.path()).start();
    server.wait_for_log(text);
    server.wait_for_log("found backend 'c_merge'");
    assert!(server.stop().success());
}
