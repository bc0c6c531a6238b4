//! `trtserver check`: offline validation of model repositories.
#![allow(clippy::expect_used, reason = "what these tests cannot do is a failure")]

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use trtserver_tests::control::pair;
use trtserver_tests::{Ended, Repository, backends, probe, root, trtserver};

fn check(repository: &Path, flags: &[&str]) -> Ended {
    let backends = format!("--backend-dir={}", backends().display());
    let args = ["check", &backends].into_iter().chain(flags.iter().copied());
    trtserver(args.map(Into::into).chain([repository.as_os_str().to_owned()]))
}

/// The findings of each model, as `[severity kind] file:line:column message`, with paths below the
/// repository.
fn findings(repository: &Path, flags: &[&str]) -> (i32, Value, Vec<(String, String)>) {
    let flags: Vec<&str> = flags.iter().copied().chain(["--json"]).collect();
    let ended = check(repository, &flags);
    let all: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}\n{}", ended.stdout, ended.stderr));
    let below = format!("{}/", repository.display());
    let text = |finding: &Value| {
        let string = |key: &str| finding[key].as_str().unwrap_or_default().replace(&below, "");
        let place = match (finding["line"].as_u64(), finding["column"].as_u64()) {
            (Some(line), Some(column)) => format!(":{line}:{column}"),
            _ => String::new(),
        };
        let (severity, kind) = (string("severity"), string("kind"));
        format!("[{severity} {kind}] {}{place} {}", string("file"), string("message"))
    };
    let mut found = Vec::new();
    for finding in all["findings"].as_array().expect("a list") {
        found.push((String::new(), text(finding)));
    }
    for model in all["models"].as_array().expect("a list") {
        let name = model["name"].as_str().expect("a name");
        for finding in model["findings"].as_array().expect("a list") {
            found.push((name.to_owned(), text(finding)));
        }
    }
    (ended.code(), all, found)
}

/// Each row: a model and the begin of one finding; all findings must be named.
#[track_caller]
fn assert_found(found: &[(String, String)], expected: &[(&str, &str)]) {
    let mut rest: Vec<&(String, String)> = found.iter().collect();
    for (model, start) in expected {
        let at = rest.iter().position(|(name, text)| name == model && text.contains(start));
        let at = at.unwrap_or_else(|| panic!("no {start:?} of '{model}' in {found:#?}"));
        rest.remove(at);
    }
    assert!(rest.is_empty(), "not expected: {rest:#?}");
}

#[test]
fn sound_repository_has_no_findings() {
    let repository = Repository::new();
    repository.model("a", &probe("a", &[]));
    repository.model("pair", &pair("a"));
    repository.copy(&root().join("tests/models/addsub_fp32"));
    let ended = check(repository.path(), &[]);
    assert_eq!(ended.code(), 0, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stdout, "3 models: 0 errors, 0 warnings\n");
    let (code, all, found) = findings(repository.path(), &["--open"]);
    assert_eq!((code, &all["errors"], &all["warnings"]), (0, &json!(0), &json!(0)), "{found:?}");
    // The models of the documentation.
    let ended = check(&root().join("examples/models"), &[]);
    assert_eq!(ended.code(), 0, "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn every_refusal_of_a_model_is_a_finding() {
    let repository = Repository::new();
    let config = probe("m", &[]).replace("max_batch_size: 8", "max_batch_size: -8")
        + "input { name: \"more\" data_type: TYPE_FP32 dims: 0 }\n\
           instance_group { kind: KIND_CPU count: 2000 }\nmodel_repository_agents { agents { name: \"a\" } }\n";
    repository.model("m", &config);
    for ignored in ["m/1/file~", "m/1/file.tmp", "m~/1/file", "lost+found/1/file"] {
        repository.file(ignored, "");
    }
    let (code, _, found) = findings(repository.path(), &[]);
    assert_eq!(code, 1);
    assert_found(
        &found,
        &[
            ("m", "config.pbtxt:3:1 'max_batch_size' must be non-negative value for m"),
            ("m", "model input 'more' dimension must be integer >= 1"),
            ("m", "has count 2000, at most 1024 is allowed"),
            ("m", "'model_repository_agents' of model 'm' is not supported yet"),
        ],
    );
    // A load reports the first.
    let ended = trtserver_tests::Server::new().model("m", &config).refuses_to_start();
    assert!(ended.stderr.contains("'max_batch_size' must be non-negative"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("at most 1024"), "{}", ended.stderr);
}

#[test]
fn configuration_errors_have_file_line_and_column() {
    let repository = Repository::new();
    let model = |name: &str, rest: &str| repository.model(name, &(probe(name, &[]) + rest));
    model("typo", "max_batch_sise: 4\n");
    model("value", "instance_group { kind: KIND_CPUS }\n");
    model("nan", "sequence_batching { direct { minimum_slot_utilization: nan } }\n");
    model("dims", "input { name: 'ZERO' data_type: TYPE_FP32\n  dims: [ 4, -2 ] }\n");
    model("count", "instance_group { count: -1 }\n");
    repository.model("renamed", &probe("other", &[]));
    repository.model("platform", "platform: \"tensorflow_graphdeff\"\nmax_batch_size: 1\n");
    repository.model("binary", "\u{0}\u{1}\u{2}");
    repository.file("junk/config.pbtxt", [0xff, 0xfe, 0x00]);
    repository.file("junk/1/model", "");
    repository.model("long", &"# comment\n".repeat(500_000));
    repository.model("lines", &("\n".repeat(2_000_000) + "no_such_field: 1"));
    let (code, all, found) = findings(repository.path(), &[]);
    assert_eq!((code, &all["errors"]), (1, &json!(11)), "{found:#?}");
    assert_found(
        &found,
        &[
            (
                "typo",
                "typo/config.pbtxt:6:1 ModelConfig has no field max_batch_sise; did you mean max_batch_size?",
            ),
            ("value", "value/config.pbtxt:6:24 kind: "),
            (
                "nan",
                "nan/config.pbtxt:6:30 sequence batching minimum slot utilization must be in range (0.0, 1.0]",
            ),
            (
                "dims",
                "dims/config.pbtxt:6:9 model input 'ZERO' dimension must be integer >= 1, or -1",
            ),
            ("count", "count/config.pbtxt:6:1 instance group count_0 of model count has count -1"),
            (
                "renamed",
                "renamed/config.pbtxt:1:1 unexpected directory name 'renamed' for model 'other'",
            ),
            (
                "platform",
                "platform/config.pbtxt:1:1 unexpected platform type 'tensorflow_graphdeff'",
            ),
            ("binary", "binary/config.pbtxt:1:1 "),
            ("junk", "junk/config.pbtxt:1:1 not UTF-8 text"),
            ("long", "larger than 4194304 bytes, not a model configuration"),
            ("lines", "lines/config.pbtxt:2000001:1 ModelConfig has no field no_such_field"),
        ],
    );
    // The text form has the lines of a compiler.
    let ended = check(repository.path(), &[]);
    let line = format!(
        "{}:6:1: error: ModelConfig has no",
        repository.path().join("typo/config.pbtxt").display()
    );
    assert!(ended.stdout.contains(&line), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("11 models: 11 errors, 0 warnings\n"), "{}", ended.stdout);
}

#[test]
fn settings_without_effect_are_warnings() {
    let repository = Repository::new();
    let onnx = "name: \"m\"\nbackend: \"onnxruntime\"\nmax_batch_size: 8\n\
        input { name: 'INPUT0' data_type: TYPE_FP32 dims: 16 }\noutput { name: 'OUTPUT0' data_type: TYPE_FP32 dims: 16 }\n";
    let text = format!(
        "{onnx}optimization {{ eager_batching: true\n gather_kernel_buffer_threshold: 2\n cuda {{ graphs: true }} }}\n\
         model_operations {{ op_library_filename: 'a.so' }}\nruntime: 'x.so'\n"
    );
    repository.file("m/config.pbtxt", text);
    repository.file("m/1/model.onnx", "not opened");
    repository.file("m/1/batchstrategy.so", "");
    let strategy = "parameters { key: 'TRITON_BATCH_STRATEGY_PATH' value { string_value: '/x.so' } }\n\
        sequence_batching { state { input_name: 'S' output_name: 'T' data_type: TYPE_FP32 dims: 1\n\
        use_same_buffer_for_input_output: true } }\n";
    repository.model("p", &(probe("p", &[]) + strategy));
    let (code, all, found) = findings(repository.path(), &[]);
    assert_eq!((code, &all["errors"], &all["warnings"]), (3, &json!(0), &json!(8)), "{found:#?}");
    assert_found(
        &found,
        &[
            (
                "m",
                "[warning field] m/config.pbtxt:6:16 'optimization.eager_batching' has no effect",
            ),
            ("m", "m/config.pbtxt:7:2 'optimization.gather_kernel_buffer_threshold' has no effect"),
            (
                "m",
                "m/config.pbtxt:8:9 'optimization.cuda.graphs' has no effect: backend 'onnxruntime'",
            ),
            ("m", "m/config.pbtxt:9:20 'model_operations.op_library_filename' has no effect"),
            ("m", "m/config.pbtxt:10:1 'runtime' has no effect: a plugin of the server is found"),
            ("m", "batchstrategy.so' has no effect"),
            ("p", "p/config.pbtxt:6:1 'parameters' has no effect"),
            (
                "p",
                "p/config.pbtxt:8:1 'sequence_batching.state.use_same_buffer_for_input_output' has no",
            ),
        ],
    );
}

#[test]
fn files_and_version_directories_are_checked() {
    let repository = Repository::new();
    repository.copy(&root().join("tests/models/addsub_fp32"));
    fs::rename(
        repository.path().join("addsub_fp32/1/model.onnx"),
        repository.path().join("addsub_fp32/1/modell.onnx"),
    )
    .expect("a rename");
    let labelled = probe("labels", &[]).replace("dims: [ -1 ]", "dims: [ 3 ]").replacen(
        "output [ { name: \"OUTPUT0\"",
        "output [ { name: \"OUTPUT0\" label_filename: \"labels.txt\"",
        1,
    );
    repository.model("labels", &labelled);
    repository.file("labels/labels.txt", "one\ntwo\n");
    repository.model("nolabels", &labelled.replace("\"labels\"", "\"nolabels\""));
    repository.model("versions", &probe("versions", &[]));
    for name in ["0", "-1", "1a", "2b", "007", "9999999999999999999"] {
        fs::create_dir_all(repository.path().join("versions").join(name)).expect("a folder");
    }
    repository.model("prefixed", &probe("prefixed", &[]));
    let prefixed = repository.path().join("prefixed");
    fs::rename(prefixed.join("1"), prefixed.join("1a")).expect("a rename");
    repository.model(
        "policy",
        &(probe("policy", &[]) + "version_policy { specific { versions: [ 1, 4 ] } }\n"),
    );
    repository.file("empty/readme.txt", "");
    let fifo = repository.path().join("fifo/1/pipe");
    repository.model("fifo", &probe("fifo", &[]));
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    repository.model("links", &probe("links", &[]));
    let link = |to: &str, at: &str| symlink(to, repository.path().join(at)).expect("a link");
    link("..", "links/1/up");
    link("nowhere", "links/1/dangling");
    link("self", "self");
    repository.model(".hidden", "nonsense");
    repository.file("README.md", "not a model");
    let (code, _, found) = findings(repository.path(), &[]);
    assert_eq!(code, 1, "{found:#?}");
    assert_found(
        &found,
        &[
            ("", "[warning repository] self ignored"),
            ("addsub_fp32", "version 1 has no model file 'model.onnx'"),
            (
                "labels",
                "the label file of output 'OUTPUT0' has 2 labels, but the output has 3 classes",
            ),
            ("nolabels", "unable to read label file"),
            ("versions", "'-1' which fails to convert to integral number"),
            ("versions", "ignore version directory '1a' beside '0', whose name is a bare number"),
            ("versions", "ignore version directory '2b' beside '0', whose name is a bare number"),
            ("prefixed", "prefixed/1a '1a' counts as version 1"),
            ("versions", "'007' which contains leading zeros"),
            ("versions", "'9999999999999999999' whose number is out of range"),
            ("policy", "policy/config.pbtxt:6:41 version 4 of the version policy has no directory"),
            ("empty", "empty/config.pbtxt' does not exist"),
            ("fifo", "fifo/1/pipe cannot be read: not a regular file but a FIFO (named pipe)"),
            ("links", "links/1/up a link to a directory that is part of the model already"),
            ("links", "links/1/dangling ignored: it cannot be followed"),
        ],
    );
}

#[test]
fn ensembles_are_checked_against_the_models_of_their_steps() {
    let repository = Repository::new();
    repository.model("pair", &pair("gone"));
    let named =
        |name: &str, step: &str| pair(step).replace("name: \"pair\"", &format!("name: \"{name}\""));
    repository.model("one", &named("one", "two"));
    repository.model("two", &named("two", "one"));
    repository.model("ints", &probe("ints", &[]).replace("TYPE_FP32", "TYPE_INT32"));
    repository.model("mixed", &named("mixed", "ints"));
    let (code, _, found) = findings(repository.path(), &[]);
    assert_eq!(code, 1);
    assert_found(
        &found,
        &[
            (
                "pair",
                "[error ensemble] pair/config.pbtxt:6:1 ensemble pair contains models that are not available",
            ),
            ("one", "circular dependency between ensembles: one"),
            ("two", "circular dependency between ensembles: two"),
            ("mixed", "in ensemble mixed, ensemble tensor INPUT0: inconsistent data type"),
        ],
    );
}

#[test]
fn versions_are_opened_on_demand() {
    let repository = Repository::new();
    repository.model("m", &probe("m", &[("fail_in", "instance_open"), ("fail", "no instance")]));
    let (code, _, found) = findings(repository.path(), &[]);
    assert_eq!((code, found.len()), (0, 0), "{found:?}");
    let (code, _, found) = findings(repository.path(), &["--open"]);
    assert_eq!(code, 1);
    assert_found(&found, &[("m", "[error open] m/1 no instance")]);
}

#[test]
fn wrong_usage_has_a_status_of_its_own() {
    let nothing: [&str; 0] = [];
    for (args, text) in [
        (&nothing[..], "required arguments"),
        (
            &["/no/such/repository"],
            "model repository '/no/such/repository' is not a readable directory",
        ),
        (&["--no-such-flag", "/tmp"], "--no-such-flag"),
        (&["--max-load-memory=much", "/tmp"], "--max-load-memory"),
    ] {
        let ended = trtserver(["check"].iter().chain(args).copied());
        assert_eq!(ended.code(), 2, "{args:?} {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{args:?} {}", ended.stderr);
    }
    let help = trtserver(["check", "--help"]);
    assert!(help.code() == 0 && help.stdout.contains("Exit status"), "{}", help.stdout);
}

#[test]
fn duplicates_and_several_repositories() {
    let (one, two) = (Repository::new(), Repository::new());
    one.model("a", &probe("a", &[]));
    two.model("a", &probe("a", &[]));
    two.model("b", &probe("b", &[]));
    let second = two.path().display().to_string();
    let (code, all, found) = findings(one.path(), &[&second]);
    assert_eq!((code, all["models"].as_array().map(Vec::len)), (1, Some(2)), "{found:?}");
    assert_found(&found, &[("a", "[error repository]")]);
}
