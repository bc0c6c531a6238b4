//! Libraries that select the requests of a batch (tests/triton/batch_strategy.c), here and in
//! Triton's own server.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::triton::Triton;
use trtserver_tests::triton_backends::{
    CONTRACT_FLAGS, SONAME, SONAME_IN_WHEEL, batch_strategy, contract,
};
use trtserver_tests::{Connection, Repository, Response, Running, Server, http1};

/// Name of a model, which is a rule, and the sizes of the batches that six requests of 16 bytes are
/// executed in.
const RULES: [Rule; 3] =
    [("requests_2", &[2, 2, 2]), ("requests_100", &[6]), ("bytes_48", &[3, 3])];
/// No request fits. Triton 2.51 never answers them; here the first request of a batch is in it in
/// any case.
const NONE_FITS: Rule = ("bytes_8", &[1, 1, 1, 1, 1, 1]);

type Rule = (&'static str, &'static [u64]);

fn config(more: &str) -> String {
    format!(
        "backend: \"contract\"\nmax_batch_size: 6\n\
         input [ {{ name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 4 ] }} ]\n\
         output [ {{ name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 4 ] }} ]\n\
         instance_group [ {{ kind: KIND_CPU count: 1 }} ]\n\
         dynamic_batching {{ max_queue_delay_microseconds: 1000000 }}\n{more}"
    )
}

fn parameter(key: &str, value: &str) -> String {
    format!("parameters {{ key: \"{key}\" value {{ string_value: \"{value}\" }} }}\n")
}

/// One request for each value, all at once; the responses in the order of the values.
fn infer(http: &str, model: &str, values: &[i32]) -> Vec<Response> {
    let sent = values.iter().map(|value| {
        let data = vec![value; 4];
        let input = json!({ "name": "INPUT0", "datatype": "INT32", "shape": [1, 4], "data": data });
        let body = json!({ "inputs": [input] }).to_string();
        let path = format!("/v2/models/{model}/infer");
        let mut connection = Connection::open(http);
        connection.send(http1::request("POST", &path, &[], body.as_bytes()));
        connection
    });
    let sent: Vec<_> = sent.collect();
    sent.into_iter().map(|mut connection| connection.response()).collect()
}

/// The sizes of the batches that were executed, largest first.
fn executed(stats: &Value) -> Vec<u64> {
    let stats = &stats["model_stats"][0];
    let batches = stats["batch_stats"].as_array().into_iter().flatten();
    let sizes = batches.flat_map(|batch| {
        let count = batch["compute_infer"]["count"].as_u64().unwrap_or_default();
        let size = batch["batch_size"].as_u64().unwrap_or_default();
        vec![size; count as usize]
    });
    let mut sizes: Vec<_> = sizes.collect();
    sizes.sort_by(|a, b| b.cmp(a));
    assert_eq!(stats["execution_count"], sizes.len(), "{stats}");
    assert_eq!(stats["inference_count"], sizes.iter().sum::<u64>(), "{stats}");
    sizes
}

/// The statistics of a model, once they count this many requests: a backend reports them after its
/// responses.
fn complete_stats(http: &str, model: &str, requests: usize) -> Value {
    let path = format!("/v2/models/{model}/stats");
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let request = http1::request("GET", &path, &[], b"");
        let stats = Connection::open(http).send(request).response().json();
        if stats["model_stats"][0]["inference_count"] == requests || Instant::now() > end {
            return stats;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[track_caller]
fn hold(http: &str, rules: &[Rule]) {
    let values = [1, 2, 3, 4, 5, 6];
    for (model, sizes) in rules {
        for (response, value) in infer(http, model, &values).iter().zip(values) {
            assert_eq!(response.status, 200, "{model}: {}", response.text());
            let data = &response.json()["outputs"][0]["data"];
            assert_eq!(*data, json!(vec![value; 4]), "{model}");
        }
        assert_eq!(executed(&complete_stats(http, model, values.len())), *sizes, "{model}");
    }
}

#[test]
fn rules_hold_in_triton() {
    let models = Repository::new();
    let library = batch_strategy(SONAME_IN_WHEEL, None);
    for (name, _) in RULES {
        models.model(name, &config(""));
        models.file(format!("{name}/batchstrategy.so"), &library);
    }
    let triton = Triton::start(models.path(), contract(SONAME_IN_WHEEL), &CONTRACT_FLAGS);
    hold(triton.addresses()[0], &RULES);
}

fn with_rules(mut server: Server, library: &[u8]) -> Server {
    for flag in CONTRACT_FLAGS {
        server = server.flag(flag);
    }
    for (name, _) in RULES.into_iter().chain([NONE_FITS]) {
        server = server.model(name, config(""));
        server = server.file(&format!("{name}/1/batchstrategy.so"), library);
    }
    server.triton_start_line().backend_dir(contract(SONAME))
}

#[test]
fn rules_hold_here() {
    let library = batch_strategy(SONAME, None);
    for isolation in ["process", "none"] {
        let isolation = format!("--backend-config=contract,isolation={isolation}");
        let server = with_rules(Server::new(), &library).flag(isolation).start();
        hold(server.http(), &RULES);
        hold(server.http(), &[NONE_FITS]);
        // A request that the library refuses fails alone.
        let values = [1, 13, 3, 4, 5, 6];
        for (response, value) in infer(server.http(), "requests_2", &values).iter().zip(values) {
            let says = response.text();
            match value {
                13 => assert!(says.contains("requests with 13 are not batched"), "{says}"),
                _ => assert_eq!(response.status, 200, "{says}"),
            }
        }
        assert!(server.stop().success());
    }
}

#[track_caller]
fn refused(server: &Running, model: &str, parts: &[&str]) {
    let response = server.load(model);
    let says = response.error_text();
    assert!(response.status >= 400, "{model}: {}", response.text());
    for part in parts {
        assert!(says.contains(part), "{model}: no {part:?} in {says:?}");
    }
}

#[test]
fn libraries_that_cannot_be_used() {
    let library = batch_strategy(SONAME, None);
    let path = |path: &str| config(&parameter("TRITON_BATCH_STRATEGY_PATH", path));
    let sequences = "sequence_batching { }\n";
    let sequences = config(sequences).replace("dynamic_batching {", "#");
    let mut server = explicit().triton_start_line().backend_dir(contract(SONAME));
    for flag in CONTRACT_FLAGS {
        server = server.flag(flag);
    }
    let server = server
        .model("named", path("rule.so"))
        .file("named/rule.so", &library)
        .model("absent", path("rule.so"))
        .model("outside", path("../named/rule.so"))
        .model("sequences", sequences)
        .file("sequences/batchstrategy.so", &library)
        .model("incomplete", config(""))
        .file("incomplete/batchstrategy.so", batch_strategy(SONAME, Some("NO_FINALIZE")))
        .model("text", config(""))
        .file("text/1/batchstrategy.so", "none")
        .model("refuses", config(""))
        .file("refuses/batchstrategy.so", &library)
        .start();
    assert_ok(server.load("named"));
    assert_eq!(infer(server.http(), "named", &[7])[0].status, 200);
    let parameter = "TRITON_BATCH_STRATEGY_PATH";
    refused(&server, "absent", &[parameter, "rule.so", "No such file"]);
    refused(&server, "outside", &[parameter, "../named/rule.so", "is outside"]);
    refused(&server, "sequences", &["batchstrategy.so", "sequences"]);
    refused(&server, "incomplete", &["batchstrategy.so", "TRITONBACKEND_ModelBatchFinalize"]);
    refused(&server, "text", &["text/1/batchstrategy.so"]);
    refused(&server, "refuses", &["ModelBatcherInitialize", "no batches for this model"]);
    assert!(server.stop().success());
}
