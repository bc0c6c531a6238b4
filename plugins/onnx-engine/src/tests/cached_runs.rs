//! Cached runs: which requests use one, and that the responses are the same.

use super::harness::{Loaded, decl, load, lookup_model, lookup_request, model};
use super::{
    addsub, addsub_request, bytes_of, expect_error, floats, output, outputs, resident_kib, shapes,
    start,
};
use crate::cached_runs::COUNT;
use std::sync::atomic::Ordering;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::{Outcome, Request};

/// Executes one request; true: with a cached run.
fn run_one(loaded: &Loaded, request: Request) -> (Outcome, bool) {
    let before = COUNT.load(Ordering::Relaxed);
    let outcome = loaded.run(&[request]).remove(0);
    (outcome, COUNT.load(Ordering::Relaxed) > before)
}

/// A request whose values depend on the seed.
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

/// Requests one output or both and checks every element; true: with a cached run.
fn check_outputs(loaded: &Loaded, rows: usize, seed: f32, requested: &[&str]) -> bool {
    let (outcome, cached) = run_one(
        loaded,
        requested.iter().fold(request(rows, seed), |request, name| request.request_output(name)),
    );
    assert_eq!(outputs(&outcome).len(), requested.len());
    for (name, found) in requested.iter().zip(outputs(&outcome)) {
        assert_eq!((&found.name[..], &found.shape[..]), (*name, &[rows as i64, 16][..]));
        let base = if *name == "OUTPUT0" { 2.0 * seed } else { 0.0 };
        let sums: Vec<f32> = (0..rows * 16).map(|i| base + i as f32).collect();
        assert_eq!(floats(&outcome, name), sums, "{rows} rows, {seed}");
    }
    cached
}

const BOTH: [&str; 2] = ["OUTPUT0", "OUTPUT1"];

#[test]
fn second_request_of_a_shape_uses_cached_run() {
    let (_session, handle) = start();
    let loaded = load(&handle, addsub(64)).unwrap();
    let cached: Vec<bool> = [1, 1, 2, 1, 2, 2, 1]
        .iter()
        .map(|&rows| check_outputs(&loaded, rows, rows as f32, &BOTH))
        .collect();
    assert_eq!(cached, [false, true, false, true, true, true, true]);
    // Other outputs, or another order, need another run.
    for requested in [&BOTH[1..], &["OUTPUT1", "OUTPUT0"]] {
        let cached: Vec<bool> =
            (0..3).map(|i| check_outputs(&loaded, 1, i as f32, requested)).collect();
        assert_eq!(cached, [false, true, true]);
    }
    // Two inputs and two outputs: 32 rows are 8 KiB, 33 rows are above the limit.
    for (rows, cached) in [(32, true), (33, false), (64, false), (32, true), (1, true)] {
        check_outputs(&loaded, rows, 5.0, &BOTH);
        assert_eq!(check_outputs(&loaded, rows, 6.0, &BOTH), cached, "{rows} rows");
    }
    // No rows, and an input in several parts.
    for cached in [false, true] {
        assert_eq!(check_outputs(&loaded, 0, 1.0, &BOTH), cached);
    }
    let mut pieces = addsub_request(1);
    pieces.inputs.pop();
    let ones = bytes_of(&[1.0; 16]);
    let pieces = pieces.input_parts("INPUT1", dtype::FP32, &[1, 16], &[&ones[..5], &ones[5..]]);
    let (outcome, cached) = run_one(&loaded, pieces);
    assert_eq!((floats(&outcome, "OUTPUT1")[15], cached), (14.0, true));
    // Without requested outputs there is no run.
    for _ in 0..3 {
        let (outcome, cached) = run_one(&loaded, request(1, 1.0));
        assert!(outputs(&outcome).is_empty() && outcome.result.is_ok() && !cached);
    }
}

#[test]
fn cached_runs_are_evicted_when_there_are_more_shapes() {
    let (_session, handle) = start();
    let loaded = load(&handle, addsub(64)).unwrap();
    // More shapes in turn than the ring remembers: no run is cached. Each shape twice: the second
    // request is.
    for round in 0..3 {
        for rows in 1..20 {
            assert!(!check_outputs(&loaded, rows, round as f32, &BOTH), "{rows} rows");
        }
    }
    for round in 0..3 {
        for rows in 1..20 {
            check_outputs(&loaded, rows, round as f32, &BOTH);
            assert!(check_outputs(&loaded, rows, 0.5, &BOTH), "{rows} rows");
        }
    }
    // One shape more than the maximum, in turn: a round evicts one run, not all of them.
    for rows in [2, 3, 4, 5, 6, 7, 8, 9].repeat(2) {
        check_outputs(&loaded, rows, 2.5, &BOTH);
    }
    for _ in 0..20 {
        let found = (1..10).filter(|&rows| check_outputs(&loaded, rows, 1.0, &BOTH)).count();
        assert!(found >= 7, "{found} of 9");
    }
    // Random shapes, from two instances of one session.
    let other = loaded.sibling();
    let mut random = 1u32;
    for _ in 0..2000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let instance = if random >> 30 & 1 == 0 { &loaded } else { &other };
        check_outputs(instance, (random >> 24 & 15) as usize, (random >> 16 & 255) as f32, &BOTH);
    }
    drop(loaded);
    check_outputs(&other, 1, 1.0, &BOTH);
    assert!(check_outputs(&other, 1, 2.0, &BOTH), "each instance has its own runs");
}

#[test]
fn invalid_requests_fail_despite_cached_run() {
    let (_session, handle) = start();
    let loaded = load(&handle, addsub(8)).unwrap();
    let with = |dtype, shape: &[i64], bytes: &[u8]| {
        let mut request = addsub_request(1);
        request.inputs.remove(0);
        request.input("INPUT0", dtype, shape, bytes)
    };
    let mut missing = addsub_request(1);
    missing.inputs.pop();
    let mut requests = [
        (with(dtype::INT32, &[1, 16], &[0; 64]), "data-type is 'TYPE_INT32'"),
        (with(dtype::FP32, &[1, 15], &[0; 60]), "Expected [-1,16], got [1,15]"),
        (with(dtype::FP32, &[1, 16], &[0; 60]), "unexpected total byte size 60"),
        (addsub_request(1).input("INPUT0", dtype::FP32, &[1, 16], &[0; 64]), "given twice"),
        (missing, "input 'INPUT1' is required"),
        (addsub_request(1).request_output("q"), "unexpected inference output 'q'"),
    ];
    for (bad, requested) in &mut requests {
        for _ in 0..3 {
            check_outputs(&loaded, 1, 3.0, &BOTH);
            assert!(check_outputs(&loaded, 1, 4.0, &BOTH));
            let before = COUNT.load(Ordering::Relaxed);
            expect_error(&loaded.run(std::slice::from_ref(bad))[0], requested);
            assert_eq!(COUNT.load(Ordering::Relaxed), before);
        }
    }
}

#[test]
fn failing_cached_run_does_not_affect_other_requests() {
    let (_session, handle) = start();
    let loaded = load(&handle, lookup_model()).unwrap();
    for _ in 0..3 {
        run_one(&loaded, lookup_request(1));
        let (outcome, cached) = run_one(&loaded, lookup_request(2));
        assert_eq!((floats(&outcome, "found"), cached), (vec![12.0], true));
        let (outcome, cached) = run_one(&loaded, lookup_request(99));
        expect_error(&outcome, "model 'M': onnx runtime error");
        assert!(cached);
        assert_eq!(floats(&run_one(&loaded, lookup_request(3)).0, "found"), [13.0]);
    }
}

#[test]
fn cached_run_survives_wrong_declared_shape() {
    let (_session, handle) = start();
    let inputs = vec![decl("x", dtype::FP32, &[-1])];
    let outputs = vec![decl("where", dtype::INT64, &[1, 4]), decl("weight", dtype::FP32, &[2])];
    let loaded = load(&handle, model("undeclared_count.onnx", 0, inputs, outputs)).unwrap();
    let check = |values: [f32; 6]| {
        let request = Request::new(1).input("x", dtype::FP32, &[6], &bytes_of(&values));
        let (outcome, cached) =
            run_one(&loaded, request.request_output("where").request_output("weight"));
        let found: Vec<u8> = (0..6).filter(|&i| values[i] != 0.0).map(|i| i as u8).collect();
        let where_ = output(&outcome, "where");
        assert_eq!(where_.shape, [1, found.len() as i64]);
        assert_eq!(where_.data.chunks(8).map(|b| b[0]).collect::<Vec<_>>(), found);
        assert_eq!(floats(&outcome, "weight"), [1.5, 2.5], "a weight is an output like others");
        cached
    };
    let (four, other) = ([1.0, 0.0, 1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!([check(four), check(other), check(four)], [false, true, true]);
    assert!(check([1.0; 6]), "the cached run shows that the file is wrong");
    assert_eq!(
        [check(four), check([0.0; 6]), check(other)],
        [false; 3],
        "declared shapes are ignored"
    );
}

#[test]
fn optional_and_unused_inputs_are_cached() {
    let (_session, handle) = start();
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
            let (outcome, cached) = run_one(&loaded, request);
            assert_eq!((floats(&outcome, "scaled"), cached), (vec![factor * x, factor], round > 0));
        }
    }
}

#[test]
fn outputs_of_unknown_shape_are_not_cached() {
    let (_session, handle) = start();
    let loaded = load(&handle, shapes()).unwrap();
    for x in [1.0, 2.0, 3.0] {
        let request = Request::new(1).input("x", dtype::FP32, &[2], &bytes_of(&[x, 1.0])).input(
            "s",
            dtype::FP32,
            &[1],
            &bytes_of(&[x]),
        );
        let (outcome, cached) = run_one(
            &loaded,
            request.request_output("scaled").request_output("square").request_output("x"),
        );
        assert_eq!(
            (floats(&outcome, "scaled"), floats(&outcome, "square")),
            (vec![2.0 * x, 2.0], vec![x * x])
        );
        assert_eq!((floats(&outcome, "x"), cached), (vec![x, 1.0], false));
    }
}

#[test]
fn sequence_steps_use_cached_runs() {
    let (_session, handle) = start();
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
        let (outcome, cached) =
            run_one(&loaded, if passes { request.request_output("IN") } else { request });
        assert_eq!((floats(&outcome, "SUM"), cached), (vec![sum], step > 0 && !passes));
        assert!(!passes || floats(&outcome, "IN") == [step as f32]);
    }
}

#[test]
fn cached_runs_are_freed_with_the_instance() {
    let (_session, handle) = start();
    let loaded = load(&handle, addsub(64)).unwrap();
    let mut requests: Vec<Request> = (25..33).map(addsub_request).collect();
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
