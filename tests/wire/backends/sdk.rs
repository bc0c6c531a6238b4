//! The SDK for backend authors: examples and projects of `plugin new` build outside the checkout as
//! their READMEs say, and serve.

#![allow(clippy::unwrap_used, clippy::expect_used)] // what a test needs and does not find is its failure

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use trtserver_tests::isolated::processes;
use trtserver_tests::pages::{follow, follow_with};
use trtserver_tests::{
    Server, build_tool, command_output, dist, folder, python_v2, root, trtserver,
};

/// Target folder of all Rust builds, so that dependencies are compiled once.
pub fn share_target(project: &Path) {
    let shared = root().join("target/sdk");
    fs::create_dir_all(&shared).unwrap();
    symlink(shared, project.join("target")).unwrap();
}

/// A copy of an example outside the checkout.
fn copy(example: &str, to: &Path) {
    let from = root().join("examples/backends").join(example);
    // Committed files only, no build output.
    let listed = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard"])
        .current_dir(&from)
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");
    for file in String::from_utf8(listed.stdout).unwrap().lines() {
        let to = to.join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from.join(file), to).unwrap();
    }
}

const ADDSUB: &str = "max_batch_size: 8\n\
    input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 4 ] }, { name: \"INPUT1\" data_type: TYPE_INT32 dims: [ 4 ] } ]\n\
    output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 4 ] } ]\n";

/// Executes the README of `project`; then a model that the backend cannot serve is refused with its
/// message.
fn builds_and_serves(project: &Path, backend: &str) {
    let followed = follow(&project.join("README.md"), project);
    assert!(followed.commands >= 2);
    let server = followed.server.expect("the README serves");
    server.wait_for_log(&format!("found backend '{backend}'"));
    assert!(server.stop().success());
    let ended = Server::new()
        .backend_dir(project)
        .model("ints", format!("backend: \"{backend}\"\n{ADDSUB}"))
        .refuses_to_start();
    assert!(ended.stderr.contains("model 'ints': tensor 'INPUT0' is "), "{}", ended.stderr);
}

#[test]
fn example_in_rust_builds_and_serves() {
    let dir = folder();
    copy("rust-addsub", dir.path());
    share_target(dir.path());
    builds_and_serves(dir.path(), "rust_addsub");
}

#[test]
fn example_in_c_builds_and_serves() {
    let dir = folder();
    copy("c-addsub", dir.path());
    builds_and_serves(dir.path(), "c_addsub");
}

#[test]
fn streaming_example_in_cpp_builds_and_serves() {
    streams_words("cpp-streaming", "cpp_streaming");
}

/// Responses come from a thread of the backend, after `execute` has returned.
#[test]
fn streaming_example_in_rust_builds_and_serves() {
    streams_words("rust-streaming", "rust_streaming");
}

/// An endless response stream, a limit of three words, and the commands of the page.
fn streams_words(example: &str, backend: &str) {
    let dir = folder();
    copy(example, dir.path());
    if example.starts_with("rust") {
        share_target(dir.path());
    }
    let words = fs::read_to_string(dir.path().join("models/words/config.pbtxt")).unwrap();
    let with = |key: &str, value: &str| {
        let parameter =
            format!("parameters {{ key: \"{key}\" value {{ string_value: \"{value}\" }} }}\n");
        words.lines().filter(|line| !line.contains("max_words")).collect::<Vec<_>>().join("\n")
            + &parameter
    };
    let followed = follow_with(&dir.path().join("README.md"), dir.path(), |server| {
        server.model("endless", with("delay_ms", "600000")).model("three", with("max_words", "3"))
    });
    let server = followed.server.expect("the README serves");
    python_v2(&server, "sdk_streaming.py", &[]);
    assert!(server.stop().success());
    // Isolated: several responses to a request, and cancellations.
    let server = Server::new()
        .backend_dir(dir.path())
        .flag(format!("--backend-config={backend},isolation=process"))
        .model("words", words.clone())
        .model("endless", with("delay_ms", "600000"))
        .model("three", with("max_words", "3"))
        .start();
    server.poll_until("each model has a process", |server| processes(server, "").len() == 3);
    python_v2(&server, "sdk_streaming.py", &[]);
    assert!(server.stop().success());
    for (value, why) in [
        ("soon", "parameter 'delay_ms' is 'soon', which is not an integer"),
        ("-1", "out of range"),
    ] {
        let ended = Server::new()
            .backend_dir(dir.path())
            .model("words", with("delay_ms", value))
            .refuses_to_start();
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
    }
}

/// Compiles the headers with strict warnings.
#[test]
fn headers_compile_without_warnings() {
    let dir = folder();
    let compilers = ["c++", "clang++"]
        .into_iter()
        .filter(|c| Command::new(c).arg("--version").output().is_ok());
    for compiler in compilers {
        let done = Command::new(compiler)
            .args([
                "-std=c++17",
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Wshadow",
                "-Wconversion",
                "-Werror",
                "-fsyntax-only",
            ])
            .arg("-I")
            .arg(root().join("plugin-api/include"))
            .arg(root().join("examples/backends/cpp-streaming/streaming.cpp"))
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{compiler}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

fn new_project(language: &str) {
    let dir = folder();
    let name = format!("new_{language}");
    let project = dir.path().join(&name);
    let ended =
        trtserver(["plugin", "new", &name, "--lang", language, "--dir", project.to_str().unwrap()]);
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(ended.stdout.contains("&& make"), "{}", ended.stdout);
    if language == "rust" {
        share_target(&project);
    }
    builds_and_serves(&project, &name);
    let library = project.join(format!("libtrtserver_{name}.so"));
    let checked = trtserver(["plugin", "check", library.to_str().unwrap()]);
    let whole = checked.stdout.contains(" 0 broken, 0 warning, 0 untested, ");
    assert!(checked.status.success() && whole, "{}{}", checked.stdout, checked.stderr);
}

/// The project contains the crates of the interface: it needs no checkout, and its lock file is
/// complete.
#[test]
fn new_rust_project_builds_and_serves() {
    new_project("rust");
}

#[test]
fn new_rust_project_refers_to_no_checkout() {
    let dir = folder();
    let project = dir.path().join("kept");
    let text = project.to_str().unwrap();
    let ended = trtserver(["plugin", "new", "kept", "--lang", "rust", "--dir", text]);
    assert!(ended.status.success(), "{}", ended.stderr);
    let manifest = fs::read_to_string(project.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("{ path = \"vendor/plugin-api\" }"), "{manifest}");
    assert!(manifest.contains("{ path = \"vendor/plugin-api/testkit\" }"), "{manifest}");
    assert!(!manifest.contains(root().to_str().unwrap()), "{manifest}");
    share_target(&project);
    let done = Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(&project)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A copy of the install without the programs, as a package for authors has it.
fn moved_install(to: &Path) {
    let copied = Command::new("cp")
        .args(["-r", "LICENSE", "include", "share"])
        .arg(to)
        .current_dir(dist())
        .output()
        .unwrap();
    assert!(copied.status.success(), "{copied:?}");
}

#[test]
fn install_contains_licence_and_headers() {
    let licence = fs::read_to_string(dist().join("LICENSE")).unwrap();
    assert!(licence.contains("Apache License"));
    let header = fs::read_to_string(dist().join("include/trtserver/trtserver.h")).unwrap();
    assert!(header.starts_with("/* SPDX-License-Identifier: Apache-2.0 */"), "{header}");
}

#[test]
fn pkg_config_finds_the_headers_of_a_moved_install() {
    let dir = folder();
    moved_install(dir.path());
    let pkg_config = |args: &[&str]| {
        let search = dir.path().join("share/pkgconfig");
        command_output(
            Command::new(build_tool("pkgconf")).args(args).env("PKG_CONFIG_PATH", search),
        )
    };
    assert_eq!(pkg_config(&["--modversion", "trtserver-plugin"]), "1.0.0");
    let flags = pkg_config(&["--cflags", "trtserver-plugin >= 1.0"]);
    let library = dir.path().join("libtrtserver_c_addsub.so");
    let source = root().join("examples/backends/c-addsub/addsub.c");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Werror", "-shared", "-fPIC"]).args(flags.split_whitespace());
    command_output(cc.arg("-o").arg(&library).arg(source));
    let listed = trtserver(["plugin", "list", "--backend-dir", dir.path().to_str().unwrap()]);
    assert!(listed.stdout.contains("c_addsub"), "{}{}", listed.stdout, listed.stderr);
}

#[test]
fn cmake_package_of_a_moved_install_builds_plugins() {
    let dir = folder();
    let (prefix, project) = (dir.path().join("prefix"), dir.path().join("project"));
    fs::create_dir_all(&prefix).unwrap();
    fs::create_dir_all(&project).unwrap();
    moved_install(&prefix);
    for (example, source) in [("c-addsub", "addsub.c"), ("cpp-streaming", "streaming.cpp")] {
        let from = root().join("examples/backends").join(example).join(source);
        fs::copy(from, project.join(source)).unwrap();
    }
    let cmake = |lists: &str| {
        let lists = format!("cmake_minimum_required(VERSION 3.17)\nproject(p C CXX)\n{lists}");
        fs::write(project.join("CMakeLists.txt"), lists).unwrap();
        let build = project.join("build");
        let _ = fs::remove_dir_all(&build);
        let mut configure = Command::new(build_tool("cmake"));
        configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())).args(["-G", "Ninja"]);
        configure.arg(format!("-DCMAKE_MAKE_PROGRAM={}", build_tool("ninja").display()));
        configure.arg("-S").arg(&project).arg("-B").arg(build);
        configure
    };
    command_output(&mut cmake(
        "find_package(trtserver-plugin 1.0 REQUIRED)\ntrtserver_add_plugin(c_addsub addsub.c)\n\
         trtserver_add_plugin(cpp_streaming streaming.cpp)\n",
    ));
    command_output(Command::new(build_tool("cmake")).arg("--build").arg(project.join("build")));
    for name in ["c_addsub", "cpp_streaming"] {
        let file = project.join(format!("build/libtrtserver_{name}.so"));
        let file = file.to_str().unwrap();
        let checked = trtserver(["plugin", "check", file, "--only", "file.exports"]);
        assert!(checked.stdout.contains("1 kept, "), "{}{}", checked.stdout, checked.stderr);
    }
    // What a project may do wrong is named.
    for (lists, why) in [
        ("find_package(trtserver-plugin 2.0 REQUIRED)\n", "version: 1.0.0"),
        (
            "find_package(trtserver-plugin REQUIRED)\ntrtserver_add_plugin(c-addsub addsub.c)\n",
            "'c-addsub' is not a valid name for a backend",
        ),
        (
            "find_package(trtserver-plugin REQUIRED)\ntrtserver_add_plugin(c_addsub)\n",
            "expected source files",
        ),
    ] {
        let done = cmake(lists).output().unwrap();
        let text = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && text.contains(why), "{lists}: {text}");
    }
}

#[test]
fn new_c_project_builds_and_serves() {
    new_project("c");
}

#[test]
fn new_cpp_project_builds_and_serves() {
    new_project("cpp");
}

#[test]
fn plugin_new_refuses_invalid_arguments() {
    let dir = folder();
    let full = dir.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("mine"), "precious").unwrap();
    let (free, file) = (dir.path().join("free"), full.join("mine"));
    let (full, free, file) =
        (full.to_str().unwrap(), free.to_str().unwrap(), file.to_str().unwrap());
    for (words, code, why) in [
        (
            vec!["no-dash", "--lang", "c", "--dir", free],
            1,
            "'no-dash' is not a valid name for a backend: it contains '-'",
        ),
        (vec!["../../etc", "--lang", "c"], 1, "it contains '.'"),
        (
            vec!["mine", "--lang", "c", "--dir", full],
            1,
            "exists and is not empty; nothing was written",
        ),
        (vec!["mine", "--lang", "c", "--dir", file], 1, "Not a directory"),
        (
            vec!["mine", "--lang", "rust", "--dir", free, "--plugin-api", full],
            1,
            "is the crate trtserver-plugin-api",
        ),
        (
            vec!["mine", "--lang", "cpp", "--dir", free, "--plugin-api", full],
            1,
            "--plugin-api is for Rust",
        ),
        (vec!["mine", "--lang", "c", "--framework", "--dir", free], 1, "--framework is for Rust"),
        (vec!["mine", "--lang", "fortran", "--dir", free], 2, "possible values: rust, c, cpp"),
        (vec!["--lang", "c"], 2, "<NAME>"),
        (vec!["mine", "--dir", free], 2, "--lang"),
    ] {
        let ended = trtserver(["plugin", "new"].into_iter().chain(words.iter().copied()));
        assert_eq!(ended.status.code(), Some(code), "{words:?}");
        assert!(ended.stderr.contains(why), "{words:?}: {}", ended.stderr);
    }
    assert!(!Path::new(free).exists());
    assert_eq!(fs::read_dir(full).unwrap().count(), 1);
}

const TUTORIAL: &str = "docs/backends.md";

#[test]
fn tutorial_commands_give_documented_output() {
    let dir = folder();
    let followed = follow(&root().join(TUTORIAL), dir.path());
    assert_eq!(followed.commands, 4);
}

/// All text below a folder of the checkout.
fn sources(path: &Path) -> String {
    if path.is_file() {
        return fs::read_to_string(path).unwrap();
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| sources(&path)).collect()
}

/// Every name in a language's column of a table exists in that language's sources.
#[test]
fn tutorial_names_existing_functions() {
    let include = root().join("plugin-api/include/trtserver");
    let headers = ["types.h", "request.h", "descriptors.h", "host.h", "backend.h", "extensions.h"]
        .map(|h| sources(&include.join(h)))
        .concat();
    let cpp = sources(&include.join("cpp")) + &sources(&include.join("backend.hpp"));
    let rust = sources(&root().join("plugin-api/src/author"));
    let page = sources(&root().join(TUTORIAL));
    let (mut languages, mut looked_up): (Vec<&str>, usize) = (Vec::new(), 0);
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if cells.contains(&"Rust") {
            languages = cells;
            continue;
        }
        for (cell, language) in cells.iter().zip(&languages) {
            let there = match *language {
                "Rust" => &rust,
                "C" => &headers,
                "C++" => &cpp,
                _ => continue,
            };
            let names = cell.split('`').skip(1).step_by(2);
            for name in
                names.flat_map(|code| code.split(|c: char| !c.is_alphanumeric() && c != '_'))
            {
                let is_word = |c: char| c.is_alphanumeric() || c == '_';
                let found =
                    name.is_empty() || there.split(|c| !is_word(c)).any(|word| word == name);
                assert!(found, "{TUTORIAL}: there is no {name} in {language}: {line}");
                looked_up += usize::from(!name.is_empty());
            }
        }
        if !line.starts_with('|') {
            languages.clear();
        }
    }
    assert!(looked_up > 80, "{looked_up}");
}

/// What the examples omit of the C++ header: gather, scatter, detached requests in a batch,
/// exceptions.
#[test]
fn cpp_header_tour() {
    let dir = folder();
    let library = dir.path().join("libtrtserver_cpp_tour.so");
    // Several files of one backend may include the header and share the host table.
    let second = dir.path().join("second.cpp");
    fs::write(
        &second,
        "#include <trtserver/backend.hpp>\nvoid *second() { return &trtserver::detail::host; }\n",
    )
    .unwrap();
    let done = Command::new("c++")
        .args([
            "-std=c++17",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-shared",
            "-fPIC",
        ])
        .arg("-I")
        .arg(root().join("plugin-api/include"))
        .arg("-o")
        .arg(&library)
        .arg(root().join("tests/plugins/cpp-tour/tour.cpp"))
        .arg(second)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let config = "backend: \"cpp_tour\"\nmax_batch_size: 4\n\
        input [ { name: \"IN\" data_type: TYPE_FP32 dims: [ -1 ] } ]\n";
    let together =
        "dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 60000000 }\n";
    let server = || Server::new().backend_dir(dir.path()).flag("--strict-model-config=false");
    let running = server()
        .model("tour", config)
        .model("together", format!("{config}{together}"))
        .flag("--log-verbose=1")
        .start();
    python_v2(&running, "sdk_tour.py", &[]);
    running.wait_for_log_with(&["batch ", "tour.cpp"]);
    assert!(running.stop().success());
    let bad = format!("{config}parameters {{ key: \"fail\" value {{ string_value: \"1\" }} }}\n");
    let ended = server().model("tour", bad).refuses_to_start();
    assert!(
        ended.stderr.contains("the backend threw something that is not a std::exception"),
        "{}",
        ended.stderr
    );
    let ended = server()
        .model("tour", config)
        .flag("--backend-config=cpp_tour,fail=not here")
        .refuses_to_start();
    assert!(ended.stderr.contains("not here"), "{}", ended.stderr);
}
