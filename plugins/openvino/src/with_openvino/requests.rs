//! Runs: every type, blocks of the host and memory of the library, batches.

use super::*;

#[track_caller]
fn expect_addsub(outcome: &Outcome, all: &[f32]) {
    let total: Vec<f32> = all.iter().map(|own| own * 1.5).collect();
    let half: Vec<f32> = all.iter().map(|own| own * 0.5).collect();
    assert_eq!(floats(outcome, "OUTPUT0"), total);
    assert_eq!(floats(outcome, "OUTPUT1"), half);
}

fn both(request: Request) -> Request {
    request.request_output("OUTPUT0").request_output("OUTPUT1")
}

#[test]
fn requests_of_a_batch_get_their_rows() {
    let (_session, backend) = start(&[]);
    let model = load(&backend, &addsub()).unwrap();
    for count in [1, 8, 3] {
        let (request, all) = rows(count as f32, count);
        expect_addsub(&model.one(both(request)), &all);
    }
    let parts: Vec<_> = [(0.0, 2), (100.0, 1), (50.0, 5)].map(|(from, n)| rows(from, n)).into();
    let requests: Vec<_> = parts.iter().map(|(request, _)| both(request.clone())).collect();
    for (outcome, (_, all)) in model.run(&requests).iter().zip(&parts) {
        expect_addsub(outcome, all);
    }
    // One that is cancelled, one of no output, one of the other output.
    let outcomes = model.run(&[
        both(rows(0.0, 1).0).cancelled(),
        rows(1.0, 1).0,
        rows(2.0, 1).0.request_output("OUTPUT1"),
    ]);
    assert!(outcomes[0].result.as_ref().unwrap_err().text.contains("cancelled"));
    assert_eq!((outcomes[1].responses.len(), &outcomes[1].result), (1, &Ok(())));
    assert_eq!(floats(&outcomes[2], "OUTPUT1")[0], 1.0);
    assert!(outcomes[2].responses[0].output("OUTPUT0").is_none());
    // The run after them uses its own blocks.
    let (request, all) = rows(7.0, 2);
    expect_addsub(&model.one(both(request)), &all);
}

#[test]
fn inputs_in_parts_and_unaligned_ones_are_copied() {
    let (_session, backend) = start(&[]);
    let model = load(&backend, &addsub()).unwrap();
    let all: Vec<f32> = (0..16).map(|at| at as f32).collect();
    let data = bytes(&all);
    let zeros = bytes(&[0f32; 16]);
    let request = Request::new(1)
        .input_parts("INPUT0", dtype::FP32, &[1, 16], &[&data[..7], &data[7..30], &data[30..]])
        .input("INPUT1", dtype::FP32, &[1, 16], &zeros);
    assert_eq!(floats(&model.one(request.request_output("OUTPUT0")), "OUTPUT0"), all);
}

#[test]
fn every_type_is_unchanged() {
    let (_session, backend) = start(&[]);
    for (name, kind, size) in [
        ("bool", dtype::BOOL, 1),
        ("int8", dtype::INT8, 1),
        ("int16", dtype::INT16, 2),
        ("int32", dtype::INT32, 4),
        ("int64", dtype::INT64, 8),
        ("uint8", dtype::UINT8, 1),
        ("uint16", dtype::UINT16, 2),
        ("uint32", dtype::UINT32, 4),
        ("uint64", dtype::UINT64, 8),
        ("fp16", dtype::FP16, 2),
        ("bf16", dtype::BF16, 2),
        ("fp32", dtype::FP32, 4),
        ("fp64", dtype::FP64, 8),
    ] {
        let spec = model(&format!("identity_{name}"), "model.onnx")
            .max_batch_size(8)
            .input("INPUT0", kind, &[-1])
            .output("OUTPUT0", kind, &[-1]);
        let model = load(&backend, &spec).unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        // Small numbers of all types, floats among them; sizes change from run to run.
        for count in [5, 1, 0, 9] {
            let data: Vec<u8> = (0..count * size).map(|at| u8::from(at % size == 0)).collect();
            let request = Request::new(1).input("INPUT0", kind, &[1, count as i64], &data);
            let outcome = model.one(request.request_output("OUTPUT0"));
            assert_eq!(outcome.result, Ok(()), "{name}");
            let found = outcome.responses[0].output("OUTPUT0").unwrap();
            assert_eq!((&found.data, &*found.shape), (&data, &[1, count as i64][..]), "{name}");
        }
    }
    let strings = model("identity_string", "model.onnx")
        .max_batch_size(8)
        .input("INPUT0", dtype::STRING, &[-1])
        .output("OUTPUT0", dtype::STRING, &[-1]);
    let refused = load(&backend, &strings).err().unwrap().text;
    assert!(refused.contains("strings, which OpenVINO's C interface cannot return"), "{refused}");
}

#[test]
fn numbers_that_the_library_would_change_are_refused() {
    let (_session, backend) = start(&[]);
    let spec = model("identity_int64", "model.onnx")
        .max_batch_size(8)
        .input("INPUT0", dtype::INT64, &[-1])
        .output("OUTPUT0", dtype::INT64, &[-1]);
    let model = load(&backend, &spec).unwrap();
    let ask = |number: i64| {
        let request = Request::new(1).input("INPUT0", dtype::INT64, &[1, 1], &number.to_le_bytes());
        request.request_output("OUTPUT0")
    };
    // In one run, and by themselves.
    for outcomes in [model.run(&[ask(7), ask(1 << 40)]), model.run(&[ask(1 << 40)])] {
        let refused = outcomes.last().unwrap().result.as_ref().unwrap_err();
        let expected = "has the number 1099511627776, and OpenVINO computes TYPE_INT64 in 32 bits";
        assert!(refused.text.contains(expected), "{refused:?}");
    }
    assert_eq!(model.one(ask(-7)).result, Ok(()));
}

/// How many outputs there are depends on the values: no block of the host can be written.
#[test]
fn outputs_of_unknown_shape() {
    let (_session, backend) = start(&[]);
    let spec = model("nonzero", "model.onnx").input("INPUT0", dtype::FP32, &[-1, -1]).output(
        "OUTPUT0",
        dtype::INT64,
        &[2, -1],
    );
    let model = load(&backend, &spec).unwrap();
    for (numbers, expected) in [
        (&[0f32, 3.0, 0.0, 4.0][..], &[0i64, 1, 1, 1][..]),
        (&[0.0; 4], &[]),
        (&[1.0, 0.0], &[0, 0]),
    ] {
        let shape = [(numbers.len() / 2) as i64, 2];
        let request = Request::new(1).input("INPUT0", dtype::FP32, &shape, &bytes(numbers));
        let outcome = model.one(request.request_output("OUTPUT0"));
        assert_eq!(outcome.result, Ok(()));
        let found = outcome.responses[0].output("OUTPUT0").unwrap();
        assert_eq!(values::<i64>(&found.data), expected);
    }
}

/// The first dimension of the output is the number of found objects.
#[test]
fn an_output_without_the_rows_of_the_run_fails_its_request() {
    let (session, backend) = start(&[]);
    let spec = model("completion/detector", "model.onnx")
        .max_batch_size(8)
        .input("scores", dtype::FP32, &[8])
        .output("boxes", dtype::INT64, &[2]);
    let model = load(&backend, &spec).unwrap();
    let scores = [1f32, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0];
    let ask = |rows: i64| {
        let data = bytes(&scores.repeat(rows as usize));
        let request = Request::new(rows as u32).input("scores", dtype::FP32, &[rows, 8], &data);
        model.one(request.request_output("boxes"))
    };
    for rows in [1, 8] {
        let refused = ask(rows).result.unwrap_err().text;
        let expected =
            format!("expected a first dimension of {rows}, the number of rows of the run");
        assert!(refused.contains(&expected) && refused.contains("max_batch_size: 0"), "{refused}");
    }
    assert!(session.logged("requests are executed one by one from now on"));
}

#[test]
fn models_of_one_row_batch_after_a_reshape() {
    let (_session, backend) = start(&[]);
    let model = load(&backend, &one_row()).unwrap();
    let x = [1f32, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 8.0];
    let request = Request::new(2).input("x", dtype::FP32, &[2, 4], &bytes(&x));
    let y = floats(&model.one(request.request_output("y")), "y");
    assert_eq!(y, [0.0, 0.125, 0.25, 9.0, 10.0, 11.0]);
    // As it is in the file.
    let plain = one_row().max_batch_size(0);
    let plain = ModelSpec { inputs: Vec::new(), outputs: Vec::new(), ..plain };
    let plain = plain.input("x", dtype::FP32, &[1, 4]).output("y", dtype::FP32, &[1, 3]);
    let model = load(&backend, &plain).unwrap();
    let request = Request::new(1).input("x", dtype::FP32, &[1, 4], &bytes(&x[4..]));
    assert_eq!(floats(&model.one(request.request_output("y")), "y"), [9.0, 10.0, 11.0]);
}

#[test]
fn requests_that_do_not_fit_are_refused() {
    let (_session, backend) = start(&[]);
    let model = load(&backend, &addsub()).unwrap();
    let zeros = bytes(&[0f32; 16]);
    let input = |name: &str, shape: &[i64], data: &[u8]| {
        Request::new(1).input(name, dtype::FP32, shape, data).request_output("OUTPUT0")
    };
    for (request, expected) in [
        (input("INPUT0", &[1, 16], &zeros), "input 'INPUT1' is required by model 'M'"),
        (input("other", &[1, 16], &zeros), "unexpected inference input 'other'"),
        (input("INPUT0", &[1, 15], &zeros[..60]), "Expected [-1,16], got [1,15]"),
    ] {
        let refused = model.one(request.unchecked()).result.unwrap_err().text;
        assert!(refused.contains(expected), "{refused}");
    }
}

/// With one thread OpenVINO reports no error of a run with dynamic shapes, and writes no outputs. Those
/// of the run before must not be returned.
#[test]
fn a_run_that_fails_fails_its_request_with_any_number_of_threads() {
    let (session, backend) = start(&[]);
    let zeros = bytes(&[0f32; 48]);
    for threads in ["1", "2"] {
        let spec = addsub().parameter("INFERENCE_NUM_THREADS", threads);
        let model = load(&backend, &spec).unwrap();
        let (request, all) = rows(3.0, 2);
        expect_addsub(&model.one(both(request.clone())), &all);
        let apart = Request::new(2)
            .input("INPUT0", dtype::FP32, &[2, 16], &zeros[..128])
            .input("INPUT1", dtype::FP32, &[3, 16], &zeros)
            .request_output("OUTPUT0");
        let refused = model.one(apart.unchecked()).result.unwrap_err().text;
        assert!(refused.starts_with("model 'M'"), "{refused}");
        expect_addsub(&model.one(both(request)), &all);
    }
    assert!(
        session.logged("with one thread OpenVINO reports no errors of runs with dynamic shapes")
    );
}
