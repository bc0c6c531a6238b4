//! How child processes of isolated models end: by unload, also while they hang; after a malformed
//! message; with processes of their own.

use super::resources;
use rustix::process::Pid;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::isolated::{is_alive, isolated, processes, wait_until_served};
use trtserver_tests::{Server, inference, probe};

#[test]
fn unload_releases_all_resources() {
    let server = explicit()
        .model("here", probe("here", &[]))
        .model("isolated", isolated("isolated", &[]))
        .flag("--load-model=here")
        .start();
    let around = || {
        assert_ok(server.load("isolated"));
        assert_eq!(server.infer("isolated", "").status, 200);
        assert_eq!(processes(&server, "isolated:").len(), 1);
        assert_ok(server.unload("isolated"));
        server.poll_until("its process is gone", |s| processes(s, "").is_empty());
        assert_eq!(server.infer("isolated", "").status, 404);
    };
    around();
    let before = resources(&server);
    assert_eq!(before[1..3], [0, 0]);
    (0..3).for_each(|_| around());
    // Idle threads of the runtime end later.
    let released = |now: [usize; 4]| (0..3).all(|i| now[i] <= before[i]);
    let what = format!("at most {before:?} descriptors, mappings and children");
    server.poll_until(&what, |server| released(resources(server)));
    assert!(server.stop().success());
}

/// Neither the unload nor the hanging request waits for the isolation deadline of 300 s.
#[test]
fn unload_does_not_wait_for_hanging_child() {
    let server = explicit()
        .model("stuck", isolated("stuck", &[]))
        .model("slow", isolated("slow", &[]))
        .flag("--load-model=*")
        .flag("--exit-timeout-secs=1")
        .start();
    let (mut hung, mut other) = (server.connect(), server.connect());
    hung.send(inference("stuck", r#""die":"hang","say":"from here on I hang""#));
    other.send(inference("slow", r#""delay_ms":300,"say":"this takes a while""#));
    server.wait_for_log("from here on I hang");
    server.wait_for_log("this takes a while");
    assert_ok(server.unload("stuck"));
    assert_ok(server.unload("slow"));
    // The request that does not hang completes.
    assert_eq!(other.response().status, 200);
    let says = hung.response().error_text();
    let parts = ["'stuck'", "did not respond for 1 s while its model was being unloaded"];
    for part in [&parts[..], &["and was killed", "from here on I hang"]].concat() {
        assert!(says.contains(part), "no {part:?} in {says:?}");
    }
    server.poll_until("their processes are gone", |s| processes(s, "").is_empty());
    server.wait_for_log("successfully unloaded 'stuck' version 1");
    assert_ok(server.load("stuck"));
    // A replaced version is not waited for either.
    hung.send(inference("stuck", r#""die":"hang","say":"once more""#));
    server.wait_for_log("once more");
    server.models().file("stuck/config.pbtxt", isolated("stuck", &[("responses", "1")]));
    assert_ok(server.load("stuck"));
    assert_eq!(server.infer("stuck", "").status, 200);
    let says = hung.response().error_text();
    assert!(says.contains("while its model was being unloaded"), "{says}");
    server.poll_until("its process is gone", |s| processes(s, "stuck:").len() == 1);
    assert!(server.stop().success());
}

#[test]
fn malformed_message_from_child_restarts_it() {
    let server = Server::new()
        .model("wild", isolated("wild", &[]))
        .model("tame", isolated("tame", &[]))
        .start();
    for (how, what) in [
        ("garble_work", "sent a malformed response"),
        ("garble_control", "sent a malformed message"),
    ] {
        let response = server.infer("wild", &format!(r#""die":"{how}""#));
        let says = response.error_text();
        assert_eq!(response.status, 500, "{how}: {says}");
        for part in ["model 'wild' version 1", "backend 'probe'", what, "and was killed"] {
            assert!(says.contains(part), "{how}: no {part:?} in {says:?}");
        }
        assert_eq!(server.infer("tame", "").status, 200, "{how}");
        wait_until_served(&server, "wild");
    }
    assert!(server.stop().success());
}

/// A process that the backend started is killed with the child, and does not delay its end although
/// it holds the child's output open.
#[test]
fn grandchildren_are_killed() {
    let server = Server::new().model("parent", isolated("parent", &[])).start();
    let response = server.infer("parent", r#""die":"orphan""#);
    let says = response.error_text();
    assert!(says.contains("ended with exit code 7"), "{says}");
    let number = says.split_once("left process ").and_then(|(_, rest)| rest.split(' ').next());
    let pid = number.and_then(|number| Pid::from_raw(number.parse().ok()?));
    let pid = pid.unwrap_or_else(|| panic!("no number in {says:?}"));
    server.poll_until("it is gone", |_| !is_alive(pid));
    assert_eq!(server.infer("parent", "").status, 200);
    assert!(server.stop().success());
}

/// Records below the log level are not created in the child either.
#[test]
fn child_uses_log_level_of_the_server() {
    for (flag, expected) in [("--log-verbose=0", false), ("--log-verbose=1", true)] {
        let server = Server::new().model("quiet", isolated("quiet", &[])).flag(flag).start();
        assert_eq!(server.infer("quiet", r#""say":"a line on standard error""#).status, 200);
        // All records of the child are in the log when the server ends.
        server.wait_for_log("a line on standard error");
        server.signal(trtserver_tests::Signal::TERM);
        let log = server.wait().stderr;
        assert_eq!(log.contains("probe instance quiet_0_cpu is open"), expected, "{log}");
    }
}
