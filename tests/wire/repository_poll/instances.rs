//! Instance groups that change while the model serves: instances are opened and closed beside the
//! others.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::isolated::{isolated, processes};
use trtserver_tests::polling::{ALL, Polled, numbered, numbered_sums, polling};
use trtserver_tests::{Latch, Running, SetOnDrop, inference, probe};

/// Instances on the CPU.
fn group(count: usize) -> String {
    format!("instance_group {{ kind: KIND_CPU count: {count} }}\n")
}

/// Threads of the instances of a version.
fn instances(process: Pid, version: &str) -> usize {
    let tasks = format!("/proc/{}/task", process.as_raw_nonzero());
    let tasks = fs::read_dir(&tasks).unwrap_or_else(|e| panic!("{tasks}: {e}"));
    let names =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with(&format!("{version}#"))).count()
}

/// So many requests to `model` are executed at the same time, and no more.
fn executes_at_once(server: &Running, model: &str, count: usize) {
    let latch = Latch::new();
    let before = server.log().matches("the probe waits for the file").count();
    let mut busy: Vec<_> = (0..=count).map(|_| server.connect()).collect();
    for connection in &mut busy {
        connection.send(inference(model, &latch.parameter()));
    }
    latch.wait_for(server, before + count);
    let waiting = format!("nv_inference_pending_request_count{{model=\"{model}\",version=\"2\"}}");
    server.poll_until("the last request is queued", |s| s.metrics(&waiting) == Some(1.0));
    latch.open();
    for mut connection in busy {
        assert_eq!(connection.response().status, 200);
    }
}

#[test]
fn instance_count_changes_under_load_without_reopening_a_version() {
    let config = |count| numbered("m") + ALL + &group(count);
    let server = polling()
        .file("m/1/value", "10")
        .file("m/2/value", "20")
        .file("m/config.pbtxt", config(1))
        .start();
    let end = AtomicBool::new(false);
    let answered = AtomicUsize::new(0);
    let client = |version: i64| {
        let (number, path) = (10.0 * version as f64, format!("m/versions/{version}"));
        let request = inference(&path, "");
        let mut connection = server.connect();
        while !end.load(Ordering::Relaxed) {
            let response = connection.send(&request).response();
            assert_eq!(response.status, 200, "{}", response.text());
            let first = response.json()["outputs"][0]["data"][0].as_f64();
            assert_eq!(first, Some(number + 1.0));
            answered.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let _end = SetOnDrop(&end);
        for version in [1, 2, 1, 2] {
            scope.spawn(move || client(version));
        }
        for count in [3, 1, 2, 1, 4] {
            server.models().file("m/config.pbtxt", config(count));
            let pid = server.process().pid();
            server.poll_until("the instances are open", |server| {
                let config = server.get("/v2/models/m/config").json();
                config["instance_group"][0]["count"] == json!(count)
                    && [1, 2].map(|v| instances(pid, &format!("m/{v}"))) == [count; 2]
            });
            let before = answered.load(Ordering::Relaxed);
            server.poll_until("requests are answered", |_| {
                answered.load(Ordering::Relaxed) > before + 20
            });
        }
    });
    server.wait_until_opened("m", [1, 1]);
    executes_at_once(&server, "m", 4);
    let executed: f64 = ["1", "2"]
        .iter()
        .filter_map(|version| {
            server.metrics(&format!(
                "nv_inference_request_success{{model=\"m\",version=\"{version}\"}}"
            ))
        })
        .sum();
    assert_eq!(executed as usize, answered.load(Ordering::Relaxed) + 5, "the counters continue");
    assert!(server.stop().success());
}

/// The configuration with so many instances, as the parameter of a load request.
fn with_count(server: &Running, model: &str, count: usize) -> Value {
    let mut config = server.get(&format!("/v2/models/{model}/config")).json();
    config["instance_group"][0]["count"] = json!(count);
    json!({ "config": config.to_string() })
}

#[test]
fn load_request_changes_the_instances_of_local_and_isolated_models() {
    let here = probe("here", &[]) + ALL + &group(1);
    let there = isolated("there", &[]) + ALL + &group(2);
    let server = explicit()
        .model("here", here.clone())
        .model("there", there.clone())
        .file("here/2/file", "")
        .file("there/2/file", "")
        .flag("--load-model=*")
        .start();
    // Each version has its process.
    let child = || processes(&server, "there:2");
    let [at_first_child] = child()[..] else { panic!("{:?}", child()) };
    for (model, config, pid, at_first) in
        [("here", here, server.process().pid(), 1), ("there", there, at_first_child, 2)]
    {
        let version = format!("{model}/2");
        for count in [3, 1] {
            assert_ok(server.control(model, "load", with_count(&server, model, count)));
            server.poll_until("instances are opened and closed", |_| {
                instances(pid, &version) == count
            });
            executes_at_once(&server, model, count);
        }
        // The request's configuration is kept until the file changes.
        assert_ok(server.load(model));
        assert_eq!(instances(pid, &version), 1);
        server.models().file(format!("{model}/config.pbtxt"), config + "# changed\n");
        assert_ok(server.load(model));
        server.poll_until("the file counts", |_| instances(pid, &version) == at_first);
    }
    assert_eq!(child(), [at_first_child]);
    assert_eq!(server.log().matches("re-loading: ").count(), 0, "{}", server.log());
    // The process is restarted with the instances of now.
    assert_ok(server.control("there", "load", with_count(&server, "there", 3)));
    kill_process(at_first_child, Signal::KILL).unwrap_or_else(|e| panic!("{e}"));
    server.wait_for_log("its process was restarted");
    executes_at_once(&server, "there", 3);
    assert!(server.stop().success());
}

#[test]
fn instances_that_cannot_be_added_change_nothing() {
    let server = polling()
        .flag("--max-instances=3")
        .model("m", numbered("m") + &group(2))
        .file("m/1/value", "10")
        .start();
    server.models().file("m/config.pbtxt", numbered("m") + &group(5));
    server.poll_until("the reason is shown", |server| {
        server.reason("m").contains("at most 3 are allowed by --max-instances")
    });
    assert_eq!(server.answer("m"), Some((1, 10)));
    assert_eq!(instances(server.process().pid(), "m/1"), 2);
    server.models().file("m/config.pbtxt", numbered("m") + &group(3));
    server.poll_until("the repaired model is updated", |server| {
        server.reason("m").is_empty() && instances(server.process().pid(), "m/1") == 3
    });
    server.wait_until_opened("m", [1]);
    assert!(server.stop().success());
}

#[test]
fn sequence_models_are_reopened_with_their_new_instances() {
    let config = |count: usize| {
        let one = numbered_sums("m", "10000000");
        one.replace("KIND_CPU count: 1", &format!("KIND_CPU count: {count}"))
    };
    let server = polling().file("m/1/value", "10").file("m/config.pbtxt", config(1)).start();
    server.models().file("m/config.pbtxt", config(2));
    server.wait_until_opened("m", [2]);
    server.poll_until("the version has two instances", |server| {
        instances(server.process().pid(), "m/1") == 2
    });
    assert!(server.stop().success());
}
