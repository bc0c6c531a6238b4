//! Schedulers side by side: busy models on few cores, instances of several kinds, and steps of ensembles that batch or keep
//! sequences.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use trtserver_tests::http1::request;
use trtserver_tests::scheduled::{NEVER, accumulator, batcher, flag, sequences};
use trtserver_tests::{Response, Running, Server, inference, probe};

/// An inference over HTTP v2; `data` are the members of `inputs`.
fn ask(model: &str, parameters: &str, inputs: &str) -> Vec<u8> {
    let json = format!(r#"{{"parameters":{{{parameters}}},"inputs":[{inputs}]}}"#);
    request("POST", &format!("/v2/models/{model}/infer"), &[], json.as_bytes())
}

#[track_caller]
fn output(response: &Response, name: &str) -> serde_json::Value {
    assert_eq!(response.status, 200, "{}", response.text());
    let outputs = response.json()["outputs"].as_array().cloned().unwrap_or_default();
    let output = outputs.iter().find(|output| output["name"] == name);
    output.unwrap_or_else(|| panic!("no {name}: {}", response.text()))["data"].clone()
}

/// One has many callers, the other one has one; each execution keeps a core busy.
#[test]
fn a_busy_model_leaves_room_for_another() {
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
        // Both get on, whoever is ahead.
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
fn instances_of_several_kinds_share_the_queue() {
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
    // Three are executed, one waits.
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
        // An instance that the first of them leaves may still take the one that waited.
        let [executing, queued] = ["executing", "queued"].map(|when| cancelled(server, when));
        executing >= Some(3.0) && executing.zip(queued).is_some_and(|(e, q)| e + q == 4.0)
    });
    assert!(server.stop().success());
}

#[test]
fn requests_of_an_ensemble_are_batched_in_its_steps() {
    let tensor = |side: &str, name: &str, kind: &str, dims: &str| {
        format!("{side} {{ name: '{name}' data_type: TYPE_{kind} dims: {dims} }}\n")
    };
    let maps = |field: &str, names: &[&str]| -> String {
        names.iter().map(|name| format!("{field} {{ key: '{name}' value: '{name}' }} ")).collect()
    };
    let ensemble = [
        "name: 'through' platform: 'ensemble' max_batch_size: 8\n".to_owned(),
        tensor("input", "INPUT0", "FP32", "-1") + &tensor("input", "INPUT1", "FP32", "-1"),
        tensor("output", "OUTPUT0", "FP32", "-1") + &tensor("output", "BATCH", "INT32", "2"),
        "ensemble_scheduling { step { model_name: 'batching' model_version: -1\n".to_owned(),
        maps("input_map", &["INPUT0", "INPUT1"]) + &maps("output_map", &["OUTPUT0", "BATCH"]),
        "} }\n".to_owned(),
    ]
    .concat();
    let dynamic = format!(
        "dynamic_batching {{ preferred_batch_size: 8 max_queue_delay_microseconds: {NEVER} }}\n"
    );
    let server = Server::new()
        .model("batching", batcher("batching", 8, &dynamic))
        .model("through", ensemble)
        .start();
    // Rounds of eight callers at once, every second of them not through the ensemble.
    for _ in 0..5 {
        let mut callers: Vec<_> = (0..8).map(|_| server.connect()).collect();
        for (i, caller) in callers.iter_mut().enumerate() {
            let input = |name: &str| {
                format!(r#"{{"name":"{name}","datatype":"FP32","shape":[1,1],"data":[{i}]}}"#)
            };
            let inputs = [input("INPUT0"), input("INPUT1")].join(",");
            caller.send(ask(["through", "batching"][i % 2], "", &inputs));
        }
        for (i, caller) in callers.iter_mut().enumerate() {
            let response = caller.response();
            assert_eq!(output(&response, "OUTPUT0"), serde_json::json!([i as f64]));
            assert_eq!(output(&response, "BATCH"), serde_json::json!([8, 8]));
        }
    }
    assert!(server.stop().success());
}

/// Sequences are the model's, whichever way their requests come.
#[test]
fn a_sequence_may_change_between_an_ensemble_and_its_step() {
    let scheduling = sequences(NEVER, "direct { }", &[flag("START", "int32")]);
    let ensemble = "name: 'through' platform: 'ensemble' max_batch_size: 4\n\
        input { name: 'INPUT0' data_type: TYPE_INT32 dims: 1 }\n\
        output { name: 'OUTPUT0' data_type: TYPE_INT32 dims: 1 }\n\
        ensemble_scheduling { step { model_name: 'summing' model_version: -1\n\
        input_map { key: 'INPUT0' value: 'INPUT0' } output_map { key: 'OUTPUT0' value: 'OUTPUT0' } } }";
    let server = Server::new()
        .model("summing", accumulator("summing", 4, "slot", &scheduling))
        .model("through", ensemble)
        .start();
    let mut sum = 0;
    for i in 1..=6 {
        sum += i;
        let parameters =
            format!(r#""sequence_id":"a","sequence_start":{},"sequence_end":{}"#, i == 1, i == 6);
        let input = format!(r#"{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[{i}]}}"#);
        let response = server.send(ask(["through", "summing"][i % 2], &parameters, &input));
        assert_eq!(output(&response, "OUTPUT0"), serde_json::json!([sum]));
    }
    assert!(server.stop().success());
}
