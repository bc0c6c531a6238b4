//! Small calls that come again: which of them get a kept run, and that nobody can tell from the answers.

use super::rig::{Loaded, decl, load, model};
use super::{
    addsub, addsub_call, bytes_of, floats, output, outputs, refused, resident_kib, shapes, start,
};
use crate::cached_runs::COUNT;
use std::sync::atomic::Ordering;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::{Outcome, Request};

/// The answer to one call, and whether a kept run gave it.
fn ask(loaded: &Loaded, request: Request) -> (Outcome, bool) {
    let before = COUNT.load(Ordering::Relaxed);
    let answer = loaded.run(&[request]).remove(0);
    (answer, COUNT.load(Ordering::Relaxed) > before)
}

/// Values that no other call has, as two rows would have them.
fn request(rows: usize, seed: f32) -> Request {
    let values: Vec<f32> = (0..rows * 16).map(|i| seed + i as f32).collect();
    let shape = [rows as i64, 16];
    Request::new(rows as u32).input("INPUT0", dtype::FP32, &shape, &bytes_of(&values)).input(
        "INPUT1",
        dtype::FP32,
        &shape,
        &bytes_of(&vec![seed; rows * 16]),
    )
}

/// Asks for one output or both and looks at every element; true: from a kept run.
fn right(loaded: &Loaded, rows: usize, seed: f32, requested: &[&str]) -> bool {
    let (answer, cached) = ask(
        loaded,
        requested.iter().fold(request(rows, seed), |request, name| request.request_output(name)),
    );
    assert_eq!(outputs(&answer).len(), requested.len());
    for (name, found) in requested.iter().zip(outputs(&answer)) {
        assert_eq!((&found.name[..], &found.shape[..]), (*name, &[rows as i64, 16][..]));
        let base = if *name == "OUTPUT0" { 2.0 * seed } else { 0.0 };
        let sums: Vec<f32> = (0..rows * 16).map(|i| base + i as f32).collect();
        assert_eq!(floats(&answer, name), sums, "{rows} rows, {seed}");
    }
    cached
}

const BOTH: [&str; 2] = ["OUTPUT0", "OUTPUT1"];

#[test]
fn the_second_call_of_a_shape_gets_a_run() {
    let Some((_session, handle)) = start() else { return };
    let loaded = load(&handle, addsub(64)).unwrap();
    let ways: Vec<bool> = [1, 1, 2, 1, 2, 2, 1]
        .iter()
        .map(|&rows| right(&loaded, rows, rows as f32, &BOTH))
        .collect();
    assert_eq!(ways, [false, true, false, true, true, true, true]);
    // Other outputs, or in another order, are another run.
    for requested in [&BOTH[1..], &["OUTPUT1", "OUTPUT0"]] {
        let ways: Vec<bool> = (0..3).map(|i| right(&loaded, 1, i as f32, requested)).collect();
        assert_eq!(ways, [false, true, true]);
    }
    // Two tensors in, two out: 32 rows are 8 KiB, 33 are too much.
    for (rows, cached) in [(32, true), (33, false), (64, false), (32, true), (1, true)] {
        right(&loaded, rows, 5.0, &BOTH);
        assert_eq!(right(&loaded, rows, 6.0, &BOTH), cached, "{rows} rows");
    }
    // No rows, and pieces.
    for cached in [false, true] {
        assert_eq!(right(&loaded, 0, 1.0, &BOTH), cached);
    }
    let mut pieces = addsub_call(1);
    pieces.inputs.pop();
    let ones = bytes_of(&[1.0; 16]);
    let pieces = pieces.input_parts("INPUT1", dtype::FP32, &[1, 16], &[&ones[..5], &ones[5..]]);
    let (answer, cached) = ask(&loaded, pieces);
    assert_eq!((floats(&answer, "OUTPUT1")[15], cached), (14.0, true));
    // Nobody wants anything: nothing to run.
    for _ in 0..3 {
        let (answer, cached) = ask(&loaded, request(1, 1.0));
        assert!(outputs(&answer).is_empty() && answer.result.is_ok() && !cached);
    }
}

#[test]
fn more_shapes_than_runs() {
    let Some((_session, handle)) = start() else { return };
    let loaded = load(&handle, addsub(64)).unwrap();
    // More than are remembered, in turn: none is kept. Each twice: every second is.
    for round in 0..3 {
        for rows in 1..20 {
            assert!(!right(&loaded, rows, round as f32, &BOTH), "{rows} rows");
        }
    }
    for round in 0..3 {
        for rows in 1..20 {
            right(&loaded, rows, round as f32, &BOTH);
            assert!(right(&loaded, rows, 0.5, &BOTH), "{rows} rows");
        }
    }
    // One more than are kept, in turn: one makes room for another in each round, not all for all.
    for rows in [2, 3, 4, 5, 6, 7, 8, 9].repeat(2) {
        right(&loaded, rows, 2.5, &BOTH);
    }
    for _ in 0..20 {
        let found = (1..10).filter(|&rows| right(&loaded, rows, 1.0, &BOTH)).count();
        assert!(found >= 7, "{found} of 9");
    }
    // Anything at all, from two instances of one session.
    let other = loaded.sibling();
    let mut random = 1u32;
    for _ in 0..2000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let instance = if random >> 30 & 1 == 0 { &loaded } else { &other };
        right(instance, (random >> 24 & 15) as usize, (random >> 16 & 255) as f32, &BOTH);
    }
    drop(loaded);
    right(&other, 1, 1.0, &BOTH);
    assert!(right(&other, 1, 2.0, &BOTH), "its own run");
}

#[test]
fn what_is_wrong_is_refused_beside_a_kept_run() {
    let Some((_session, handle)) = start() else { return };
    let loaded = load(&handle, addsub(8)).unwrap();
    let with = |dtype, shape: &[i64], bytes: &[u8]| {
        let mut request = addsub_call(1);
        request.inputs.remove(0);
        request.input("INPUT0", dtype, shape, bytes)
    };
    let mut missing = addsub_call(1);
    missing.inputs.pop();
    let mut requests = [
        (with(dtype::INT32, &[1, 16], &[0; 64]), "data-type is 'TYPE_INT32'"),
        (with(dtype::FP32, &[1, 15], &[0; 60]), "Expected [-1,16], got [1,15]"),
        (with(dtype::FP32, &[1, 16], &[0; 60]), "unexpected total byte size 60"),
        (addsub_call(1).input("INPUT0", dtype::FP32, &[1, 16], &[0; 64]), "given twice"),
        (missing, "input 'INPUT1' is required"),
        (addsub_call(1).request_output("q"), "unexpected inference output 'q'"),
    ];
    for (bad, requested) in &mut requests {
        for _ in 0..3 {
            right(&loaded, 1, 3.0, &BOTH);
            assert!(right(&loaded, 1, 4.0, &BOTH));
            let before = COUNT.load(Ordering::Relaxed);
            refused(&loaded.run(std::slice::from_ref(bad))[0], requested);
            assert_eq!(COUNT.load(Ordering::Relaxed), before);
        }
    }
}

#[test]
fn a_kept_run_that_fails_fails_no_other() {
    let Some((_session, handle)) = start() else { return };
    let (places, found) = (decl("places", dtype::INT64, &[1]), decl("found", dtype::FP32, &[1]));
    let loaded = load(&handle, model("lookup.onnx", 8, vec![places], vec![found])).unwrap();
    let request = |place: i64| {
        Request::new(1)
            .input("places", dtype::INT64, &[1, 1], &place.to_le_bytes())
            .request_output("found")
    };
    for _ in 0..3 {
        ask(&loaded, request(1));
        let (answer, cached) = ask(&loaded, request(2));
        assert_eq!((floats(&answer, "found"), cached), (vec![12.0], true));
        let (answer, cached) = ask(&loaded, request(99));
        refused(&answer, "model 'M': onnx runtime error");
        assert!(cached);
        assert_eq!(floats(&ask(&loaded, request(3)).0, "found"), [13.0]);
    }
}

#[test]
fn a_file_that_is_wrong_about_a_shape_now_and_then() {
    let Some((_session, handle)) = start() else { return };
    let inputs = vec![decl("x", dtype::FP32, &[-1])];
    let outputs = vec![decl("where", dtype::INT64, &[1, 4]), decl("weight", dtype::FP32, &[2])];
    let loaded = load(&handle, model("fickle.onnx", 0, inputs, outputs)).unwrap();
    let check = |values: [f32; 6]| {
        let request = Request::new(1).input("x", dtype::FP32, &[6], &bytes_of(&values));
        let (answer, cached) =
            ask(&loaded, request.request_output("where").request_output("weight"));
        let found: Vec<u8> = (0..6).filter(|&i| values[i] != 0.0).map(|i| i as u8).collect();
        let where_ = output(&answer, "where");
        assert_eq!(where_.shape, [1, found.len() as i64]);
        assert_eq!(where_.data.chunks(8).map(|b| b[0]).collect::<Vec<_>>(), found);
        assert_eq!(floats(&answer, "weight"), [1.5, 2.5], "a weight is an output like others");
        cached
    };
    let (four, other) = ([1.0, 0.0, 1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!([check(four), check(other), check(four)], [false, true, true]);
    assert!(check([1.0; 6]), "the cached run shows that the file is wrong");
    assert_eq!([check(four), check([0.0; 6]), check(other)], [false; 3], "not relied on any more");
}

#[test]
fn optional_and_idle_inputs() {
    let Some((_session, handle)) = start() else { return };
    let f = |name, dims: &[i64]| decl(name, dtype::FP32, dims);
    let loaded = load(&handle, model("tuned.onnx", 0, vec![f("x", &[2]), f("idle", &[2])], vec![]));
    let loaded = loaded.unwrap();
    let optional = ["factor", "spare"];
    for round in 0..3 {
        let x = round as f32;
        for given in [&[][..], &optional[..1], &optional[1..], &optional] {
            let request = Request::new(1)
                .input("idle", dtype::FP32, &[2], &[0; 8])
                .input("x", dtype::FP32, &[2], &bytes_of(&[x, 1.0]))
                .request_output("scaled");
            let request = given.iter().fold(request, |request, name| {
                request.input(name, dtype::FP32, &[1], &bytes_of(&[10.0]))
            });
            let factor = if given.contains(&"factor") { 10.0 } else { 2.0 };
            let (answer, cached) = ask(&loaded, request);
            assert_eq!((floats(&answer, "scaled"), cached), (vec![factor * x, factor], round > 0));
        }
    }
}

#[test]
fn outputs_of_no_known_shape_go_by_pointer() {
    let Some((_session, handle)) = start() else { return };
    let loaded = load(&handle, shapes()).unwrap();
    for x in [1.0, 2.0, 3.0] {
        let request = Request::new(1).input("x", dtype::FP32, &[2], &bytes_of(&[x, 1.0])).input(
            "s",
            dtype::FP32,
            &[1],
            &bytes_of(&[x]),
        );
        let (answer, cached) = ask(
            &loaded,
            request.request_output("scaled").request_output("square").request_output("x"),
        );
        assert_eq!(
            (floats(&answer, "scaled"), floats(&answer, "square")),
            (vec![2.0 * x, 2.0], vec![x * x])
        );
        assert_eq!((floats(&answer, "x"), cached), (vec![x, 1.0], false));
    }
}

#[test]
fn steps_of_a_sequence() {
    let Some((_session, handle)) = start() else { return };
    let f = |name| decl(name, dtype::FP32, &[1]);
    let inputs = vec![f("IN"), decl("START", dtype::BOOL, &[1]), f("STATE")];
    let loaded = load(&handle, model("step.onnx", 8, inputs, vec![f("SUM"), f("IN")])).unwrap();
    let mut sum = 0.0;
    for step in 0..20 {
        let start = u8::from(step % 7 == 0);
        sum = if start == 1 { 0.0 } else { sum } + step as f32;
        let request = Request::new(1)
            .input("IN", dtype::FP32, &[1, 1], &bytes_of(&[step as f32]))
            .input("START", dtype::BOOL, &[1, 1], &[start])
            .input("STATE", dtype::FP32, &[1, 1], &bytes_of(&[sum - step as f32]))
            .request_output("SUM");
        // An input passed through goes by pointer.
        let passes = step % 3 == 2;
        let (answer, cached) =
            ask(&loaded, if passes { request.request_output("IN") } else { request });
        assert_eq!((floats(&answer, "SUM"), cached), (vec![sum], step > 0 && !passes));
        assert!(!passes || floats(&answer, "IN") == [step as f32]);
    }
}

#[test]
fn kept_memory_goes_with_the_instance() {
    let Some((_session, handle)) = start() else { return };
    let loaded = load(&handle, addsub(64)).unwrap();
    let mut requests: Vec<Request> = (25..33).map(addsub_call).collect();
    let mut before = 0;
    for round in 0..600 {
        if round == 100 {
            before = resident_kib();
        }
        let instance = loaded.sibling();
        for request in &mut requests {
            instance.run(std::slice::from_ref(request));
            instance.run(std::slice::from_ref(request));
        }
    }
    let grown = resident_kib().saturating_sub(before);
    // Eight runs of up to 8 KiB each, 500 times, would be 32 MB.
    assert!(grown < 8192, "{grown} KiB more after 500 instances");
}
