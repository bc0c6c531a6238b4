//! Calls of the entry points of the legacy custom interface, from the trace of a faulty library:
//! which, in what order, how often.

use std::path::Path;
use trtserver_tests::custom::{Generation, MODES, Mode, command, faulty, setting};
use trtserver_tests::scheduled::instances;
use trtserver_tests::{Running, folder};

fn lines(trace: &Path) -> Vec<String> {
    std::fs::read_to_string(trace).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn each_instance_is_initialized_and_finalized_once() {
    MODES.into_iter().for_each(begin_and_end);
}

fn begin_and_end(mode: Mode) {
    let traces = folder();
    let trace = traces.path().join("trace");
    let server = mode
        .server()
        .env("CUSTOM_TRACE", &trace)
        .custom(faulty("three", Generation::V2a).more(&instances(3)))
        .start();
    // Three instances share one library.
    assert_eq!(lines(&trace), ["version", "initialize", "initialize", "initialize"]);
    assert!(server.stop().success());
    assert_eq!(lines(&trace)[4..], ["finalize context"; 3]);
}

/// While one instance blocks in execute, the other serves all requests.
#[test]
fn instances_execute_concurrently() {
    MODES.into_iter().for_each(side_by_side);
}

fn side_by_side(mode: Mode) {
    let folder = folder();
    let trace = folder.path().join("trace");
    let server = mode
        .server()
        .env("CUSTOM_TRACE", &trace)
        .env("CUSTOM_RELEASE", folder.path())
        .custom(faulty("two", Generation::C).more(&instances(2)))
        .start();
    let mut hung = server.connect();
    hung.send(command("two", "hang"));
    let hangs = |_: &Running| lines(&trace).iter().any(|line| line == "hangs");
    server.poll_until("an instance that hangs", hangs);
    for _ in 0..10 {
        assert_eq!(server.send(command("two", "good")).status, 200);
    }
    std::fs::write(folder.path().join("hang"), "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(hung.response().status, 200);
    assert!(server.stop().success());
}

#[test]
fn failed_initialize_is_finalized() {
    MODES.into_iter().for_each(initialize_fails);
}

fn initialize_fails(mode: Mode) {
    for (command, end) in
        [("initialize_error", "finalize nothing"), ("initialize_late_error", "finalize context")]
    {
        let traces = folder();
        let trace = traces.path().join("trace");
        let server = mode
            .server()
            .env("CUSTOM_TRACE", &trace)
            .flag("--exit-on-error=false")
            .custom(faulty("broken", Generation::B).more(&setting(command)))
            .start();
        server.wait_for_log_with(&["failed to load", "'broken'", "(7) out of ink"]);
        assert!(server.stop().success());
        assert_eq!(lines(&trace), ["initialize", end], "{command}");
    }
}

#[test]
fn finalize_error_is_logged_only() {
    MODES.into_iter().for_each(finalize_fails);
}

fn finalize_fails(mode: Mode) {
    let server = mode
        .server()
        .custom(faulty("loud", Generation::B).more(&setting("finalize_error")))
        .custom(faulty("silent", Generation::C).more(&setting("finalize_silent_error")))
        .custom(faulty("twice", Generation::B))
        .start();
    assert_eq!(server.send(command("twice", "finalize")).status, 200);
    server.signal(trtserver_tests::Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    for text in ["(12) no good end", "(8) <no error string>", "(13) finished twice"] {
        let line = format!("error finalizing custom library: {text}");
        assert!(ended.stderr.contains(&line), "no {line:?} in {}", ended.stderr);
    }
}
