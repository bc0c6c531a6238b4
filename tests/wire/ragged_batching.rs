//! Ragged batching: inputs of different shapes in one batch, batch inputs, outputs cut by input
//! shapes.

use trtserver_tests::custom::{Custom, Generation};
use trtserver_tests::{Server, parameters, probe, python_v2, root};

/// A tensor of FP32; `more` is added to it.
fn tensor(name: &str, dims: &str, more: &str) -> String {
    format!("{{ name: \"{name}\" data_type: TYPE_FP32 dims: [ {dims} ] {more} }}")
}

fn batch_input(target: &str, kind: &str) -> String {
    format!(
        "batch_input {{ kind: BATCH_{kind} target_name: \"{target}\" data_type: TYPE_FP32 \
         source_input: \"RAGGED_INPUT\" }}\n"
    )
}

const ONNX: &str = "platform: \"onnxruntime_onnx\" max_batch_size: 4\n";
const BATCHED: &str = "dynamic_batching { max_queue_delay_microseconds: 600000000 }\n";
const CUT: &str = "batch_output { target_name: \"OUTPUT0\" kind: BATCH_SCATTER_WITH_INPUT_SHAPE \
                   source_input: \"INPUT0\" }\n";

/// A configuration for `counts.onnx`: the kinds of its batch inputs, the second of which may be
/// any.
fn counts(first: &str, second: &str, dims: &str) -> String {
    let outputs = ["RAGGED_OUTPUT", "BATCH_AND_SIZE_OUTPUT", "BATCH_OUTPUT"];
    let outputs = outputs.map(|output| format!("output {}", tensor(output, "-1", "")));
    let input = tensor("RAGGED_INPUT", dims, "allow_ragged_batch: true");
    let kinds = batch_input("BATCH_AND_SIZE_INPUT", first) + &batch_input("BATCH_INPUT", second);
    format!("{ONNX}input {input} {} {kinds}", outputs.join(" "))
}

/// A configuration for `cut.onnx`.
fn cut() -> String {
    let input = tensor("INPUT0", "-1", "allow_ragged_batch: true");
    format!("{ONNX}input {input} output {} {CUT}", tensor("OUTPUT0", "-1", ""))
}

fn with_file(server: Server, model: &str, config: String, file: &str) -> Server {
    let path = root().join("tests/models/ragged").join(file);
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    server.model(model, config).file(&format!("{model}/1/model.onnx"), bytes)
}

#[test]
fn requests_of_different_shapes_are_one_run() {
    let zero = "ACCUMULATED_ELEMENT_COUNT_WITH_ZERO";
    let isolated = parameters(&[("isolation", "process")]);
    let mut server = Server::new().triton_start_line();
    for (model, first, second, dims, more) in [
        ("flat", "ELEMENT_COUNT", zero, "-1", BATCHED),
        ("element_count", "ELEMENT_COUNT", zero, "-1", BATCHED),
        ("accumulated", "ACCUMULATED_ELEMENT_COUNT", zero, "-1", BATCHED),
        ("with_zero", "ELEMENT_COUNT", zero, "-1", BATCHED),
        ("isolated", "ELEMENT_COUNT", zero, "-1", &*(isolated.clone() + BATCHED)),
        ("max_as_shape", "ELEMENT_COUNT", "MAX_ELEMENT_COUNT_AS_SHAPE", "-1", BATCHED),
        ("flatten", "ELEMENT_COUNT", "ITEM_SHAPE_FLATTEN", "-1, -1", BATCHED),
        ("alone", "ELEMENT_COUNT", zero, "-1", ""),
    ] {
        server = with_file(server, model, counts(first, second, dims) + more, "counts.onnx");
    }
    let input = tensor("RAGGED_INPUT", "-1, -1", "allow_ragged_batch: true");
    let output = tensor("BATCH_OUTPUT", "2", "");
    let kind = batch_input("BATCH_INPUT", "ITEM_SHAPE");
    let items = format!("{ONNX}input {input} output {output} {kind}{BATCHED}");
    server = with_file(server, "items", items, "items.onnx");
    server = with_file(server, "cut", cut() + BATCHED, "cut.onnx");
    server = with_file(server, "cut_isolated", cut() + BATCHED + &isolated, "cut.onnx");
    let echo = |more: &str| {
        let input = tensor("INPUT0", "-1", "allow_ragged_batch: true");
        let output = tensor("OUTPUT0", "-1", "");
        let tensors = format!("input {input} output {output} {more}");
        format!("backend: \"probe\" max_batch_size: 4\n{tensors}{BATCHED}")
    };
    // Payloads with shapes of their own, as since v1.11.
    let tensors = tensor("INPUT0", "-1", "allow_ragged_batch: true");
    let tensors = format!("input {tensors} output {}\n", tensor("OUTPUT0", "-1", ""));
    let custom = Custom::new("custom", &tensors).library("identity.c", Generation::V2b);
    let server = server
        .custom(custom.batch(4).more(BATCHED))
        .model("merged", echo(CUT) + &parameters(&[("merge", "true")]))
        .model("each", echo(""))
        .start();
    python_v2(&server, "v2_ragged.py", &[]);
    assert!(server.stop().success());
}

/// The error of a server that is started with one such model.
fn refusal(config: String, file: &str) -> String {
    with_file(Server::new().triton_start_line(), "bad", config, file).refuses_to_start().stderr
}

#[test]
fn configurations_that_cannot_work_are_refused_at_load() {
    let not_flat = counts("ELEMENT_COUNT", "ITEM_SHAPE", "-1, -1");
    let file = "items.onnx";
    let refused = refusal(not_flat.replace("RAGGED_INPUT", "BATCH_INPUT"), file);
    let expected = "is the name of another input for bad";
    assert!(refused.contains(expected), "{refused}");

    let two_dimensions = tensor("BATCH_INPUT", "-1, -1", "allow_ragged_batch: true");
    let config = format!("{ONNX}input {two_dimensions} output {}", tensor("BATCH_OUTPUT", "2", ""));
    let expected = "unable to load model 'bad', configuration expects model provides input with shape [-1] for \
                    ragged input 'BATCH_INPUT', model provides [-1,-1]";
    let refused = refusal(config, file);
    assert!(refused.contains(expected), "{refused}");

    let wrong_type = counts("ELEMENT_COUNT", "ELEMENT_COUNT", "-1").replacen(
        "\"BATCH_INPUT\" data_type: TYPE_FP32",
        "\"BATCH_INPUT\" data_type: TYPE_INT32",
        1,
    );
    let expected = "configuration expects datatype TYPE_INT32 for input 'BATCH_INPUT', model provides TYPE_FP32";
    let refused = refusal(wrong_type, "counts.onnx");
    assert!(refused.contains(expected), "{refused}");

    let unread = probe("bad", &[]) + &batch_input("B", "ELEMENT_COUNT").replace("RAGGED_", "");
    let unread = unread.replace("\"INPUT\"", "\"INPUT0\"");
    let refused = Server::new().model("bad", unread).refuses_to_start().stderr;
    let expected = "model 'bad': backend 'probe' reads no batch inputs";
    assert!(refused.contains(expected), "{refused}");
}
