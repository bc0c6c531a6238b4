//! Who calls the entry points of a library of the legacy custom interface, and how often: the rogue keeps a trace.

use std::path::Path;
use trtserver_tests::custom::{Custom, Generation, tensors};
use trtserver_tests::scheduled::instances;
use trtserver_tests::{Server, folder};

fn rogue(name: &str, generation: Generation) -> Custom {
    let both = tensors("input", &[("COMMAND", "STRING", "1"), ("INPUT0", "INT32", "1")])
        + &tensors("output", &[("OUTPUT0", "INT32", "1")]);
    Custom::new(name, &both).library("rogue.c", generation)
}

fn told(command: &str) -> String {
    format!(r#"metric_tags {{ key: "rogue" value: "{command}" }}"#)
}

fn lines(trace: &Path) -> Vec<String> {
    std::fs::read_to_string(trace).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn instances_begin_and_end_once_each() {
    let traces = folder();
    let trace = traces.path().join("trace");
    let server = Server::new()
        .env("CUSTOM_TRACE", &trace)
        .custom(rogue("three", Generation::V2a).more(&instances(3)))
        .start();
    // One library for three instances.
    assert_eq!(lines(&trace), ["version", "initialize", "initialize", "initialize"]);
    assert!(server.stop().success());
    assert_eq!(lines(&trace)[4..], ["finalize context"; 3]);
}

#[test]
fn who_could_not_begin_is_ended_too() {
    for (command, end) in
        [("initialize_error", "finalize nothing"), ("initialize_late_error", "finalize context")]
    {
        let traces = folder();
        let trace = traces.path().join("trace");
        let server = Server::new()
            .env("CUSTOM_TRACE", &trace)
            .flag("--exit-on-error=false")
            .custom(rogue("broken", Generation::B).more(&told(command)))
            .start();
        server.wait_for_log_with(&["failed to load", "'broken'", "(7) out of ink"]);
        assert!(server.stop().success());
        assert_eq!(lines(&trace), ["initialize", end], "{command}");
    }
}

#[test]
fn a_bad_end_is_told_and_is_no_failure() {
    let twice = r#"{"inputs":[
{"name":"COMMAND","datatype":"BYTES","shape":[1,1],"data":["finalize"]},
{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[4]}]}"#;
    let server = Server::new()
        .custom(rogue("loud", Generation::B).more(&told("finalize_error")))
        .custom(rogue("silent", Generation::C).more(&told("finalize_silent_error")))
        .custom(rogue("twice", Generation::B))
        .start();
    assert_eq!(server.post("/v2/models/twice/infer", &[], twice).status, 200);
    server.signal(trtserver_tests::Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    for text in ["(12) no good end", "(8) <no error string>", "(13) finished twice"] {
        let line = format!("error finalizing custom library: {text}");
        assert!(ended.stderr.contains(&line), "no {line:?} in {}", ended.stderr);
    }
}
