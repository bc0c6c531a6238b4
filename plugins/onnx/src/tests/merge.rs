//! Several calls in one run.

use super::rig::{decl, load, model};
use super::{addsub, addsub_call, bytes_of, floats, output, outputs, ramp, refused, start};
use trtserver_plugin_api::abi::types::{code, dtype, tensor_flags};
use trtserver_plugin_testkit::{Counts, Request, counts};
use trtserver_proto_wire::put_bytes;

fn count(counter: fn(Counts) -> usize, work: impl FnOnce()) -> usize {
    let before = counter(counts());
    work();
    counter(counts()) - before
}

#[test]
fn calls_that_fit_together_are_one_run() {
    let Some((_session, handle)) = start() else { return };
    let loaded = load(&handle, addsub(8)).unwrap();
    let mut one_output = addsub_call(1);
    one_output.requested_outputs.remove(0);
    let mut cancelled = addsub_call(1);
    cancelled.cancelled = true;
    let mut silent = addsub_call(1);
    silent.requested_outputs.clear();
    let requests = [addsub_call(3), cancelled, one_output, silent, addsub_call(0)];
    let mut answers = Vec::new();
    assert_eq!(count(|counts| counts.gathered, || answers = loaded.run(&requests)), 2);
    let sums: Vec<f32> = ramp(3).iter().map(|x| x + 1.0).collect();
    assert_eq!(floats(&answers[0], "OUTPUT0"), sums);
    assert_eq!(output(&answers[0], "OUTPUT1").shape, [3, 16]);
    assert!(!output(&answers[0], "OUTPUT0").adopted, "a known shape is written in place");
    assert_eq!(refused(&answers[1], "cancelled"), code::CANCELLED);
    assert_eq!(outputs(&answers[2]).len(), 1);
    assert_eq!(floats(&answers[2], "OUTPUT1")[5], 4.0);
    assert!(outputs(&answers[3]).is_empty() && answers[3].result.is_ok());
    assert_eq!(output(&answers[4], "OUTPUT0").shape, [0, 16]);
    // One that is left is not merged with what nobody waits for.
    let mut gone = addsub_call(1);
    gone.cancelled = true;
    let requests = [addsub_call(1), gone];
    assert_eq!(count(|counts| counts.gathered, || answers = loaded.run(&requests)), 0);
    assert_eq!(floats(&answers[0], "OUTPUT0"), sums[..16]);
    assert_eq!(refused(&answers[1], "cancelled"), code::CANCELLED);
}

#[test]
fn a_call_that_does_not_fit_is_alone_with_its_error() {
    let Some((_session, handle)) = start() else { return };
    let loaded = load(&handle, addsub(8)).unwrap();
    let mut narrow = addsub_call(1);
    narrow.inputs.pop();
    let narrow = narrow.input("INPUT1", dtype::FP32, &[1, 15], &[0; 60]);
    let mut short = addsub_call(1);
    short.inputs.pop();
    let short = short.input("INPUT1", dtype::FP32, &[1, 16], &[0; 60]);
    let strange = addsub_call(1).request_output("q");
    for (bad, what) in [
        (narrow, "Expected [-1,16], got [1,15]"),
        (short, "unexpected total byte size 60"),
        (strange, "unexpected inference output 'q'"),
    ] {
        let answers = loaded.run(&[addsub_call(1), bad, addsub_call(2)]);
        assert_eq!(floats(&answers[0], "OUTPUT0")[3], 4.0);
        refused(&answers[1], what);
        assert_eq!(output(&answers[2], "OUTPUT1").shape, [2, 16]);
    }
    // What is wrong with all of them is found out by each.
    let without = || {
        let mut request = addsub_call(1);
        request.inputs.pop();
        request
    };
    let answers = loaded.run(&[without(), without()]);
    for answer in &answers {
        refused(answer, "input 'INPUT1' is required");
    }
}

#[test]
fn a_run_that_fails_for_all_of_them() {
    let Some((_session, handle)) = start() else { return };
    let tensor = |name| decl(name, dtype::FP32, &[-1]);
    let loaded =
        load(&handle, model("pair.onnx", 8, vec![tensor("a"), tensor("b")], vec![tensor("c")]));
    let loaded = loaded.unwrap();
    // Each input is right, but not together with the other: only the library can tell.
    let request = |wide: i64| {
        let zeros = |n: i64| vec![0; 4 * n as usize];
        Request::new(1)
            .input("a", dtype::FP32, &[1, 2], &zeros(2))
            .input("b", dtype::FP32, &[1, wide], &zeros(wide))
            .request_output("c")
    };
    let answers = loaded.run(&[request(3), request(3)]);
    for answer in &answers {
        refused(answer, "model 'M': onnx runtime error");
    }
    let answers = loaded.run(&[request(3), request(2)]);
    refused(&answers[0], "model 'M': onnx runtime error");
    assert_eq!(floats(&answers[1], "c"), [0.0; 2]);
    assert!(output(&answers[1], "c").adopted);
}

#[test]
fn a_run_that_fails_for_one_of_them_fails_no_other() {
    let Some((_session, handle)) = start() else { return };
    let (places, found) = (decl("places", dtype::INT64, &[1]), decl("found", dtype::FP32, &[1]));
    let loaded = load(&handle, model("lookup.onnx", 8, vec![places], vec![found])).unwrap();
    let request = |place: i64| {
        Request::new(1)
            .input("places", dtype::INT64, &[1, 1], &place.to_le_bytes())
            .request_output("found")
    };
    let answers = loaded.run(&[request(2), request(99), request(3)]);
    assert_eq!(floats(&answers[0], "found"), [12.0]);
    refused(&answers[1], "out of data bounds");
    assert_eq!(floats(&answers[2], "found"), [13.0]);
    let mut answers = Vec::new();
    let merged =
        count(|counts| counts.scattered, || answers = loaded.run(&[request(0), request(1)]));
    assert_eq!((merged, floats(&answers[1], "found")), (1, vec![11.0]));
}

#[test]
fn every_type_is_cut_up_again() {
    let Some((_session, handle)) = start() else { return };
    let names = [
        "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "fp16",
        "fp32", "fp64", "string", "bf16",
    ];
    let of = |prefix: &str| {
        let tensors = names.iter().zip(1..);
        tensors.map(|(name, kind)| decl(&format!("{prefix}_{name}"), kind, &[])).collect()
    };
    let loaded = load(&handle, model("types.onnx", 8, of("in"), of("out"))).unwrap();
    let framed = |strings: &[&str]| -> Vec<u8> {
        let frame = |s: &&str| [&(s.len() as u32).to_le_bytes()[..], s.as_bytes()].concat();
        strings.iter().flat_map(frame).collect()
    };
    let bytes = |kind, rows: usize, seed: u8| -> Vec<u8> {
        match kind {
            dtype::STRING => framed(&["", "two", "three \0"][..rows]),
            dtype::BOOL => vec![1; rows],
            _ => (0..rows * crate::types::size(kind)).map(|i| i as u8 + seed).collect(),
        }
    };
    let request = |rows: usize, seed: u8, strings: Option<Vec<u8>>| {
        names.iter().zip(1..).fold(Request::new(rows as u32), |request, (name, kind)| {
            let given = strings.clone().filter(|_| kind == dtype::STRING);
            let data = given.unwrap_or_else(|| bytes(kind, rows, seed));
            let request = request.input(&format!("in_{name}"), kind, &[rows as i64], &data);
            request.request_output(&format!("out_{name}"))
        })
    };
    let mut answers = Vec::new();
    let requests = [request(1, 3, None), request(3, 40, None)];
    assert_eq!(count(|counts| counts.scattered, || answers = loaded.run(&requests)), names.len());
    for (answer, (rows, seed)) in answers.iter().zip([(1, 3), (3, 40)]) {
        for (name, kind) in names.iter().zip(1..) {
            let output = output(answer, &format!("out_{name}"));
            assert_eq!((output.dtype, &output.data), (kind, &bytes(kind, rows, seed)), "{name}");
        }
    }
    // Together the strings would be as many as the rows: not so one by one.
    let requests = [
        request(2, 0, Some(framed(&["one"]))),
        request(1, 0, None),
        request(1, 0, Some(framed(&["a", "b"]))),
    ];
    let answers = loaded.run(&requests);
    refused(&answers[0], "unexpected number of string elements 1");
    assert_eq!(output(&answers[1], "out_string").data, framed(&[""]));
    refused(&answers[2], "unexpected number of string elements 2");
}

#[test]
fn a_file_that_is_wrong_about_a_shape_costs_one_batch() {
    let Some((_session, handle)) = start() else { return };
    let f = |name, dims: &[i64]| decl(name, dtype::FP32, dims);
    let loaded =
        load(&handle, model("liar.onnx", 4, vec![f("x", &[-1])], vec![f("y", &[4])])).unwrap();
    let request = |n: i64| {
        Request::new(1)
            .input("x", dtype::FP32, &[1, n], &bytes_of(&vec![1.0; n as usize]))
            .request_output("y")
    };
    let answers = loaded.run(&[request(4), request(4)]);
    assert!(!output(&answers[1], "y").adopted);
    for round in 0..2 {
        let mut answers = Vec::new();
        let merged =
            count(|counts| counts.scattered, || answers = loaded.run(&[request(3), request(3)]));
        assert_eq!(merged, 1, "{round}");
        for answer in &answers {
            assert_eq!(
                (&output(answer, "y").shape[..], floats(answer, "y")),
                (&[1, 3][..], vec![-1.0; 3])
            );
            assert!(output(answer, "y").adopted);
        }
    }
}

#[test]
fn steps_of_several_sequences() {
    let Some((_session, handle)) = start() else { return };
    let f = |name| decl(name, dtype::FP32, &[1]);
    let mut desc = model("step.onnx", 8, vec![f("IN")], vec![f("IN")]);
    // What the host adds is in the configuration alone: control START, state STATE written as SUM.
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
    let mut answers = Vec::new();
    assert_eq!(count(|counts| counts.gathered, || answers = loaded.run(&requests)), 3);
    let sums: Vec<f32> = answers.iter().map(|answer| floats(answer, "SUM")[0]).collect();
    assert_eq!(sums, [1.0, 12.0, 23.0]);
    // The gathered input, passed through as an output, is the host's.
    assert_eq!(floats(&answers[1], "IN"), [2.0]);
    assert_eq!(outputs(&answers[0]).len(), 1);
    let alone = loaded.run(&[step(7.0, 0, 1.0).request_output("IN")]);
    assert_eq!((floats(&alone[0], "IN"), floats(&alone[0], "SUM")), (vec![7.0], vec![8.0]));
}
