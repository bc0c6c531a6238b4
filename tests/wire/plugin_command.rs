//! `trtserver plugin list` and `plugin check`: good backends pass, each violation is detected.
#![allow(clippy::expect_used, reason = "what these tests cannot do is a failure")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use trtserver_tests::{Ended, Server, backends, compile_c, dist, folder, root, trtserver};

fn tool(command: &str, args: &[&dyn AsRef<Path>]) -> Ended {
    let args = args.iter().map(|w| w.as_ref().as_os_str().to_owned());
    trtserver(["plugin".into(), command.into()].into_iter().chain(args))
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}\n{}", ended.stdout, ended.stderr))
}

/// A report of `plugin check`, and its exit status.
fn check(file: &Path, more: &[&str]) -> (Value, i32) {
    let mut args: Vec<&dyn AsRef<Path>> = vec![&file, &"--json"];
    args.extend(more.iter().map(|w| w as &dyn AsRef<Path>));
    let ended = tool("check", &args);
    (json(&ended), ended.code())
}

/// Names and reasons of the checks with this result.
fn in_state(report: &Value, state: &str) -> Vec<(String, String)> {
    let promises = report["promises"].as_array().expect("a list");
    let those = promises.iter().filter(|p| p["state"] == state);
    those
        .map(|p| (p["name"].as_str().unwrap_or_default().to_owned(), p["why"].to_string()))
        .collect()
}

fn keeps_all(file: &Path, more: &[&str], at_least: usize) {
    let (report, code) = check(file, more);
    assert_eq!((in_state(&report, "broken"), code), (vec![], 0), "{}", file.display());
    assert_eq!(in_state(&report, "warning"), [], "{}", file.display());
    let kept = in_state(&report, "kept").len();
    assert!(kept >= at_least, "{}: only {kept} kept\n{report:#}", file.display());
}

/// The reasons for the verdict on one promise; fails if it is another verdict.
#[track_caller]
fn reason(report: &Value, state: &str, promise: &str) -> String {
    let found = in_state(report, state).into_iter().find(|(id, _)| id == promise);
    found.unwrap_or_else(|| panic!("{promise} is not {state} in {report:#}")).1
}

#[test]
fn good_backends_pass_every_check() {
    let dir = folder();
    let addsub = compile_c("tests/plugins/c-addsub/addsub.c", dir.path(), "c_addsub");
    keeps_all(&addsub, &[], 30);
    keeps_all(&compile_c("tests/plugins/c-merge/merge.c", dir.path(), "c_merge"), &[], 30);
    keeps_all(&violation(dir.path(), "NOTHING"), &[], 30);
    keeps_all(&compile_c("examples/backends/c-addsub/addsub.c", dir.path(), "example"), &[], 30);
    keeps_all(&backends().join("probe/libtrtserver_probe.so"), &[], 30);
}

#[test]
fn check_passes_model_files_to_the_backend() {
    let onnx = backends().join("onnxruntime/libtrtserver_onnxruntime.so");
    let (report, code) = check(&onnx, &[]);
    assert_eq!((in_state(&report, "broken"), code), (vec![], 3));
    assert!(reason(&report, "untested", "model.open").contains("--model DIR"));
    assert!(reason(&report, "untested", "request.batch").contains("needs"));
    let model = root().join("examples/models/digits");
    keeps_all(&onnx, &["--model", &model.to_string_lossy()], 30);
}

#[test]
fn every_way_to_respond_passes() {
    let probe = backends().join("probe/libtrtserver_probe.so");
    let dir = folder();
    for (command, value) in [("adopt", "true"), ("detach", "true"), ("merge", "true")] {
        keeps_all(&probe, &["--model", &probe_model(dir.path(), command, value)], 30);
    }
}

/// The directory of a probe model with these parameters.
fn probe_model(dir: &Path, command: &str, value: &str) -> String {
    let name = format!("{command}_{value}");
    let model = dir.join(&name);
    fs::create_dir_all(model.join("1")).expect("a directory");
    let config = trtserver_tests::probe(&name, &[(command, value)]);
    fs::write(model.join("config.pbtxt"), config).expect("a file");
    model.to_string_lossy().into_owned()
}

#[test]
fn probe_misbehaviour_is_detected() {
    let probe = backends().join("probe/libtrtserver_probe.so");
    let dir = folder();
    for (value, promise, text) in [
        ("wrong_dtype", "output.declared", "data type"),
        ("unknown_output", "output.declared", "NOT_AN_OUTPUT"),
        ("missing_output", "request.single", "OUTPUT0"),
        ("short", "output.declared", "bytes"),
        ("twice", "request.once", "finished"),
        ("never", "request.once", "no response"),
    ] {
        let model = probe_model(dir.path(), "garbage", value);
        assert_broken(&probe, &["--model", &model], promise, text);
    }
}

fn assert_broken(file: &Path, more: &[&str], promise: &str, text: &str) {
    let (report, code) = check(file, more);
    let broken = in_state(&report, "broken");
    assert_eq!(code, 1, "{}", file.display());
    let hit = broken.iter().any(|(id, why)| id == promise && why.contains(text));
    assert!(hit, "{} {more:?}: no {promise} with {text:?} in {broken:?}", file.display());
}

/// The echo backend of tests/plugins/broken/violations.h with one violation.
fn violation(dir: &Path, name: &str) -> PathBuf {
    let source = dir.join(format!("{name}.c"));
    let header = root().join("tests/plugins/broken/violations.h");
    let text = format!("#define VIOLATION {name}\n#include \"{}\"\n", header.display());
    fs::write(&source, text).expect("a file");
    compile_c(&source.to_string_lossy(), dir, &name.to_lowercase())
}

#[test]
fn each_violation_is_detected() {
    let dir = folder();
    let violations = [
        ("FINISHES_TWICE", "request.once", "finished twice (in model.open, with one request"),
        ("OMITS_RESPONSE", "request.once", "has no response"),
        ("WRITES_INPUT", "input.unchanged", "'INPUT0' was written"),
        ("WRITES_INPUT", "input.protected", "SIGSEGV"),
        ("READS_RELEASED_INPUT", "input.protected", "SIGSEGV"),
        ("WRITES_BEYOND_OUTPUT", "output.bounds", "1 bytes behind its end"),
        ("WRITES_SENT_OUTPUT", "output.late", "after it was sent"),
        ("LEAKS_HOST_MEMORY", "host.memory", "20 more blocks"),
        ("LEAVES_THREAD", "life.threads", "1 named 'stays'"),
        ("HANGS", "request.single", "did not return within 1 s"),
        ("CRASHES", "request.single", "SIGSEGV"),
        ("CRASHES_ON_CLOSE", "backend.open", "SIGABRT"),
        ("EXITS", "request.single", "exit status 3"),
        ("IGNORES_CANCEL", "cancel.before", "did not return"),
        ("CANCELS_WITH_WRONG_CODE", "cancel.before", "the client disconnected"),
        ("FORGETS_ERROR", "host.errors", "lost"),
        ("FORGETS_RESPONSE", "host.responses", "neither sent nor freed"),
        ("KEEPS_RESPONDER", "host.responders", "not released"),
        ("KEEPS_REQUEST", "request.release", "was not released"),
        ("FAILS_AFTER_RESPONDING", "request.refused", "after all"),
        (
            "SWAPS_ROWS",
            "request.batch",
            "with 2 requests of 1 row each: request 1 (1 row): output 'OUTPUT0' is",
        ),
        ("GIVES_ROWS_OF_FIRST_REQUEST", "request.batch", "request 2 (1 row): output 'OUTPUT0' is"),
        (
            "FILLS_FIRST_ROW",
            "request.batch",
            "with one request of 8 rows: output 'OUTPUT0' is 0 at [1, ",
        ),
        ("SENDS_ROWS_OF_LAST_BATCH", "request.batch", "with 8 requests of 1 row each: request 1"),
        (
            "FAILS_WHEN_BATCHING",
            "request.batch",
            "expected one dimension; without batching it responds",
        ),
        (
            "CRASHES_IN_BATCH",
            "request.batch",
            "with 2 requests of 1 row each, it crashed with SIGSEGV",
        ),
        (
            "NEEDS_ITS_THREAD",
            "instance.any_thread",
            "not the instance's: the request failed: the wrong thread",
        ),
        (
            "LOSES_OVERLAPPING_BATCH",
            "instance.in_flight",
            "with one request of 4 batches that overlap",
        ),
        ("FAILS_ALL", "request.single", "no request to a model of the check succeeds"),
        ("REPEATS_RESPONSE", "request.single", "repeats that to the request before it"),
        ("WRONG_SHAPE", "output.declared", "OUTPUT0"),
        ("CHANGES_SIGNAL", "life.process", "signal 10"),
        ("CHANGES_DIRECTORY", "life.process", "working directory"),
        ("LEAKS_DESCRIPTOR", "life.cycles", "descriptors"),
        ("LEAKS_MEMORY", "life.cycles", "memory grew"),
        ("WILD_LOG", "host.calls", "level 77"),
        ("USES_CLOSED_SCOPE", "host.calls", "after its close"),
    ];
    let left = Mutex::new(violations.iter());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("no panic holds it").next();
                    let Some((name, promise, text)) = next else { break };
                    let own = folder();
                    assert_broken(
                        &violation(own.path(), name),
                        &["--time-limit", "1"],
                        promise,
                        text,
                    );
                }
            });
        }
    });
    drop(dir);
}

/// A backend that cannot batch breaks no promise, but is not reported as one that batches.
#[test]
fn refused_batching_is_reported_as_untested() {
    let dir = folder();
    let (report, code) = check(&violation(dir.path(), "REFUSES_TO_BATCH"), &[]);
    assert_eq!((in_state(&report, "broken"), code), (vec![], 0));
    let why = reason(&report, "untested", "request.batch");
    assert!(why.contains("'takes one request at a time'") && why.contains("--model DIR"), "{why}");
    let model = dir.path().join("single");
    fs::create_dir_all(model.join("1")).expect("a directory");
    let config = "backend: \"violation\"\ninput { name: \"I\" data_type: TYPE_FP32 dims: [ 2 ] }\n\
                  output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 2 ] }\n";
    fs::write(model.join("config.pbtxt"), config).expect("a file");
    let (report, _) =
        check(&violation(dir.path(), "NOTHING"), &["--model", &model.to_string_lossy()]);
    let why = reason(&report, "untested", "request.batch");
    assert!(why.contains("max_batch_size 0"), "{why}");
}

#[test]
fn exported_symbols_are_a_warning() {
    let dir = folder();
    let source = dir.path().join("exports.c");
    let header = root().join("tests/plugins/broken/violations.h");
    let text = format!(
        "#define VIOLATION NOTHING\n#include \"{}\"\nint shared_name;\nint another(void) {{ return shared_name; }}\n",
        header.display()
    );
    fs::write(&source, text).expect("a file");
    let file = compile_c(&source.to_string_lossy(), dir.path(), "exports");
    let (report, code) = check(&file, &[]);
    let why = reason(&report, "warning", "file.exports");
    assert!(why.contains("also exports 'another', 'shared_name': link it with"), "{why}");
    assert_eq!((code, &report["warnings"]), (0, &1.into()));
}

/// What a backend prints explains a crash only if it was printed by the scenario that crashed.
#[test]
fn crash_report_omits_output_of_earlier_scenarios() {
    let dir = folder();
    let (report, _) = check(&violation(dir.path(), "CRASHES_IN_BATCH"), &["--time-limit", "1"]);
    let why = reason(&report, "broken", "request.batch");
    assert!(why.contains("SIGSEGV") && !why.contains("printed long before"), "{why}");
}

#[test]
fn cycles_are_as_many_as_the_promise_says() {
    let dir = folder();
    let file = violation(dir.path(), "NOTHING");
    let (report, _) = check(&file, &["--only", "life.cycles"]);
    assert!(report.to_string().contains("opening and closing fifty times"), "{report:#}");
    assert_eq!(reason(&report, "kept", "life.cycles"), "[\"50 cycles\"]");
    // A scenario that does not fit into its time is not passed.
    let (report, code) = check(&file, &["--only", "life.cycles", "--time-limit", "0.1"]);
    if let Some((_, why)) = in_state(&report, "untested").first() {
        assert!(why.contains("of 50 cycles took") && code == 3, "{why}");
    }
}

#[test]
fn files_that_are_no_backends_are_reported() {
    let dir = folder();
    for (name, promise, text) in [
        ("no_symbol", "file.entry_symbol", "trts_backend_main"),
        ("null_table", "file.interface", "no table"),
        ("old_size", "file.interface", "bytes"),
        ("wrong_major", "file.interface", "99.0"),
        ("missing_entry", "file.entries", "'execute'"),
        ("misuse", "host.calls", "null passed"),
    ] {
        let file = compile_c(&format!("tests/plugins/broken/{name}.c"), dir.path(), name);
        assert_broken(&file, &[], promise, text);
    }
}

#[test]
fn check_refuses_invalid_arguments() {
    let dir = folder();
    let text = dir.path().join("text.so");
    fs::write(&text, "not a library").expect("a file");
    for (file, text) in [
        (dir.path().join("nothing.so"), "No such file"),
        (dir.path().to_owned(), "is a directory"),
        (text, "not a shared library"),
    ] {
        let ended = tool("check", &[&file]);
        assert_eq!((ended.code(), ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
        assert!(ended.stderr.contains(text), "{}", ended.stderr);
    }
    assert_eq!(tool("check", &[]).code(), 2);
    let good = compile_c("tests/plugins/c-merge/merge.c", dir.path(), "c_merge");
    assert_eq!(tool("check", &[&good, &"--only", &"no.promise"]).code(), 2);
    // A wrong model directory is no fault of the backend.
    let wrong = root().join("tests/plugins");
    let ended = tool("check", &[&good, &"--model", &wrong]);
    assert_eq!((ended.code(), ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("a 'config.pbtxt', which is not there"), "{}", ended.stderr);
    let one = tool("check", &[&good, &"--only", &"cancel.before"]);
    assert!(one.code() == 0 && one.stdout.contains("1 kept, 0 broken"), "{}", one.stdout);
    let help = tool("check", &[&"--help"]);
    assert!(help.code() == 0 && help.stdout.contains("cancel.before"), "{}", help.stdout);
}

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
    // Another name of one file is no second file.
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

#[test]
fn unknown_subcommand_is_refused() {
    let ended = trtserver(["plugin", "lst"]);
    assert_eq!((ended.code(), ended.stdout.as_str()), (2, ""));
    assert!(
        ended.stderr.contains("unknown command 'lst'; expected list, check or new"),
        "{}",
        ended.stderr
    );
    assert_eq!(trtserver(["plugin"]).code(), 2);
}

/// The commands of docs/plugin-tool.md, in order, say what the page shows; `…` stands for any text.
#[test]
fn commands_of_plugin_tool_md() {
    let page = fs::read_to_string(root().join("docs/plugin-tool.md")).expect("the page");
    let dir = folder();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", dist().join("bin").display());
    let blocks: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
    let pairs: Vec<_> = blocks
        .windows(2)
        .filter(|p| p[0].starts_with("sh\n") && p[1].starts_with("text\n"))
        .collect();
    assert!(pairs.len() >= 4, "{page}");
    for pair in pairs {
        let command = pair[0].trim_start_matches("sh\n");
        let mut bash = Command::new("bash");
        bash.args(["-uc", &format!("exec 2>&1\n{command}")]).current_dir(root());
        let done = bash.env("PATH", &path).env("DIR", dir.path()).output().expect("bash");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let mut rest = said.trim_end();
        let mut pieces = pair[1].trim_start_matches("text\n").trim_end().split('…').enumerate();
        let fits = pieces.all(|(at, piece)| {
            let found = rest.find(piece).filter(|begin| at > 0 || *begin == 0);
            found.map(|begin| rest = &rest[begin + piece.len()..]).is_some()
        });
        assert!(fits, "{command}\nprinted\n{said}\ninstead of\n{}", pair[1]);
    }
}
