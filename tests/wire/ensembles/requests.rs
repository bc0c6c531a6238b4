//! Ensemble requests with both clients, errors, cancellation, metadata.

use serde_json::{Value, json};
use std::sync::LazyLock;
use trtserver_tests::http1::request;
use trtserver_tests::scheduled::{NEVER, accumulator, flag, sequences};
use trtserver_tests::{
    Response, Running, Server, Signal, every_model, inference, probe, python_v1, python_v2,
};

/// An ensemble. Tensors as `NAME TYPE dims`, steps as
/// `model[:version] INPUT=tensor … > OUTPUT=tensor …`.
fn ensemble(name: &str, batch: u32, inputs: &[&str], outputs: &[&str], steps: &[&str]) -> String {
    let tensors = |side: &str, all: &[&str]| -> String {
        let one = |text: &&str| {
            let [name, kind, rest] = text.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{text}: a name, a type, dims")
            };
            format!("{side} {{ name: '{name}' data_type: TYPE_{kind} dims: {rest} }}\n")
        };
        all.iter().map(one).collect()
    };
    let map = |field: &str, pairs: &str| -> String {
        let one = |word: &str| {
            let (key, value) = word.split_once('=').unwrap_or_else(|| panic!("{word}: OWN=tensor"));
            format!("{field} {{ key: '{key}' value: '{value}' }} ")
        };
        pairs.split_whitespace().map(one).collect()
    };
    let step = |text: &&str| {
        let (model, maps) =
            text.split_once(' ').unwrap_or_else(|| panic!("{text}: a model and maps"));
        let (reads, writes) = maps.split_once('>').unwrap_or_else(|| panic!("{text}: no >"));
        let (model, version) = model.split_once(':').unwrap_or((model, "-1"));
        let (reads, writes) = (map("input_map", reads), map("output_map", writes));
        format!("step {{ model_name: '{model}' model_version: {version} {reads} {writes} }}\n")
    };
    let steps: String = steps.iter().map(step).collect();
    format!(
        "name: '{name}'\nplatform: 'ensemble'\nmax_batch_size: {batch}\n{}{}ensemble_scheduling {{\n{steps}}}\n",
        tensors("input", inputs),
        tensors("output", outputs),
    )
}

/// Ensembles with a failing step and with a step that waits for its cancellation; each after an
/// echo.
fn after_an_echo(name: &str, model: &str) -> String {
    let steps = ["echo INPUT0=INPUT0 > OUTPUT0=t", &format!("{model} INPUT0=t > OUTPUT0=OUTPUT0")];
    ensemble(name, 8, &["INPUT0 FP32 [ -1 ]"], &["OUTPUT0 FP32 [ -1 ]"], &steps)
}

const TWO: &[&str] = &["A FP32 [ 16 ]", "B FP32 [ 16 ]"];
const TWICE: &[&str] = &["TWICE_A FP32 [ 16 ]", "TWICE_B FP32 [ 16 ]"];
/// Sum and difference, each passed through its own step, then their sum and difference.
const DIAMOND: &[&str] = &[
    "addsub_fp32 INPUT0=s2 INPUT1=d2 > OUTPUT0=TWICE_A OUTPUT1=TWICE_B",
    "addsub_fp32 INPUT0=A INPUT1=B > OUTPUT0=s OUTPUT1=d",
    "identity_fp32 INPUT0=s > OUTPUT0=s2",
    "echo INPUT0=d > OUTPUT0=d2",
];

/// An echo without batches.
fn unbatched(name: &str, dims: &str) -> String {
    format!(
        "name: '{name}'\nbackend: 'probe'\n\
         input {{ name: 'INPUT0' data_type: TYPE_FP32 dims: [ {dims} ] }}\n\
         output {{ name: 'OUTPUT0' data_type: TYPE_FP32 dims: [ {dims} ] }}\n"
    )
}

fn server() -> Server {
    let halves = probe("halves", &[])
        + "input [ { name: 'INPUT1' data_type: TYPE_FP32 dims: [ -1 ] optional: true } ]\n\
           output [ { name: 'OUTPUT1' data_type: TYPE_FP32 dims: [ -1 ] } ]\n";
    let text =
        ["identity_string INPUT0=INPUT0 > OUTPUT0=t", "identity_string INPUT0=t > OUTPUT0=OUTPUT0"];
    let versions = ["versions:1 INPUT0=INPUT0 > OUTPUT0=t", "versions INPUT0=t > OUTPUT0=OUTPUT0"];
    let (one, out) = (["INPUT0 FP32 [ -1 ]"], ["OUTPUT0 FP32 [ -1 ]"]);
    let scores = ["identity_fp32 INPUT0=INPUT0 > OUTPUT0=t", "classes INPUT0=t > OUTPUT0=SCORES"];
    let lazy = ["echo INPUT0=INPUT0 > OUTPUT0=GOOD", "fails INPUT0=INPUT0 > OUTPUT0=BAD"];
    // The clients run at the same time, so each has models of its own for statistics.
    let counted = |n| {
        let model = format!("counted{n}");
        let first = format!("{model} INPUT0=INPUT0 > OUTPUT0=t");
        let second = format!("{model} INPUT0=t > OUTPUT0=OUTPUT0");
        let name = format!("counting{n}");
        let config = ensemble(&name, 8, &one, &out, &[&first, &second]);
        (model.clone(), probe(&model, &[]), name, config)
    };
    let (one1, probe1, two1, config1) = counted(1);
    let (one2, probe2, two2, config2) = counted(2);
    let maybe = ["halves INPUT0=X INPUT1=Y > OUTPUT0=U OUTPUT1=V"];
    let controls = [flag("START", "int32"), flag("READY", "int32")];
    let summing = sequences(NEVER, "direct { }", &controls);
    let totals = ["summing INPUT0=IN > OUTPUT0=t", "identity_int32 INPUT0=t > OUTPUT0=OUT"];
    let totals = ensemble("totals", 4, &["IN INT32 [ 1 ]"], &["OUT INT32 [ 1 ]"], &totals);
    every_model()
        // Steps see the sequence of the ensemble request.
        .model("summing", accumulator("summing", 4, "slot", &summing))
        .model("totals", totals)
        .model(&one1, probe1)
        .model(&two1, config1)
        .model(&one2, probe2)
        .model(&two2, config2)
        .model("halves", halves)
        .model("stuck", probe("stuck", &[("until_cancelled", "true")]))
        .model("diamond", ensemble("diamond", 8, TWO, TWICE, DIAMOND))
        .model("diamond_nobatch", ensemble("diamond_nobatch", 0, TWO, TWICE, DIAMOND))
        .model(
            "outer",
            ensemble(
                "outer",
                4,
                TWO,
                TWICE,
                &[
                    "diamond A=A B=B > TWICE_A=t TWICE_B=u",
                    "diamond A=t B=u > TWICE_A=TWICE_A TWICE_B=TWICE_B",
                ],
            ),
        )
        .model(
            "text",
            ensemble("text", 8, &["INPUT0 STRING [ -1 ]"], &["OUTPUT0 STRING [ -1 ]"], &text),
        )
        .model("two_versions", ensemble("two_versions", 8, &one, &out, &versions))
        .model(
            "scores",
            ensemble("scores", 4, &["INPUT0 FP32 [ 5 ]"], &["SCORES FP32 [ 5 ]"], &scores),
        )
        .model(
            "reshaped",
            ensemble(
                "reshaped",
                4,
                &["INPUT0 FP32 [ 2, 3 ]"],
                &["OUTPUT0 FP32 [ 2, 3 ]"],
                &["reshape INPUT0=INPUT0 > OUTPUT0=t", "reshape INPUT0=t > OUTPUT0=OUTPUT0"],
            ),
        )
        // A non-batching step takes the batch as a dimension, or one row at a time.
        .model(
            "whole",
            ensemble(
                "whole",
                8,
                &["INPUT0 FP32 [ 2 ]"],
                &["OUTPUT0 FP32 [ 2 ]"],
                &[
                    "echo INPUT0=INPUT0 > OUTPUT0=t",
                    "matrix INPUT0=t > OUTPUT0=u",
                    "echo INPUT0=u > OUTPUT0=OUTPUT0",
                ],
            ),
        )
        .model(
            "rowwise",
            ensemble(
                "rowwise",
                8,
                &["INPUT0 FP32 [ 2 ]"],
                &["OUTPUT0 FP32 [ 2 ]"],
                &["row INPUT0=INPUT0 > OUTPUT0=OUTPUT0"],
            ),
        )
        .model("matrix", unbatched("matrix", "-1, 2"))
        .model("row", unbatched("row", "2"))
        .model("lazy", ensemble("lazy", 8, &one, &["GOOD FP32 [ -1 ]", "BAD FP32 [ -1 ]"], &lazy))
        .model(
            "maybe",
            ensemble(
                "maybe",
                8,
                &["X FP32 [ -1 ]", "Y FP32 [ -1 ] optional: true"],
                &["U FP32 [ -1 ]", "V FP32 [ -1 ]"],
                &maybe,
            ),
        )
        // An ensemble output that is one of its inputs.
        .model(
            "through",
            ensemble(
                "through",
                8,
                &one,
                &["INPUT0 FP32 [ -1 ]", out[0]],
                &["echo INPUT0=INPUT0 > OUTPUT0=OUTPUT0"],
            ),
        )
        .model("failing", after_an_echo("failing", "fails"))
        .model("waiting", after_an_echo("waiting", "stuck"))
        // The first step's output has the wrong shape for the second.
        .model(
            "narrow",
            ensemble(
                "narrow",
                8,
                &one,
                &["OUTPUT0 FP32 [ 5 ]"],
                &["echo INPUT0=INPUT0 > OUTPUT0=t", "classes INPUT0=t > OUTPUT0=OUTPUT0"],
            )
            .replace("max_batch_size: 8", "max_batch_size: 4"),
        )
}

static SERVER: LazyLock<Running> = LazyLock::new(|| server().start_shared());

#[test]
fn v2_client() {
    python_v2(&SERVER, "v2_ensembles.py", &[]);
}

#[test]
fn v1_client() {
    python_v1(&SERVER, "v1_ensembles.py", &[]);
}

fn refused(response: &Response, status: u16, text: &str) {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(response.json(), serde_json::json!({ "error": text }));
}

#[test]
fn errors_name_ensemble_and_step() {
    refused(&SERVER.infer("failing", ""), 500, "in ensemble 'failing', the probe was told to fail");
    let text = "in ensemble 'narrow', [request id: <id_unknown>] unexpected shape for input 'INPUT0' for model \
                'classes'. Expected [-1,5], got [1,2]. NOTE: ";
    let response = SERVER.infer("narrow", "");
    assert!(response.text().contains(text), "{}", response.text());
}

#[test]
fn parameters_reach_every_step() {
    refused(
        &SERVER.infer("waiting", r#""fail":"so be it""#),
        500,
        "in ensemble 'waiting', so be it",
    );
}

/// As in Triton, which also sends them where the request has none.
#[test]
fn responses_have_the_sequence_parameters_of_their_request() {
    let parameters = |parameters: Value| {
        let tensor = json!({"name": "IN", "datatype": "INT32", "shape": [1, 1], "data": [1]});
        let body = json!({"parameters": parameters, "inputs": [tensor]}).to_string();
        let response = SERVER.post("/v2/models/totals/infer", &[], body);
        assert_eq!(response.status, 200, "{}", response.text());
        response.json()["parameters"].clone()
    };
    let sequence = |id: Value, start, end| json!({"sequence_id": id, "sequence_start": start, "sequence_end": end});
    for id in [json!(77), json!("text")] {
        let first = json!({"sequence_id": id, "sequence_start": true});
        assert_eq!(parameters(first), sequence(id.clone(), true, false));
        assert_eq!(parameters(json!({"sequence_id": id})), sequence(id.clone(), false, false));
        let last = json!({"sequence_id": id, "sequence_end": true});
        assert_eq!(parameters(last), sequence(id.clone(), false, true));
    }
    let without = SERVER.infer("diamond", "");
    assert_eq!(without.json()["parameters"], Value::Null);
}

#[test]
fn disconnect_cancels_the_executing_step() {
    let server = server().start();
    let failed = |model: &str, reason: &str| {
        let sample = format!(
            r#"nv_inference_request_failure{{model="{model}",reason="{reason}",version="1"}}"#
        );
        server.metrics(&sample)
    };
    let mut connection = server.connect();
    connection.send(inference("waiting", ""));
    server.poll_until("the echo has responded", |server| {
        server.metrics(r#"nv_inference_request_success{model="echo",version="1"}"#) >= Some(1.0)
    });
    assert_eq!(failed("stuck", "CANCELED"), Some(0.0));
    drop(connection);
    server.poll_until("the step is cancelled", |_| failed("stuck", "CANCELED") == Some(1.0));
    server.poll_until("so is the ensemble", |_| failed("waiting", "CANCELED") == Some(1.0));
    assert_eq!(failed("waiting", "OTHER"), Some(0.0));
    // A failed step counts as two failures, as in Triton, and no execution of the ensemble.
    server.infer("failing", "");
    assert_eq!((failed("failing", "OTHER"), failed("failing", "BACKEND")), (Some(2.0), Some(0.0)));
    let stats = server.get("/v2/models/failing/stats").json();
    assert_eq!(stats["model_stats"][0]["inference_stats"]["fail"]["count"], 2, "{stats}");
    assert_eq!(
        server.metrics(r#"nv_inference_exec_count{model="failing",version="1"}"#),
        Some(0.0)
    );
}

#[test]
fn drain_completes_ensemble_requests() {
    let steps = ["slow INPUT0=INPUT0 > OUTPUT0=t", "slow INPUT0=t > OUTPUT0=OUTPUT0"];
    let (input, output) = (["INPUT0 FP32 [ -1 ]"], ["OUTPUT0 FP32 [ -1 ]"]);
    let inner = ensemble("inner", 8, &input, &output, &steps);
    let steps = ["slow INPUT0=INPUT0 > OUTPUT0=t", "inner INPUT0=t > OUTPUT0=OUTPUT0"];
    let server = Server::new()
        .model("slow", probe("slow", &[("delay_ms", "200")]))
        .model("inner", inner)
        .model("long", ensemble("long", 8, &input, &output, &steps))
        .start();
    let mut connections = [server.connect(), server.connect()];
    for connection in &mut connections {
        connection.send(inference("long", ""));
    }
    // Both are in their first step.
    let sample = r#"nv_inference_pending_request_count{model="slow",version="1"}"#;
    server.poll_until("one runs and one waits", |server| server.metrics(sample) == Some(1.0));
    server.signal(Signal::TERM);
    for connection in &mut connections {
        let response = connection.response();
        assert_eq!(response.status, 200, "{}", response.text());
    }
    assert!(server.wait().status.success());
}

#[test]
fn metadata_and_statistics_of_an_ensemble() {
    let index = SERVER.post("/v2/repository/index", &[], "{}").text();
    assert!(index.contains(r#"{"name":"diamond","version":"1","state":"READY"}"#), "{index}");
    let metadata = SERVER.get("/v2/models/diamond").text();
    let expected = r#"{"name":"diamond","versions":["1"],"platform":"ensemble","inputs":[{"name":"A","datatype":"FP32","shape":[-1,16]},{"name":"B","datatype":"FP32","shape":[-1,16]}],"outputs":[{"name":"TWICE_A","datatype":"FP32","shape":[-1,16]},{"name":"TWICE_B","datatype":"FP32","shape":[-1,16]}]}"#;
    assert_eq!(metadata, expected);
    let config = SERVER.get("/v2/models/two_versions/config").json();
    let steps = &config["ensemble_scheduling"]["step"];
    assert_eq!((&steps[0]["model_version"], &steps[1]["model_version"]), (&1.into(), &(-1).into()));
    assert_eq!(steps[0]["input_map"]["INPUT0"], "INPUT0");
    assert!(config.get("instance_group").is_none_or(|g| g.as_array().is_some_and(Vec::is_empty)));
}

#[test]
fn invalid_ensembles_are_refused() {
    let (input, output) = (["INPUT0 FP32 [ -1 ]"], ["OUTPUT0 FP32 [ -1 ]"]);
    let over = |name: &str, model: &str| {
        ensemble(name, 8, &input, &output, &[&format!("{model} INPUT0=INPUT0 > OUTPUT0=OUTPUT0")])
    };
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model("broken", probe("broken", &[("fail_in", "model_open"), ("fail", "out of order")]))
        .model("fine", over("fine", "echo"))
        .model("above_fine", over("above_fine", "fine"))
        .model("dangling", over("dangling", "absent"))
        .model("above_dangling", over("above_dangling", "dangling"))
        .model("self", over("self", "self"))
        .model("ping", over("ping", "pong"))
        .model("pong", over("pong", "ping"))
        .model("unlucky", over("unlucky", "broken"))
        .model("above_unlucky", over("above_unlucky", "unlucky"))
        .model("old", over("old", "echo:7"))
        .model("large", over("large", "echo").replace("max_batch_size: 8", "max_batch_size: 9"))
        .model(
            "typed",
            over("typed", "echo")
                .replace("INPUT0' data_type: TYPE_FP32", "INPUT0' data_type: TYPE_INT8"),
        )
        .model("backed", over("backed", "echo") + "backend: 'probe'\n")
        .file("versionless/config.pbtxt", over("versionless", "echo"))
        .flag("--exit-on-error=false")
        .start();
    let ready = ["fine", "above_fine"];
    let index = server.post("/v2/repository/index", &[], "{}").json();
    let reason = |name: &str| {
        let entry = index.as_array().and_then(|all| all.iter().find(|entry| entry["name"] == name));
        entry.and_then(|e| e["reason"].as_str()).unwrap_or_default().to_owned()
    };
    for name in ready {
        assert_eq!(reason(name), "");
        assert_eq!(server.infer(name, "").status, 200);
    }
    let dangling = "ensemble dangling contains models that are not available or ambiguous: absent";
    let broken = "ensemble 'unlucky' depends on 'broken' which has no loaded version: version 1: out of order";
    for (name, expected) in [
        ("dangling", dangling.to_owned()),
        ("above_dangling", format!("ensemble 'above_dangling' depends on 'dangling' which is not valid: {dangling}")),
        ("self", "circular dependency between ensembles: self -> ... -> self -> self".to_owned()),
        ("ping", "circular dependency between ensembles: ping -> ... -> pong -> ping".to_owned()),
        ("pong", "circular dependency between ensembles: pong -> ... -> ping -> pong".to_owned()),
        ("unlucky", broken.to_owned()),
        (
            "above_unlucky",
            format!("ensemble 'above_unlucky' depends on 'unlucky' which has no loaded version: version 1: {broken}"),
        ),
        ("old", "ensemble 'old' depends on 'echo' whose required version 7 is not loaded".to_owned()),
        (
            "large",
            "ensemble large allows maximum batch size 9, but it contains model echo which only allows maximum \
             batch size to be 8"
                .to_owned(),
        ),
        (
            "typed",
            "in ensemble typed, ensemble tensor INPUT0: inconsistent data type: TYPE_INT8 is inferred from model \
             typed while TYPE_FP32 is inferred from model echo"
                .to_owned(),
        ),
        (
            "backed",
            "Ensemble model 'backed' must have platform type 'ensemble' and empty backend type".to_owned(),
        ),
        (
            "versionless",
            "at least one version must be available under the version policy of model 'versionless'".to_owned(),
        ),
    ] {
        assert_eq!(reason(name), expected);
        assert_eq!(server.get(&format!("/v2/models/{name}/ready")).status, 400, "{name}");
        server.wait_for_log(&expected);
    }
    let response = server.send(request("GET", "/api/status/above_unlucky", &[], b""));
    assert!(response.text().contains("MODEL_UNAVAILABLE"), "{}", response.text());
    assert!(response.text().contains("which has no loaded version"), "{}", response.text());
}

#[test]
fn invalid_ensemble_fails_startup() {
    let config = ensemble(
        "dangling",
        8,
        &["INPUT0 FP32 [ -1 ]"],
        &["OUTPUT0 FP32 [ -1 ]"],
        &["absent INPUT0=INPUT0 > OUTPUT0=OUTPUT0"],
    );
    let ended = Server::new().model("dangling", config).refuses_to_start();
    assert_eq!(ended.code(), 1);
    assert!(
        ended.stderr.contains("models that are not available or ambiguous: absent"),
        "{}",
        ended.stderr
    );
}
