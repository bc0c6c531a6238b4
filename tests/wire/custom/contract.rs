//! The contract of each generation of the legacy custom interface: tests/custom/promises.c reports
//! what it is given, these tests compare.

use std::collections::BTreeMap;
use trtserver_tests::custom::{Custom, GENERATIONS, Generation, MODES, Mode, library, tensors};
use trtserver_tests::scheduled::{NEVER, flag, instances, sequences};
use trtserver_tests::{Running, Server, folder};

type Report = BTreeMap<String, String>;

fn reporter(name: &str, generation: Generation) -> Custom {
    let both = tensors("input", &[("INT", "INT32", "-1"), ("FLOAT", "FP32", "2, -1")])
        + &tensors("output", &[("REPORT", "STRING", "1"), ("NUMBER", "INT32", "1")]);
    let custom = Custom::new(name, &both)
        .library("promises.c", generation)
        .more(r#"metric_tags { key: "fruit" value: "pear" }"#)
        .more("optimization { priority: PRIORITY_DEFAULT }")
        .more("response_cache { enable: false }");
    // The report is about the first instance.
    if knows_parameters(generation) { custom.parameter("AAA", "first") } else { custom }
}

fn knows_parameters(generation: Generation) -> bool {
    !matches!(generation, Generation::A | Generation::B11 | Generation::B)
}

fn parsed(text: &str) -> Report {
    let pair = |line: &str| line.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
    text.lines().filter_map(pair).collect()
}

/// Requests these outputs with FLOAT before INT and returns the first row of the report. `rows` is
/// none for models without a batch dimension.
#[track_caller]
fn report(server: &Running, model: &str, rows: Option<usize>, outputs: &[&str]) -> Report {
    let count = rows.unwrap_or(1);
    let batch = rows.map(|rows| format!("{rows},")).unwrap_or_default();
    let zeros = |n: usize| vec!["0"; n * count].join(",");
    let outputs: Vec<String> = outputs.iter().map(|o| format!(r#"{{"name":"{o}"}}"#)).collect();
    let body = format!(
        r#"{{"inputs":[{{"name":"FLOAT","datatype":"FP32","shape":[{batch}2,3],"data":[{}]}},
{{"name":"INT","datatype":"INT32","shape":[{batch}5],"data":[{}]}}],"outputs":[{}]}}"#,
        zeros(6),
        zeros(5),
        outputs.join(",")
    );
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    assert_eq!(response.status, 200, "{model}: {}", response.text());
    let response_json = response.json();
    let outputs = response_json["outputs"].as_array().into_iter().flatten();
    let data = outputs.filter(|o| o["name"] == "REPORT").find_map(|o| o["data"].as_array());
    let data = data.unwrap_or_else(|| panic!("no REPORT in {response_json}"));
    assert_eq!(data.len(), count, "{response_json}");
    assert_eq!(data[0], data[count - 1], "all rows are one payload");
    parsed(data[0].as_str().unwrap_or_default())
}

#[track_caller]
fn assert_report(model: &str, report: &Report, expected: &[(&str, &str)]) {
    for &(key, value) in expected {
        let got = report.get(key).map(String::as_str);
        assert_eq!(got, Some(value), "{model}: {key} in {report:#?}");
    }
}

/// Names and shapes without the batch dimension. Inputs are in configuration order.
#[track_caller]
fn assert_inputs(report: &Report) {
    let mut inputs: Vec<&str> = report["inputs"].split(' ').collect();
    inputs.sort_unstable();
    assert_eq!(inputs, ["FLOAT[2,3]", "INT[5]"], "{report:#?}");
}

fn models(mut server: Server) -> Server {
    for generation in GENERATIONS {
        let name = format!("promises_{}", generation.name());
        server = server.custom(reporter(&name, generation));
        let name = format!("{name}_nobatch");
        server = server.custom(reporter(&name, generation).batch(0));
    }
    server
}

#[test]
fn contract_of_every_generation() {
    MODES.into_iter().for_each(promises_are_kept);
}

fn promises_are_kept(mode: Mode) {
    let server = models(mode.server()).start();
    let repository = server.models().path().display().to_string();
    let version = server.get("/v2").json()["version"].as_str().unwrap_or_default().to_owned();
    for generation in GENERATIONS {
        let model = &format!("promises_{}", generation.name());
        let group = &format!("{model}_0");
        let report_row = report(&server, model, Some(3), &["NUMBER", "REPORT"]);
        // Arguments of initialize.
        assert_report(model, &report_row, &[("generation", &generation.name().to_uppercase())]);
        assert_report(model, &report_row, &[("gpu", "-1"), ("stranger", "none"), ("name", model)]);
        assert_report(model, &report_row, &[("platform", "custom"), ("file", "libcustom.so")]);
        assert_report(model, &report_row, &[("tag", "pear"), ("input", "FLOAT"), ("group", group)]);
        assert_report(model, &report_row, &[("count", "1"), ("kind", "2"), ("latest", "1")]);
        // One payload for all rows; outputs in request order, shapes without the batch dimension.
        assert_report(model, &report_row, &[("payloads", "1"), ("place", "0"), ("batch", "3")]);
        assert_report(model, &report_row, &[("error_code", "0"), ("unknown", "false")]);
        assert_report(model, &report_row, &[("int", "60"), ("float", "72"), ("after", "end 0")]);
        let hint0 = if generation.has_hints() { "end" } else { "data" };
        assert_report(model, &report_row, &[("hint0", hint0), ("outputs", "NUMBER REPORT")]);
        if generation != Generation::A {
            assert_inputs(&report_row);
            assert_report(model, &report_row, &[("contexts", "same")]);
        }
        if knows_parameters(generation) {
            let instance = &format!("{group}_0_cpu");
            assert_report(model, &report_row, &[("instance", instance), ("parameters", "2")]);
            assert_report(
                model,
                &report_row,
                &[("parameter0", &version), ("parameter1", &repository)],
            );
            // Without those that the server reads itself, such as `custom_api`.
            assert_report(model, &report_row, &[("setting", "first"), ("settings", "1")]);
            assert!(report_row["thread"].starts_with("same "), "{report_row:#?}");
        } else {
            assert_report(model, &report_row, &[("instance", "none"), ("parameters", "0")]);
        }
        // Memory for an output that was not requested: refused at first, from v1.0 on granted as
        // null.
        let unrequested = if knows_parameters(generation) { "no memory" } else { "false" };
        let report_row = report(&server, model, Some(1), &["REPORT"]);
        assert_report(model, &report_row, &[("outputs", "REPORT"), ("unasked", unrequested)]);
        assert_report(model, &report_row, &[("executed", "2")]);
        // No batch dimension: the batch size is 1, the shape is complete.
        let model = &format!("{model}_nobatch");
        let report_row = report(&server, model, None, &["REPORT"]);
        assert_report(model, &report_row, &[("batch", "1"), ("int", "20"), ("float", "24")]);
        if generation != Generation::A {
            assert_inputs(&report_row);
        }
    }
    assert!(server.stop().success());
}

/// Only v1 requests may have no outputs; the library then returns its report as an error.
#[test]
fn request_without_outputs() {
    MODES.into_iter().for_each(no_output);
}

fn no_output(mode: Mode) {
    let server = models(mode.server()).start();
    for generation in GENERATIONS {
        let model = format!("promises_{}", generation.name());
        let header = r#"batch_size: 1 input { name: "FLOAT" dims: 2 dims: 3 } input { name: "INT" dims: 5 }"#;
        let path = format!("/api/infer/{model}");
        let response = server.post(&path, &[("NV-InferRequest", header)], [0; 44]);
        let says = response.error_text();
        assert!(says.contains("code: INTERNAL"), "{says}");
        assert!(says.contains(&format!("payload error for \\'{model}_0_0_cpu\\': (2) ")), "{says}");
        // In protobuf text, where a newline is escaped.
        for part in [r"\noutputs=\n", r"\nno_names=1\n"] {
            assert!(says.contains(part), "no {part} in {says}");
        }
    }
    assert!(server.stop().success());
}

/// Batched requests are payloads of one call, in order of arrival.
#[test]
fn batch_is_passed_as_payloads() {
    MODES.into_iter().for_each(several_payloads);
}

fn several_payloads(mode: Mode) {
    let mut server = mode.server();
    for generation in GENERATIONS {
        let name = format!("merged_{}", generation.name());
        let custom = reporter(&name, generation).more(
            "dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 60000000 }",
        );
        server = server.custom(custom);
    }
    let server = server.start();
    for generation in GENERATIONS {
        let model = format!("merged_{}", generation.name());
        let reports: Vec<Report> = std::thread::scope(|scope| {
            let send = || report(&server, &model, Some(1), &["REPORT"]);
            let pending = [scope.spawn(send), scope.spawn(send)];
            pending.into_iter().filter_map(|one| one.join().ok()).collect()
        });
        let mut places: Vec<&str> = reports.iter().map(|one| one["place"].as_str()).collect();
        places.sort_unstable();
        assert_eq!(places, ["0", "1"], "{reports:#?}");
        for one in &reports {
            let expected = [("payloads", "2"), ("batch", "1"), ("int", "20"), ("executed", "1")];
            assert_report(&model, one, &expected);
        }
    }
    assert!(server.stop().success());
}

/// Only the second of two sequences continues: the first one's slot is a null request, which the
/// library reads.
#[test]
fn empty_sequence_slots_read_zeros() {
    MODES.into_iter().for_each(empty_slots);
}

fn empty_slots(mode: Mode) {
    let traces = folder();
    let trace = traces.path().join("trace");
    let mut server = mode.server().env("CUSTOM_TRACE", &trace);
    let controls = [flag("START", "int32"), flag("READY", "int32")];
    for &generation in &GENERATIONS[1..] {
        let both = tensors("input", &[("INPUT", "INT32", "1")])
            + &tensors("output", &[("OUTPUT", "INT32", "1")]);
        let name = format!("nulls_{}", generation.name());
        let mut custom = Custom::new(&name, &both)
            .library("sequence.c", generation)
            .bytes(library("sequence.c", generation, &["LOOK_AT_EMPTY_SLOTS"]));
        custom = custom.more(&sequences(NEVER, "", &controls)).more(&instances(1));
        server = server.custom(custom);
    }
    let server = server.start();
    for generation in &GENERATIONS[1..] {
        let model = format!("nulls_{}", generation.name());
        let step = |id: u32, value: i32, start: bool, end: bool| {
            let body = format!(
                r#"{{"parameters":{{"sequence_id":{id},"sequence_start":{start},"sequence_end":{end}}},
"inputs":[{{"name":"INPUT","datatype":"INT32","shape":[1,1],"data":[{value}]}}]}}"#
            );
            let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
            assert_eq!(response.status, 200, "{model}: {}", response.text());
            response.json()["outputs"][0]["data"][0].as_i64()
        };
        assert_eq!(step(1, 5, true, false), Some(5));
        assert_eq!(step(2, 7, true, false), Some(7));
        assert_eq!(step(2, 10, false, true), Some(17));
        assert_eq!(step(1, 100, false, true), Some(105));
    }
    // Empty slots have no requested outputs.
    for generation in &GENERATIONS[1..] {
        let model = format!("nulls_{}", generation.name());
        let sample = format!(r#"nv_inference_count{{model="{model}",version="1"}}"#);
        assert_eq!(server.metrics(&sample), Some(4.0), "{model}");
    }
    let trace = std::fs::read_to_string(&trace).unwrap_or_default();
    // Two empty slots each (the second sequence's start and its next request), none of which gets
    // memory.
    let without = trace.matches("empty slot: output without memory").count();
    assert_eq!(without, 2 * GENERATIONS[1..].len(), "{trace}");
    assert_eq!(trace.matches("empty slot").count(), without, "{trace}");
    assert!(server.stop().success());
}
