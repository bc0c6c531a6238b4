//! Child processes of isolated models that crash, hang or are killed: the request fails with the
//! reason, the child is restarted, and no other model is affected.

use super::{SERVER, resources};
use rustix::process::kill_process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use trtserver_tests::isolated::{is_alive, isolated, process, processes, stop, wait_until_served};
use trtserver_tests::{Running, Server, Signal, probe};

#[test]
fn error_gives_reason_of_child_exit() {
    for (die, what) in [
        ("crash", "was killed by signal 11 (SIGSEGV)"),
        ("abort", "was killed by signal 6 (SIGABRT)"),
        ("exit", "ended with exit code 7"),
    ] {
        wait_until_served(&SERVER, "mortal");
        let response = SERVER.infer("mortal", &format!(r#""die":"{die}","say":"farewell {die}""#));
        let says = response.error_text();
        assert_eq!(response.status, 500, "{says}");
        for part in ["model 'mortal'", "'probe'", what, &format!("farewell {die}")] {
            assert!(says.contains(part), "no {part:?} in {says:?}");
        }
        assert_eq!(SERVER.infer("isolated", "").status, 200);
        // The first restart after a response is immediate, and requests wait for it.
        assert_eq!(SERVER.infer("mortal", "").status, 200, "{}", SERVER.process());
    }
}

#[test]
fn hanging_child_is_killed_at_the_deadline() {
    let slow = [("isolation_deadline_seconds", "0.3")];
    let server = Server::new().model("stuck", isolated("stuck", &slow)).start();
    // The deadline is the time between responses.
    assert_eq!(server.infer("stuck", r#""delay_ms":100"#).status, 200);
    let response = server.infer("stuck", r#""die":"hang""#);
    let says = response.error_text();
    assert_eq!(response.status, 500, "{says}");
    assert!(says.contains("did not respond within 0.3 s and was killed"), "{says}");
    assert_eq!(server.infer("stuck", "").status, 200);
    assert!(server.stop().success());
}

#[test]
fn killed_children_fail_no_request_of_other_models() {
    let server = Server::new()
        .model("victim", isolated("victim", &[]))
        .model("isolated", isolated("isolated", &[]))
        .model("local", probe("local", &[]))
        .start();
    let (over, responses) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for model in ["isolated", "local"] {
            let (server, over, responses) = (&server, &over, &responses);
            scope.spawn(move || {
                let mut connection = server.connect();
                while !over.load(Ordering::Relaxed) {
                    let response =
                        connection.send(trtserver_tests::inference(model, "")).response();
                    assert_eq!(response.status, 200, "{model}: {}", response.text());
                    responses.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Also on failure, so that the failure is reported.
        let _end = End(&over);
        for kill in 0..100 {
            let pid = process(&server, "victim");
            kill_process(pid, Signal::KILL).unwrap();
            let response = server.infer("victim", "");
            // The request may have been sent to the killed child.
            if response.status != 200 {
                let says = response.error_text();
                assert!(says.contains("(SIGKILL)"), "{kill}: {says}");
                let again = server.infer("victim", "");
                assert_eq!(again.status, 200, "{kill}: {}", again.text());
            }
        }
    });
    assert!(responses.load(Ordering::Relaxed) > 100);
    assert!(server.stop().success());
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn resources_of_killed_children_are_released() {
    let server = Server::new().model("victim", isolated("victim", &[])).start();
    let die = || {
        kill_process(process(&server, "victim"), Signal::KILL).unwrap();
        wait_until_served(&server, "victim");
    };
    die();
    let before = resources(&server);
    (0..10).for_each(|_| die());
    // Connections of this test may have closed in between.
    let all = |now: [usize; 4]| now.iter().zip(before).all(|(now, before)| *now <= before);
    server.poll_until(
        &format!("at most {before:?} descriptors, mappings, children and threads"),
        |server| all(resources(server)),
    );
    let pids = processes(&server, "");
    assert!(server.stop().success());
    assert!(!pids.into_iter().any(is_alive));
}

#[test]
fn killed_server_leaves_no_child() {
    let server =
        Server::new().model("a", isolated("a", &[])).model("b", isolated("b", &[])).start();
    let pids = processes(&server, "");
    assert_eq!(pids.len(), 2);
    server.signal(Signal::KILL);
    server.wait();
    let begin = std::time::Instant::now();
    while pids.iter().any(|pid| is_alive(*pid)) {
        assert!(begin.elapsed() < trtserver_tests::TIMEOUT, "the children are still alive");
        trtserver_tests::pause_since(begin);
    }
}

#[test]
fn open_failures_in_the_child_fail_the_load() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model("refuses", isolated("refuses", &[("fail_in", "model_open"), ("fail", "no paper")]))
        .model("one", isolated("one", &[("fail_in", "instance_open"), ("fail", "no ink")]))
        .model(
            "dies",
            isolated("dies", &[("die", "crash"), ("die_in", "model_open"), ("say", "oh")]),
        )
        .model("dies_late", isolated("dies_late", &[("die", "abort"), ("die_in", "instance_open")]))
        .model(
            "hangs",
            isolated(
                "hangs",
                &[
                    ("die", "hang"),
                    ("die_in", "model_open"),
                    ("isolation_open_deadline_seconds", "0.3"),
                ],
            ),
        )
        .model("nonsense", probe("nonsense", &[("isolation", "a cage")]))
        .model("soon", isolated("soon", &[("isolation_deadline_seconds", "soon")]))
        .flag("--exit-on-error=false")
        .start();
    for (model, parts) in [
        ("refuses", &["no paper"][..]),
        ("one", &["no ink"]),
        ("dies", &["SIGSEGV", "its last lines: oh"]),
        ("dies_late", &["SIGABRT"]),
        ("hangs", &["did not respond within 0.3 s"]),
        ("nonsense", &["'isolation'", "'a cage'"]),
        ("soon", &["'isolation_deadline_seconds'", "'soon'"]),
    ] {
        let line = server.wait_for_log(&format!("failed to load '{model}' version 1"));
        for part in parts {
            assert!(line.contains(part), "{model}: no {part:?} in {line:?}");
        }
        assert_eq!(server.get(&format!("/v2/models/{model}/ready")).status, 400, "{model}");
    }
    assert_eq!(server.infer("echo", "").status, 200);
    assert_eq!(processes(&server, ""), []);
    assert!(server.stop().success());
}

#[test]
fn crash_loop_is_backed_off() {
    let server = Server::new().model("weak", isolated("weak", &[])).start();
    let ready = |server: &Running| server.get("/v2/models/weak/ready").status == 200;
    assert!(ready(&server));
    let dies = |server: &Running| server.infer("weak", r#""die":"exit""#).status == 500;
    // Restarted at once; the next request waits for that.
    assert!(dies(&server) && dies(&server));
    // Then the restart is backed off: 0.1 s, 0.2 s, 0.4 s, 0.8 s.
    for _ in 0..3 {
        server.poll_until("it dies again", dies);
    }
    let response = server.infer("weak", "");
    let says = response.error_text();
    assert_eq!(response.status, 503, "{says}");
    assert!(says.contains("exit code 7") && says.contains("restarted"), "{says}");
    assert!(!ready(&server));
    let index = server.post("/v2/repository/index", &[], "");
    assert!(index.text().contains("exit code 7"), "{}", index.text());
    server.poll_until("it is ready again", ready);
    assert_eq!(server.infer("weak", "").status, 200);
    assert!(server.stop().success());
}

#[test]
fn stopped_child_is_killed_at_the_deadline() {
    let server = Server::new()
        .model("frozen", isolated("frozen", &[("isolation_deadline_seconds", "0.2")]))
        .model("echo", isolated("echo", &[]))
        .start();
    stop(&server, "frozen");
    let says = server.infer("frozen", "").error_text();
    assert!(says.contains("did not respond within 0.2 s"), "{says}");
    assert_eq!(server.infer("frozen", "").status, 200);
    // A child that is stopped while idle, or exits during close, does not delay shutdown either.
    assert_eq!(server.infer("echo", "").status, 200);
    assert!(server.stop().success());
}

/// Writing to a full socket is limited by the same deadline as a response.
#[test]
fn stopped_child_with_full_socket_is_killed_at_the_deadline() {
    let slow = [("isolation_deadline_seconds", "0.5")];
    let server = Server::new().model("stopped", isolated("stopped", &slow)).start();
    assert_eq!(server.infer("stopped", "").status, 200);
    let before = stop(&server, "stopped");
    let response = server.infer("stopped", &format!(r#""note":"{}""#, "x".repeat(1_000_000)));
    // The request was not received as a whole, so it is sent to the next child.
    assert_eq!(response.status, 200, "{}", response.text());
    assert_ne!(process(&server, "stopped"), before);
    assert!(server.stop().success());
}
