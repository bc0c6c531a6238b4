//! Single requests: types, shapes, strings, errors.

use super::*;
use trtserver_framework::types::type_size;
use trtserver_plugin_api::abi::types::code;

const SHAPES_IN: Tensors = &[("X", dtype::FP32, &[-1, -1]), ("SHAPE", dtype::INT64, &[-1])];
const SHAPES_OUT: Tensors = &[
    ("RESHAPED", dtype::FP32, &[-1, -1]),
    ("SAME", dtype::FP32, &[-1, -1]),
    ("PLUS:0", dtype::FP32, &[-1, -1]),
    ("SUM", dtype::FP32, &[1]),
    ("HALVES:1", dtype::FP32, &[-1, -1]),
];
const TEXT_IN: Tensors = &[("TEXT", dtype::STRING, &[2])];
const TEXT_OUT: Tensors =
    &[("SAME", dtype::STRING, &[2]), ("TWICE", dtype::STRING, &[2]), ("NUMBER", dtype::FP32, &[2])];

fn shapes_request(shape: &[i64]) -> Request {
    let ramp: Vec<f32> = (0..6).map(|i| i as f32).collect();
    Request::new(1).input("X", dtype::FP32, &[2, 3], &bytes(&ramp)).input(
        "SHAPE",
        dtype::INT64,
        &[shape.len() as i64],
        &bytes(shape),
    )
}

#[test]
fn both_formats_compute_requested_outputs() {
    let (_session, handle) = start();
    for platform in [crate::GRAPH_DEF, crate::SAVED_MODEL] {
        let loaded = load(&handle, &addsub(platform, 8)).unwrap();
        let outcome = loaded.run(addsub_request(3));
        assert_eq!(output(&outcome, "OUTPUT0").shape, [3, 16]);
        assert_eq!(floats(&outcome, "OUTPUT0")[47], 48.0);
        assert_eq!(floats(&outcome, "OUTPUT1")[47], 46.0);
        let mut one = addsub_request(1);
        one.requested_outputs.remove(0);
        let outcome = loaded.run(one);
        assert_eq!(outcome.responses[0].outputs.len(), 1);
        assert_eq!(floats(&outcome, "OUTPUT1")[3], 2.0);
        let mut none = addsub_request(1);
        none.requested_outputs.clear();
        assert!(loaded.run(none).responses[0].outputs.is_empty());
    }
}

#[test]
fn every_type_passes_unchanged() {
    let (_session, handle) = start();
    for (name, kind) in [
        ("bool", dtype::BOOL),
        ("uint8", dtype::UINT8),
        ("uint16", dtype::UINT16),
        ("uint32", dtype::UINT32),
        ("uint64", dtype::UINT64),
        ("int8", dtype::INT8),
        ("int16", dtype::INT16),
        ("int32", dtype::INT32),
        ("int64", dtype::INT64),
        ("fp16", dtype::FP16),
        ("fp32", dtype::FP32),
        ("fp64", dtype::FP64),
        ("bf16", dtype::BF16),
        ("string", dtype::STRING),
    ] {
        let path = Path::new(MODELS).join(format!("savedmodel/identity_{name}/1/model.savedmodel"));
        let (inputs, outputs) =
            ([("INPUT0", kind, &[-1i64][..])], [("OUTPUT0", kind, &[-1i64][..])]);
        let loaded = load(&handle, &spec(crate::SAVED_MODEL, &path, 8, &inputs, &outputs)).unwrap();
        let data = match kind {
            dtype::STRING => text(&["", "a\0b", "longer than twenty-two bytes"]),
            dtype::BOOL => vec![1, 0, 1],
            _ => (0..3 * type_size(kind)).map(|i| i as u8).collect(),
        };
        let request =
            Request::new(1).input("INPUT0", kind, &[1, 3], &data).request_output("OUTPUT0");
        let outcome = loaded.run(request);
        let found = output(&outcome, "OUTPUT0");
        assert_eq!(
            (&found.data, &found.shape[..], found.dtype),
            (&data, &[1, 3][..], kind),
            "{name}"
        );
    }
}

#[test]
fn shapes_vary_and_aliases_of_inputs_are_copied() {
    let (_session, handle) = start();
    let loaded = load(&handle, &graph_def("shapes.graphdef", 0, SHAPES_IN, SHAPES_OUT)).unwrap();
    let names = ["RESHAPED", "SAME", "PLUS:0", "SUM", "HALVES:1"];
    let request = |shape: &[i64]| {
        names.iter().fold(shapes_request(shape), |request, name| request.request_output(name))
    };
    let outcome = loaded.run(request(&[3, 2]));
    assert_eq!(output(&outcome, "RESHAPED").shape, [3, 2]);
    assert_eq!(floats(&outcome, "RESHAPED"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(floats(&outcome, "SAME"), floats(&outcome, "RESHAPED"));
    assert_eq!(floats(&outcome, "PLUS:0"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(output(&outcome, "SUM").shape, [1], "a scalar has one element for clients");
    assert_eq!(floats(&outcome, "SUM"), [15.0]);
    assert_eq!(floats(&outcome, "HALVES:1"), [3.0, 4.0, 5.0]);
    assert!(!output(&outcome, "SAME").adopted, "the memory is the request's");
    assert!(output(&outcome, "PLUS:0").adopted);
    // The failed request leaves nothing behind for the next.
    let failed = loaded.run(request(&[5, 5]));
    assert_eq!(failure(&failed).code, code::INVALID);
    assert!(failure(&failed).text.starts_with("model 'M': tensorflow: "), "{}", failure(&failed));
    assert_eq!(floats(&loaded.run(request(&[1, 6])), "SUM"), [15.0]);
}

#[test]
fn strings_are_read_in_place() {
    let (_session, handle) = start();
    let loaded = load(&handle, &graph_def("strings.graphdef", 8, TEXT_IN, TEXT_OUT)).unwrap();
    let request = |strings: &[&str], name: &str| {
        let data = text(strings);
        let parts = [&data[..3], &data[3..]];
        let rows = strings.len() as i64 / 2;
        let request = Request::new(rows as u32);
        request.input_parts("TEXT", dtype::STRING, &[rows, 2], &parts).request_output(name)
    };
    let long = "a string beyond the twenty-two bytes of a small one";
    let strings = ["", long, "x\0y", "z"];
    assert_eq!(output(&loaded.run(request(&strings, "SAME")), "SAME").data, text(&strings));
    let twice: Vec<String> = strings.iter().map(|s| s.repeat(2)).collect();
    let twice: Vec<&str> = twice.iter().map(String::as_str).collect();
    assert_eq!(output(&loaded.run(request(&strings, "TWICE")), "TWICE").data, text(&twice));
    assert_eq!(floats(&loaded.run(request(&["1.5", "-2"], "NUMBER")), "NUMBER"), [1.5, -2.0]);
    let outcome = loaded.run(request(&["1.5", "two"], "NUMBER"));
    assert!(failure(&outcome).text.contains("two"), "{}", failure(&outcome));
    let short = Request::new(1).input("TEXT", dtype::STRING, &[1, 2], &text(&["one"]));
    let outcome = loaded.run(short.request_output("SAME").unchecked());
    assert!(failure(&outcome).text.contains("unexpected number of string elements 1"));
}

#[test]
fn invalid_requests_are_refused_before_the_run() {
    let (_session, handle) = start();
    let loaded = load(&handle, &addsub(crate::GRAPH_DEF, 8)).unwrap();
    let with = |input: &str, kind, shape: &[i64], n: usize| {
        let mut request = addsub_request(1).unchecked();
        request.inputs.pop();
        request.input(input, kind, shape, &vec![0; n])
    };
    let mut missing = addsub_request(1);
    missing.inputs.pop();
    for (request, part) in [
        (with("INPUT1", dtype::FP32, &[1, 15], 60), "Expected [-1,16], got [1,15]"),
        (with("INPUT1", dtype::FP32, &[1, 16], 60), "unexpected total byte size 60"),
        (with("INPUT1", dtype::INT32, &[1, 16], 64), "data-type is 'TYPE_INT32'"),
        (with("INPUT0", dtype::FP32, &[1, 16], 64), "given twice"),
        (with("q", dtype::FP32, &[1, 16], 64), "unexpected inference input 'q'"),
        (missing, "input 'INPUT1' is required"),
        (addsub_request(1).request_output("q").unchecked(), "unexpected inference output 'q'"),
        (addsub_request(1).cancelled(), "cancelled"),
    ] {
        let outcome = loaded.run(request);
        assert!(failure(&outcome).text.contains(part), "no {part:?} in {}", failure(&outcome));
    }
    assert_eq!(floats(&loaded.run(addsub_request(1)), "OUTPUT0")[5], 6.0);
}
