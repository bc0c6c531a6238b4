//! `trtserver plugin check`: good backends pass, each violation is detected.

use super::{json, tool, violation};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use trtserver_tests::{backends, compile_c, folder, root};

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
    let found = promises.iter().filter(|p| p["state"] == state);
    found
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
fn caffe2_models_pass_every_check() {
    let caffe2 = backends().join("caffe2/libtrtserver_caffe2.so");
    let model = root().join("examples/models-caffe2/digits_netdef");
    keeps_all(&caffe2, &["--model", &model.to_string_lossy()], 30);
}

/// Plans need a GPU, which the check has none of: what needs a model is untested.
#[test]
fn tensorrt_breaks_no_rule() {
    let (report, code) = check(&backends().join("tensorrt/libtrtserver_tensorrt.so"), &[]);
    assert_eq!((in_state(&report, "broken"), in_state(&report, "warning")), (vec![], vec![]));
    assert_eq!(code, 3);
    assert!(reason(&report, "untested", "model.open").contains("--model DIR"));
    assert!(in_state(&report, "kept").len() >= 10, "{report:#}");
}

#[test]
fn check_passes_with_tensorflow() {
    let plugin = backends().join("tensorflow/libtrtserver_tensorflow.so");
    for model in ["graphdef/addsub_fp32", "savedmodel/addsub_fp32"] {
        let model = root().join("tests/models").join(model);
        keeps_all(&plugin, &["--model", &model.to_string_lossy()], 30);
    }
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
        ("FORGETS_EVENT", "host.events", "never destroyed"),
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
        ("RECOGNISES_MISSING_ENTRY", "model.probe", "model_probe returned entry 3 of 0"),
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
    // A wrong model directory is not a fault of the backend.
    let wrong = root().join("tests/plugins");
    let ended = tool("check", &[&good, &"--model", &wrong]);
    assert_eq!((ended.code(), ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("a 'config.pbtxt', which is not there"), "{}", ended.stderr);
    let one = tool("check", &[&good, &"--only", &"cancel.before"]);
    assert!(one.code() == 0 && one.stdout.contains("1 kept, 0 broken"), "{}", one.stdout);
    let help = tool("check", &[&"--help"]);
    assert!(help.code() == 0 && help.stdout.contains("cancel.before"), "{}", help.stdout);
}
