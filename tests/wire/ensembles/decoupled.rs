//! Ensembles with decoupled steps: each response of such a step goes through the steps behind it.

use trtserver_tests::http1::{Connection, request};
use trtserver_tests::{Running, Server, probe};

const DECOUPLED: &str = "model_transaction_policy { decoupled: true }\n";

/// A tensor of the ensemble.
fn tensor(side: &str, name: &str) -> String {
    format!("{side} {{ name: '{name}' data_type: TYPE_FP32 dims: -1 }}\n")
}

/// A step that reads tensor `from` and writes tensor `to`.
fn step(model: &str, from: &str, to: &str) -> String {
    format!(
        "step {{ model_name: '{model}' model_version: -1 input_map {{ key: 'INPUT0' value: '{from}' }} \
         output_map {{ key: 'OUTPUT0' value: '{to}' }} }}\n"
    )
}

fn ensemble(outputs: &[&str], steps: &[String]) -> String {
    let outputs: String = outputs.iter().map(|name| tensor("output", name)).collect();
    let start = "platform: 'ensemble' max_batch_size: 8\n".to_owned() + &tensor("input", "IN");
    format!("{start}{outputs}ensemble_scheduling {{ {} }}\n", steps.concat())
}

/// `flow`: each response of `many` goes through `next`; `both`: and is sent with what `side` makes
/// of the input; `chain`: through `many` once more.
fn server(many: &[(&str, &str)], next: &[(&str, &str)]) -> Server {
    let flow = [step("many", "IN", "T"), step("next", "T", "OUT")];
    let both = [&flow[..], &[step("side", "IN", "SIDE")]].concat();
    let chain = [step("many", "IN", "T"), step("next", "T", "U"), step("many", "U", "OUT")];
    Server::new()
        .model("many", probe("many", many) + DECOUPLED)
        .model("next", probe("next", next))
        .model("side", probe("side", &[("delay_ms", "50")]))
        .model("flow", ensemble(&["OUT"], &flow))
        .model("both", ensemble(&["OUT", "SIDE"], &both))
        .model("chain", ensemble(&["OUT"], &chain))
}

fn begin(server: &Running, model: &str, json: &str) -> Connection {
    let mut connection = server.connect();
    let path = format!("/v2/models/{model}/generate_stream");
    connection.send(request("POST", &path, &[], json.as_bytes()));
    connection
}

/// The events of a stream.
fn events(server: &Running, model: &str, json: &str) -> Vec<String> {
    let text = begin(server, model, json).response().text();
    text.split_terminator("\n\n").map(|event| event.replace("data: ", "")).collect()
}

#[test]
fn each_response_of_a_decoupled_step_becomes_a_response() {
    for isolation in ["none", "process"] {
        let server = server(&[("responses", "3"), ("isolation", isolation)], &[]).start();
        let event = |outputs: &str, model: &str| {
            format!(r#"{{{outputs},"id":"i","model_name":"{model}","model_version":"1"}}"#)
        };
        let json = r#"{"IN":[1,2],"id":"i"}"#;
        let one = event(r#""OUT":[1.0,2.0]"#, "flow");
        assert_eq!(events(&server, "flow", json), vec![one; 3]);
        // `SIDE` is written once, and later.
        let got = events(&server, "both", json);
        assert_eq!(got.len(), 3, "{got:?}");
        let has_both =
            |event: &String| event.starts_with(r#"{"OUT":[1.0,2.0],"SIDE":[1.0,2.0],"id":"i","#);
        assert!(got.iter().all(has_both), "{got:?}");
        let chained = event(r#""OUT":[1.0,2.0]"#, "chain");
        assert_eq!(events(&server, "chain", json), vec![chained; 9]);
        let config = server.get("/v2/models/flow/config").text();
        assert!(config.contains(r#""model_transaction_policy":{"decoupled":true}"#), "{config}");
        let infer = r#"{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,1],"data":[1]}]}"#;
        let refused = server.post("/v2/models/flow/infer", &[], infer);
        assert_eq!(refused.status, 501, "{}", refused.text());
        assert!(server.stop().success());
    }
}

#[test]
fn stream_of_an_ensemble_ends_as_its_decoupled_step_does() {
    let none = server(&[("responses", "0")], &[]).start();
    assert_eq!(begin(&none, "flow", r#"{"IN":1}"#).response().text(), "");
    assert!(none.stop().success());
    let fails = server(&[("responses", "2"), ("fail", "no"), ("fail_last", "true")], &[]).start();
    let got = events(&fails, "flow", r#"{"IN":1}"#);
    assert_eq!(
        got.last().map(String::as_str),
        Some(r#"{"error":"in ensemble 'flow', no"}"#),
        "{got:?}"
    );
    assert!(fails.stop().success());
    let next = server(&[("responses", "2")], &[("fail", "not here")]).start();
    let got = events(&next, "flow", r#"{"IN":1}"#);
    assert_eq!(got, [r#"{"error":"in ensemble 'flow', not here"}"#]);
    assert!(next.stop().success());
}

#[test]
fn disconnect_cancels_the_decoupled_step() {
    let server = server(&[("responses", "1"), ("until_cancelled", "true")], &[]).start();
    let mut connection = begin(&server, "flow", r#"{"IN":1}"#);
    assert_eq!(connection.head().status, 200);
    assert!(connection.chunk().starts_with(b"data: "));
    drop(connection);
    let cancelled =
        r#"trtserver_request_cancelled_total{model="many",version="1",when="executing"}"#;
    server.poll_until("the step is cancelled", |server| server.metrics(cancelled) == Some(1.0));
    assert!(server.stop().success());
}

#[test]
fn requests_of_a_step_are_limited() {
    let folder = trtserver_tests::folder();
    let file = folder.path().join("go");
    let steps = [step("many", "IN", "T"), step("next", "T", "OUT")];
    let limited = ensemble(&["OUT"], &steps)
        .replace("ensemble_scheduling {", "ensemble_scheduling { max_inflight_requests: 1");
    let until = file.to_str().unwrap_or_default().to_owned();
    for isolation in ["none", "process"] {
        let _ = std::fs::remove_file(&file);
        let server =
            server(&[("responses", "20"), ("isolation", isolation)], &[("until_file", &until)])
                .model("limited", &limited)
                .start();
        let mut connection = begin(&server, "limited", r#"{"IN":1}"#);
        server.wait_for_log("waits for the file");
        let pending = r#"nv_inference_pending_request_count{model="next",version="1"}"#;
        assert_eq!(server.metrics(pending), Some(0.0));
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(
            server.metrics(pending),
            Some(0.0),
            "a second request of the step was submitted"
        );
        std::fs::write(&file, "").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(connection.response().text().matches("data: ").count(), 20);
        assert!(server.stop().success());
    }
}

#[test]
fn tensors_of_two_decoupled_steps_do_not_meet() {
    let outputs = [step("many", "IN", "A"), step("many", "IN", "B")];
    let join = "step { model_name: 'two' model_version: -1 input_map { key: 'INPUT0' value: 'A' } \
                input_map { key: 'INPUT1' value: 'B' } output_map { key: 'OUTPUT0' value: 'OUT' } }";
    let joined = [&outputs[..], &[join.to_owned()]].concat();
    let two = probe("two", &[]) + &tensor("input", "INPUT1");
    let server = Server::new()
        .model("many", probe("many", &[]) + DECOUPLED)
        .model("two", two)
        .model("apart", ensemble(&["A", "B"], &outputs))
        .model("joined", ensemble(&["OUT"], &joined))
        .flag("--exit-on-error=false")
        .flag("--strict-readiness=false")
        .start();
    for (model, reason) in [
        (
            "apart",
            "in ensemble apart, outputs originate from different decoupled models 'many' and 'many'",
        ),
        (
            "joined",
            "in ensemble joined, step of model 'two' receives inputs originated from different decoupled models",
        ),
    ] {
        let index = server.post("/v2/repository/index", &[], "").text();
        assert!(index.contains(reason), "{model}: {index}");
    }
    assert!(server.stop().success());
}
