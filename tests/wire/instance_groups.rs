//! Instances of one model, and of several models on few cores.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use trtserver_tests::control::Control;
use trtserver_tests::{Running, Server, inference, probe};

/// One model has eight clients, the other one; each execution keeps a core busy.
#[test]
fn busy_model_does_not_starve_another() {
    const ENOUGH: u32 = 40;
    let spin = [("spin_us", "2000")];
    let server = Server::new()
        .model("crowded", probe("crowded", &spin) + "instance_group { kind: KIND_CPU count: 4 }\n")
        .model("quiet", probe("quiet", &spin))
        .start();
    let (stop, crowded) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut connection = server.connect();
                while !stop.load(Ordering::Relaxed) {
                    let response = connection.send(inference("crowded", "")).response();
                    assert_eq!(response.status, 200, "{}", response.text());
                    crowded.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut connection = server.connect();
        let mut quiet = 0;
        // Both make progress.
        while quiet < ENOUGH || crowded.load(Ordering::Relaxed) < ENOUGH {
            let response = connection.send(inference("quiet", "")).response();
            assert_eq!(response.status, 200, "{}", response.text());
            quiet += 1;
            let others = crowded.load(Ordering::Relaxed);
            assert!(others < 200 * (quiet + 5) && quiet < 200 * (others + 5), "{quiet} {others}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(server.stop().success());
}

#[test]
fn instance_groups_share_one_queue() {
    let groups = "instance_group [ { kind: KIND_CPU count: 2 }, { kind: KIND_MODEL count: 1 } ]\n";
    let stuck = probe("stuck", &[("until_cancelled", "true")]) + groups;
    let server = Server::new().model("stuck", stuck).start();
    for instance in ["stuck_0_0_cpu", "stuck_0_1_cpu", "stuck_1_0_model"] {
        server.wait_for_log(&format!("Creating instance {instance} on CPU using probe"));
    }
    let mut busy: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for connection in &mut busy {
        connection.send(inference("stuck", ""));
    }
    // Three are executed, one is queued.
    let waiting = r#"nv_inference_pending_request_count{model="stuck",version="1"}"#;
    let executed =
        |log: &str| (log.matches("the probe waits to be cancelled").count() == 3).then_some(());
    server.process().stderr_until("three executions", executed);
    server.poll_until("the fourth is queued", |server| server.metrics(waiting) == Some(1.0));
    drop(busy);
    let cancelled = |server: &Running, when: &str| {
        let sample = r#"trtserver_request_cancelled_total{model="stuck",version="1",when="#;
        server.metrics(&format!("{sample}\"{when}\"}}"))
    };
    server.poll_until("all are gone", |server| {
        // An instance that one cancellation frees may take the queued request before it is
        // cancelled.
        let [executing, queued] = ["executing", "queued"].map(|when| cancelled(server, when));
        executing >= Some(3.0) && executing.zip(queued).is_some_and(|(e, q)| e + q == 4.0)
    });
    assert!(server.stop().success());
}

/// Each change leaves counters behind: those of as many instances as there may be at once.
#[test]
fn changes_of_the_count_do_not_cost_memory() {
    let config = |count: usize| {
        probe("m", &[]) + &format!("instance_group {{ kind: KIND_CPU count: {count} }}\n")
    };
    let server = Server::new()
        .flag("--model-control-mode=explicit")
        .flag("--load-model=m")
        .model("m", config(1))
        .start();
    let in_use = || server.metrics(r#"trtserver_allocator_bytes{state="in_use"}"#).unwrap_or(0.0);
    let change = |rounds: usize| {
        for round in 0..rounds {
            server.models().file("m/config.pbtxt", config(1 + round % 3));
            let loaded = server.load("m");
            assert_eq!(loaded.status, 200, "{}", loaded.text());
        }
    };
    change(30);
    let before = in_use();
    change(120);
    // It was 20 MB.
    let grown = in_use() - before;
    assert!(grown < 3e6, "{grown} bytes more");
    assert!(server.stop().success());
}
