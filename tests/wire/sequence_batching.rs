//! Sequence batching with the clients of v1 and v2: direct, oldest, implicit state.

use trtserver_tests::scheduled::{NEVER, accumulator, correlation, flag, instances, sequences};
use trtserver_tests::{Server, parameters, python_v1, python_v2};

const LAYOUTS: [(&str, u32, u32); 3] = [("1x4", 1, 4), ("2x2", 2, 2), ("4x1", 4, 1)];

/// START and READY of one type.
fn start_ready(kind: &str) -> [String; 2] {
    [flag("START", kind), flag("READY", kind)]
}

/// Accumulators named after type, instances and slots, such as `KIND_1x4`.
fn layouts(mut server: Server, kind: &str) -> Server {
    for (layout, count, slots) in LAYOUTS {
        let name = format!("{kind}_{layout}");
        let scheduling = sequences(NEVER, "direct { }", &start_ready("int32")) + &instances(count);
        server = server.model(&name, accumulator(&name, slots, "slot", &scheduling));
    }
    server
}

/// An accumulator with one instance.
fn direct(server: Server, name: &str, slots: u32, idle: &str, strategy: &str) -> Server {
    let scheduling = sequences(idle, strategy, &start_ready("int32"));
    server.model(name, accumulator(name, slots, "slot", &scheduling))
}

fn oldest(server: Server, name: &str, idle: &str, strategy: &str) -> Server {
    let controls = [flag("START", "int32"), correlation("UINT64")];
    let scheduling = sequences(idle, &format!("oldest {{ {strategy} }}"), &controls);
    server.model(name, accumulator(name, 4, "corrid", &scheduling))
}

fn every_kind() -> Server {
    let mut server = layouts(Server::new().copy_models("tests/models/sequences"), "acc");
    let whole = |kind| [flag("START", kind), flag("END", kind), flag("READY", kind)];
    for kind in ["fp32", "bool"] {
        let name = format!("acc_{kind}");
        let scheduling = sequences(NEVER, "direct { }", &whole(kind));
        server = server.model(&name, accumulator(&name, 4, "slot", &scheduling));
    }
    for kind in ["int64", "uint64", "int32", "uint32", "string"] {
        let name = format!("corrid_{kind}");
        let controls = [flag("START", "int32"), correlation(&kind.to_uppercase())];
        let scheduling = sequences(NEVER, "direct { }", &controls);
        server = server.model(&name, accumulator(&name, 4, "corrid", &scheduling));
    }
    server = direct(server, "acc_nobatch", 0, NEVER, "direct { }");
    server = direct(server, "one_slot", 1, NEVER, "direct { }");
    server = direct(server, "one_slot_timeout", 1, NEVER, "direct { }");
    server = direct(server, "idle", 1, "300000", "direct { }");
    server = direct(server, "idle_two", 1, "2000000", "direct { }");
    server = direct(server, "cancel_direct", 4, NEVER, "direct { }");
    let patient =
        "direct { max_queue_delay_microseconds: 600000000 minimum_slot_utilization: 1.0 }";
    server = direct(server, "all_slots", 4, NEVER, patient);
    server = oldest(server, "old", NEVER, "max_candidate_sequences: 4");
    server = oldest(server, "old_two", NEVER, "max_candidate_sequences: 2");
    server = oldest(server, "cancel_oldest", NEVER, "max_candidate_sequences: 4");
    server = oldest(server, "idle_oldest", "300000", "max_candidate_sequences: 1");
    let four = "max_candidate_sequences: 4 preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 600000000";
    oldest(server, "old_four", NEVER, four)
}

#[test]
fn v2_client() {
    let server = every_kind().start();
    python_v2(&server, "v2_sequences.py", &["-k", "Free"]);
    assert!(server.stop().success());
}

#[test]
fn v1_client() {
    let server = every_kind().start();
    python_v1(&server, "v1_sequences.py", &["-k", "Free"]);
    assert!(server.stop().success());
}

#[test]
fn sequences_are_batched() {
    let mut server = Server::new().env("TRTSERVER_DELAY_SCHEDULER", "12");
    for kind in ["full", "half", "skip", "v1_full", "v1_half", "v1_skip"] {
        server = layouts(server, kind);
    }
    let server = server.start();
    python_v2(&server, "v2_sequences.py", &["-k", "Held"]);
    python_v1(&server, "v1_sequences.py", &["-k", "Held"]);
    assert!(server.stop().success());
}

#[test]
fn backlog_waits_for_a_slot() {
    let server = Server::new()
        .env("TRTSERVER_DELAY_SCHEDULER", "8")
        .env("TRTSERVER_BACKLOG_DELAY_SCHEDULER", "4");
    let server = layouts(layouts(server, "behind"), "v1_behind").start();
    python_v2(&server, "v2_sequences.py", &["-k", "Backlog"]);
    python_v1(&server, "v1_sequences.py", &["-k", "Backlog"]);
    assert!(server.stop().success());
}

/// Two hundred concurrent sequences, some of which are cancelled.
#[test]
fn thousands_of_sequences() {
    let mut server = Server::new().copy_models("tests/models/sequences");
    // Long enough for slow clients, short enough to free the slots of cancelled sequences.
    const IDLE: &str = "4000000";
    // Requests take a while, so that streams are reset while some are executed and others queued.
    let rest = instances(2) + &parameters(&[("delay_ms", "2")]);
    let scheduling = sequences(IDLE, "direct { }", &start_ready("int32")) + &rest;
    server = server.model("storm_direct", accumulator("storm_direct", 16, "slot", &scheduling));
    let controls = [flag("START", "int32"), correlation("UINT64")];
    let strategy = "oldest { max_candidate_sequences: 32 max_queue_delay_microseconds: 500 }";
    let scheduling = sequences(IDLE, strategy, &controls) + &rest;
    server = server.model("storm_oldest", accumulator("storm_oldest", 16, "corrid", &scheduling));
    let server = server.start();
    python_v2(&server, "v2_many_sequences.py", &[]);
    python_v1(&server, "v1_many_sequences.py", &[]);
    assert!(server.stop().success());
}

/// Configurations of 0.12 name the idle limit differently, and 0.12 had none.
#[test]
fn name_of_0_12_sets_no_idle_limit() {
    let scheduling = sequences("1", "direct { }", &start_ready("int32"));
    let scheduling =
        scheduling.replace("max_sequence_idle_microseconds", "max_queue_delay_microseconds");
    let server = Server::new().model("old", accumulator("old", 1, "slot", &scheduling)).start();
    let status = server.get("/api/status/old").text();
    assert!(status.contains("max_sequence_idle_microseconds: 18446744073709551615\n"), "{status}");
    let step = |value: i32, start: bool| {
        let body = format!(
            r#"{{"parameters":{{"sequence_id":1,"sequence_start":{start}}},"inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[{value}]}}]}}"#
        );
        let response = server.post("/v2/models/old/infer", &[], body);
        assert_eq!(response.status, 200, "{}", response.text());
        response.json()["outputs"][0]["data"][0].as_i64()
    };
    assert_eq!(step(5, true), Some(5));
    // Longer than the limit of a configuration that names none.
    std::thread::sleep(std::time::Duration::from_millis(1300));
    assert_eq!(step(7, false), Some(12));
    assert!(server.stop().success());
}
