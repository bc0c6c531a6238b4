//! Several requests in one run.

use super::harness::{TYPES, decl, load, lookup_model, lookup_request, model, types_model};
use super::{addsub, addsub_request, bytes_of, expect_error, floats, output, outputs, ramp, start};
use trtserver_plugin_api::abi::types::{code, dtype, tensor_flags};
use trtserver_plugin_testkit::{Counts, Request, counts};
use trtserver_proto_wire::put_bytes;

fn count(counter: fn(Counts) -> usize, work: impl FnOnce()) -> usize {
    let before = counter(counts());
    work();
    counter(counts()) - before
}

#[test]
fn requests_with_equal_shapes_are_merged() {
    let (_session, handle) = start();
    let loaded = load(&handle, addsub(8)).unwrap();
    let mut one_output = addsub_request(1);
    one_output.requested_outputs.remove(0);
    let mut cancelled = addsub_request(1);
    cancelled.cancelled = true;
    let mut silent = addsub_request(1);
    silent.requested_outputs.clear();
    let requests = [addsub_request(3), cancelled, one_output, silent, addsub_request(0)];
    let mut outcomes = Vec::new();
    assert_eq!(count(|counts| counts.gathered, || outcomes = loaded.run(&requests)), 2);
    let sums: Vec<f32> = ramp(3).iter().map(|x| x + 1.0).collect();
    assert_eq!(floats(&outcomes[0], "OUTPUT0"), sums);
    assert_eq!(output(&outcomes[0], "OUTPUT1").shape, [3, 16]);
    assert!(!output(&outcomes[0], "OUTPUT0").adopted, "a known shape is written in place");
    assert_eq!(expect_error(&outcomes[1], "cancelled"), code::CANCELLED);
    assert_eq!(outputs(&outcomes[2]).len(), 1);
    assert_eq!(floats(&outcomes[2], "OUTPUT1")[5], 4.0);
    assert!(outputs(&outcomes[3]).is_empty() && outcomes[3].result.is_ok());
    assert_eq!(output(&outcomes[4], "OUTPUT0").shape, [0, 16]);
    // One request is not merged with a cancelled one.
    let mut gone = addsub_request(1);
    gone.cancelled = true;
    let requests = [addsub_request(1), gone];
    assert_eq!(count(|counts| counts.gathered, || outcomes = loaded.run(&requests)), 0);
    assert_eq!(floats(&outcomes[0], "OUTPUT0"), sums[..16]);
    assert_eq!(expect_error(&outcomes[1], "cancelled"), code::CANCELLED);
}

#[test]
fn invalid_request_does_not_fail_the_batch() {
    let (_session, handle) = start();
    let loaded = load(&handle, addsub(8)).unwrap();
    let mut narrow = addsub_request(1);
    narrow.inputs.pop();
    let narrow = narrow.input("INPUT1", dtype::FP32, &[1, 15], &[0; 60]);
    let mut short = addsub_request(1);
    short.inputs.pop();
    let short = short.input("INPUT1", dtype::FP32, &[1, 16], &[0; 60]);
    let strange = addsub_request(1).request_output("q");
    for (bad, what) in [
        (narrow, "Expected [-1,16], got [1,15]"),
        (short, "unexpected total byte size 60"),
        (strange, "unexpected inference output 'q'"),
    ] {
        let outcomes = loaded.run(&[addsub_request(1), bad, addsub_request(2)]);
        assert_eq!(floats(&outcomes[0], "OUTPUT0")[3], 4.0);
        expect_error(&outcomes[1], what);
        assert_eq!(output(&outcomes[2], "OUTPUT1").shape, [2, 16]);
    }
    // An error of all requests is reported to each.
    let without = || {
        let mut request = addsub_request(1);
        request.inputs.pop();
        request
    };
    let outcomes = loaded.run(&[without(), without()]);
    for outcome in &outcomes {
        expect_error(outcome, "input 'INPUT1' is required");
    }
}

#[test]
fn failed_merged_run_is_repeated_per_request() {
    let (_session, handle) = start();
    let tensor = |name| decl(name, dtype::FP32, &[-1]);
    let loaded =
        load(&handle, model("pair.onnx", 8, vec![tensor("a"), tensor("b")], vec![tensor("c")]));
    let loaded = loaded.unwrap();
    // Each input is valid, but not together with the other: only the library detects it.
    let request = |wide: i64| {
        let zeros = |n: i64| vec![0; 4 * n as usize];
        Request::new(1)
            .input("a", dtype::FP32, &[1, 2], &zeros(2))
            .input("b", dtype::FP32, &[1, wide], &zeros(wide))
            .request_output("c")
    };
    let outcomes = loaded.run(&[request(3), request(3)]);
    for outcome in &outcomes {
        expect_error(outcome, "model 'M': onnx runtime error");
    }
    let outcomes = loaded.run(&[request(3), request(2)]);
    expect_error(&outcomes[0], "model 'M': onnx runtime error");
    assert_eq!(floats(&outcomes[1], "c"), [0.0; 2]);
    assert!(output(&outcomes[1], "c").adopted);
}

#[test]
fn failed_merged_run_fails_only_faulty_request() {
    let (_session, handle) = start();
    let loaded = load(&handle, lookup_model()).unwrap();
    let outcomes = loaded.run(&[lookup_request(2), lookup_request(99), lookup_request(3)]);
    assert_eq!(floats(&outcomes[0], "found"), [12.0]);
    expect_error(&outcomes[1], "out of data bounds");
    assert_eq!(floats(&outcomes[2], "found"), [13.0]);
    let mut outcomes = Vec::new();
    let merged = count(
        |counts| counts.scattered,
        || outcomes = loaded.run(&[lookup_request(0), lookup_request(1)]),
    );
    assert_eq!((merged, floats(&outcomes[1], "found")), (1, vec![11.0]));
}

#[test]
fn every_type_is_scattered() {
    let (_session, handle) = start();
    let loaded = load(&handle, types_model(8, &[])).unwrap();
    let framed = |strings: &[&str]| -> Vec<u8> {
        let frame = |s: &&str| [&(s.len() as u32).to_le_bytes()[..], s.as_bytes()].concat();
        strings.iter().flat_map(frame).collect()
    };
    let bytes = |kind, rows: usize, seed: u8| -> Vec<u8> {
        match kind {
            dtype::STRING => framed(&["", "two", "three \0"][..rows]),
            dtype::BOOL => vec![1; rows],
            _ => (0..rows * trtserver_framework::types::type_size(kind))
                .map(|i| i as u8 + seed)
                .collect(),
        }
    };
    let request = |rows: usize, seed: u8, strings: Option<Vec<u8>>| {
        TYPES.iter().zip(1..).fold(Request::new(rows as u32), |request, (name, kind)| {
            let given = strings.clone().filter(|_| kind == dtype::STRING);
            let data = given.unwrap_or_else(|| bytes(kind, rows, seed));
            let request = request.input(&format!("in_{name}"), kind, &[rows as i64], &data);
            request.request_output(&format!("out_{name}"))
        })
    };
    let mut outcomes = Vec::new();
    let requests = [request(1, 3, None), request(3, 40, None)];
    assert_eq!(count(|counts| counts.scattered, || outcomes = loaded.run(&requests)), TYPES.len());
    for (outcome, (rows, seed)) in outcomes.iter().zip([(1, 3), (3, 40)]) {
        for (name, kind) in TYPES.iter().zip(1..) {
            let output = output(outcome, &format!("out_{name}"));
            assert_eq!((output.dtype, &output.data), (kind, &bytes(kind, rows, seed)), "{name}");
        }
    }
    // The batch has as many strings as rows, but two requests do not.
    let requests = [
        request(2, 0, Some(framed(&["one"]))),
        request(1, 0, None),
        request(1, 0, Some(framed(&["a", "b"]))),
    ];
    let outcomes = loaded.run(&requests);
    expect_error(&outcomes[0], "unexpected number of string elements 1");
    assert_eq!(output(&outcomes[1], "out_string").data, framed(&[""]));
    expect_error(&outcomes[2], "unexpected number of string elements 2");
}

#[test]
fn wrong_declared_shape_disables_preallocation_for_batches() {
    let (_session, handle) = start();
    let f = |name, dims: &[i64]| decl(name, dtype::FP32, dims);
    let loaded =
        load(&handle, model("undeclared_width.onnx", 4, vec![f("x", &[-1])], vec![f("y", &[4])]))
            .unwrap();
    let request = |n: i64| {
        Request::new(1)
            .input("x", dtype::FP32, &[1, n], &bytes_of(&vec![1.0; n as usize]))
            .request_output("y")
    };
    let outcomes = loaded.run(&[request(4), request(4)]);
    assert!(!output(&outcomes[1], "y").adopted);
    for round in 0..2 {
        let mut outcomes = Vec::new();
        let merged =
            count(|counts| counts.scattered, || outcomes = loaded.run(&[request(3), request(3)]));
        // The host accepts rows of a batch in the configured shape only, so the second round is not
        // merged.
        assert_eq!(merged, 1 - round, "{round}");
        for outcome in &outcomes {
            assert_eq!(
                (&output(outcome, "y").shape[..], floats(outcome, "y")),
                (&[1, 3][..], vec![-1.0; 3])
            );
            assert!(output(outcome, "y").adopted);
        }
    }
}

#[test]
fn merged_sequence_steps_keep_their_states() {
    let (_session, handle) = start();
    let f = |name| decl(name, dtype::FP32, &[1]);
    let mut desc = model("step.onnx", 8, vec![f("IN")], vec![f("IN")]);
    // The host adds control START and state STATE (output SUM), which only the configuration
    // declares.
    let field = |number, contents: &[u8]| {
        let mut out = Vec::new();
        put_bytes(&mut out, number, contents);
        out
    };
    let control = field(1, b"START");
    let state = [field(1, b"STATE"), field(2, b"SUM")].concat();
    desc.config_pb = field(13, &[field(2, &control), field(5, &state)].concat());
    let loaded = load(&handle, desc).unwrap();
    let step = |value: f32, start: u8, state: f32| {
        let mut ask = Request::new(1)
            .input("IN", dtype::FP32, &[1, 1], &bytes_of(&[value]))
            .input("START", dtype::BOOL, &[1, 1], &[start])
            .input("STATE", dtype::FP32, &[1, 1], &bytes_of(&[state]))
            .request_output("SUM");
        ask.inputs[1].flags = tensor_flags::CONTROL;
        ask.inputs[2].flags = tensor_flags::STATE;
        ask
    };
    let requests =
        [step(1.0, 1, 50.0), step(2.0, 0, 10.0).request_output("IN"), step(3.0, 0, 20.0)];
    let mut outcomes = Vec::new();
    assert_eq!(count(|counts| counts.gathered, || outcomes = loaded.run(&requests)), 3);
    let sums: Vec<f32> = outcomes.iter().map(|outcome| floats(outcome, "SUM")[0]).collect();
    assert_eq!(sums, [1.0, 12.0, 23.0]);
    // The gathered input, passed through as an output, is memory of the host.
    assert_eq!(floats(&outcomes[1], "IN"), [2.0]);
    assert_eq!(outputs(&outcomes[0]).len(), 1);
    let alone = loaded.run(&[step(7.0, 0, 1.0).request_output("IN")]);
    assert_eq!((floats(&alone[0], "IN"), floats(&alone[0], "SUM")), (vec![7.0], vec![8.0]));
}
