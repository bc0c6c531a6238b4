//! Libraries of the legacy custom interface with the clients of v1 and v2.

use trtserver_tests::custom::{
    Custom, GENERATIONS, Generation, MODES, Mode, faulty, library, tensors,
};
use trtserver_tests::isolated::processes;
use trtserver_tests::scheduled::{NEVER, correlation, flag, sequences};
use trtserver_tests::{Running, Server, python_v1, python_v2};

fn addsub(name: &str, kind: &str) -> Custom {
    let inputs = tensors("input", &[("INPUT0", kind, "16"), ("INPUT1", kind, "16")]);
    let outputs = tensors("output", &[("OUTPUT0", kind, "16"), ("OUTPUT1", kind, "16")]);
    Custom::new(name, &(inputs + &outputs))
}

fn every_addsub(mut server: Server) -> Server {
    for generation in GENERATIONS {
        for kind in ["INT32", "FP32"] {
            let name = format!("addsub_{}_{}", generation.name(), kind.to_lowercase());
            server = server.custom(addsub(&name, kind).library("addsub.c", generation));
            let name = format!("{name}_nobatch");
            server = server.custom(addsub(&name, kind).library("addsub.c", generation).batch(0));
        }
    }
    // The file for a GPU that does not exist is ignored.
    let other_file = addsub("addsub_other_file", "INT32")
        .library("addsub.c", Generation::B)
        .file("other.so")
        .more(r#"cc_model_filenames { key: "7.0" value: "nowhere.so" }"#);
    let says_1 = library("addsub.c", Generation::C, &["EXPORT_VERSION=1"]);
    server.custom(other_file).custom(addsub("addsub_says_1", "INT32").bytes(says_1))
}

fn every_identity(mut server: Server) -> Server {
    let types = "BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 FP16 FP32 FP64 STRING";
    // Generations with shapes, in turn.
    let generations = GENERATIONS.iter().skip(1).cycle();
    for (kind, &generation) in types.split(' ').zip(generations) {
        let name = format!("identity_{}", kind.to_lowercase());
        let both = tensors("input", &[("INPUT0", kind, "-1")])
            + &tensors("output", &[("OUTPUT0", kind, "-1")]);
        server = server.custom(Custom::new(&name, &both).library("identity.c", generation));
    }
    for generation in GENERATIONS {
        let name = format!("chunks_{}", generation.name());
        // Without shapes there are no variable dimensions.
        let dims = if generation == Generation::A { "1000" } else { "-1" };
        let both = tensors("input", &[("INPUT0", "UINT8", dims), ("HINT", "INT32", "1")])
            + &tensors("output", &[("OUTPUT0", "UINT8", dims), ("BLOCKS", "INT32", "1")]);
        server = server.custom(Custom::new(&name, &both).library("identity.c", generation));
    }
    server
}

fn every_sequence(mut server: Server) -> Server {
    let model = |name: &str, strategy: &str, controls: &[String]| {
        let both = tensors("input", &[("INPUT", "INT32", "1")])
            + &tensors("output", &[("OUTPUT", "INT32", "1")]);
        Custom::new(name, &both).batch(4).more(&sequences(NEVER, strategy, controls))
    };
    let start_ready = [flag("START", "int32"), flag("READY", "int32")];
    // The first generation has no sequences, the second no strategies.
    for &generation in &GENERATIONS[1..] {
        let name = format!("sequence_{}", generation.name());
        server = server.custom(model(&name, "", &start_ready).library("sequence.c", generation));
    }
    let two = model("sequence_two", "direct { }", &start_ready)
        .library("sequence.c", Generation::C)
        .batch(2)
        .more("instance_group [ { kind: KIND_CPU count: 2 } ]");
    let single = model("sequence_single", "direct { }", &start_ready)
        .library("sequence.c", Generation::C)
        .batch(0);
    let controls = [flag("START", "int32"), correlation("UINT64")];
    let oldest = model("sequence_oldest", "oldest { max_candidate_sequences: 4 }", &controls)
        .library("sequence.c", Generation::C);
    server.custom(two).custom(single).custom(oldest)
}

fn every_faulty(mut server: Server) -> Server {
    for generation in GENERATIONS {
        server = server.custom(faulty(&format!("faulty_{}", generation.name()), generation));
    }
    server
}

fn clients(mode: Mode) {
    let server = every_faulty(every_sequence(every_identity(every_addsub(mode.server())))).start();
    python_v1(&server, "v1_custom.py", &[]);
    python_v2(&server, "v2_custom.py", &[]);
    assert!(server.stop().success());
}

#[test]
fn clients_with_local_libraries() {
    clients(Mode::Local);
}

#[test]
fn clients_with_isolated_libraries() {
    clients(Mode::Isolated);
}

/// True if 1 + 2 is 3 and the other elements are 0.
fn adds(server: &Running, model: &str) -> bool {
    sum(server, model, 1, 2) == Some(3)
}

/// A request that adds these numbers, each followed by fifteen zeros.
fn sum(server: &Running, model: &str, a: i64, b: i64) -> Option<i64> {
    let zeros = ",0".repeat(15);
    let input = |name: &str, first: i64| {
        format!(r#"{{"name":"{name}","datatype":"INT32","shape":[1,16],"data":[{first}{zeros}]}}"#)
    };
    let body = format!(r#"{{"inputs":[{},{}]}}"#, input("INPUT0", a), input("INPUT1", b));
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    let json = response.json();
    let values = json["outputs"][0]["data"].as_array()?;
    let rest = values.iter().skip(1).all(|value| *value == 0);
    values.first()?.as_i64().filter(|_| response.status == 200 && rest)
}

#[test]
fn generation_is_configurable() {
    MODES.into_iter().for_each(generation_is_configured);
}

fn generation_is_configured(mode: Mode) {
    let unmarked =
        |name: &str| addsub(name, "INT32").bytes(library("addsub.c", Generation::C, &[]));
    let marked = addsub("marked", "INT32").library("addsub.c", Generation::A);
    let server = mode
        .server()
        .flag("--backend-config=custom,api=C")
        .custom(unmarked("unmarked"))
        // The model's parameter overrides the server's flag.
        .custom(marked)
        // Detection overrides both.
        .custom(addsub("says_2", "INT32").library("addsub.c", Generation::V2b))
        .start();
    // Libraries are isolated by default.
    let isolated = usize::from(mode == Mode::Isolated);
    for model in ["unmarked", "marked", "says_2"] {
        assert_eq!(processes(&server, &format!("{model}:")).len(), isolated, "{model}");
        assert!(adds(&server, model), "{model}");
    }
    assert!(server.stop().success());
}

#[test]
fn unknown_generation_is_refused() {
    let wrong = addsub("wrong", "INT32").parameter("custom_api", "D").bytes(library(
        "addsub.c",
        Generation::B,
        &[],
    ));
    let server = Server::new()
        .flag("--exit-on-error=false")
        .custom(wrong)
        .custom(addsub("right", "INT32").library("addsub.c", Generation::B))
        .start();
    server.wait_for_log_with(&["'wrong'", "custom_api", "'D'", "A", "B", "C"]);
    assert!(adds(&server, "right"));
    assert!(server.stop().success());
}

/// Dynamic batches on three instances: every request gets its own response.
#[test]
fn concurrent_requests() {
    MODES.into_iter().for_each(many_clients);
}

fn many_clients(mode: Mode) {
    let mut server = mode.server();
    for generation in GENERATIONS {
        let busy = addsub(&format!("busy_{}", generation.name()), "INT32")
            .library("addsub.c", generation)
            .more("dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 500 }")
            .more("instance_group [ { kind: KIND_CPU count: 3 } ]");
        server = server.custom(busy);
    }
    let server = server.start();
    std::thread::scope(|scope| {
        for client in 0..10 {
            let server = &server;
            scope.spawn(move || {
                for (turn, generation) in (0..50).zip(GENERATIONS.iter().cycle()) {
                    let (a, b) = (client * 1000, turn);
                    let model = format!("busy_{}", generation.name());
                    assert_eq!(sum(server, &model, a, b), Some(a + b), "{model}");
                }
            });
        }
    });
    assert!(server.stop().success());
}
