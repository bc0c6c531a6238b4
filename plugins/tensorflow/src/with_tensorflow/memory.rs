//! Memory that TensorFlow shares: with requests, with variables, with the host.

use super::*;
use trtserver_plugin_testkit::hold_releases;

#[test]
fn model_that_keeps_inputs_gets_copies_and_a_session_per_instance() {
    let (session, handle) = start();
    let (inputs, outputs): (Tensors, Tensors) =
        (&[("X", dtype::FP32, &[4])], &[("Y", dtype::FP32, &[4])]);
    let path = Path::new(DATA).join("keep.savedmodel");
    let loaded = load(&handle, &spec(crate::SAVED_MODEL, &path, 8, inputs, outputs)).unwrap();
    let other = loaded.model.open_instance(&InstanceSpec::default()).unwrap();
    let request = |value: f32| {
        let request = Request::new(1).input("X", dtype::FP32, &[1, 4], &bytes(&[value; 4]));
        request.request_output("Y")
    };
    // The request's memory is gone when the next one runs.
    for value in 1..5 {
        let expected = [(value - 1) as f32; 4];
        assert_eq!(floats(&loaded.run(request(value as f32)), "Y"), expected);
    }
    assert_eq!(floats(&other.execute(&[request(9.0)])[0], "Y"), [0.0; 4]);
    assert_eq!(floats(&other.execute(&[request(9.0)])[0], "Y"), [9.0; 4]);
    assert!(session.logged("state kept by AssignVariableOp"), "{:?}", session.log());
    assert!(!session.logged("keeps the memory of an input"));
}

#[test]
fn large_inputs_are_used_in_place_and_outputs_adopted() {
    let (_session, handle) = start();
    let (inputs, outputs): (Tensors, Tensors) = (
        &[("X", dtype::FP32, &[-1, -1]), ("SHAPE", dtype::INT64, &[-1])],
        &[("PLUS", dtype::FP32, &[-1, -1]), ("SAME", dtype::FP32, &[-1, -1])],
    );
    let loaded = load(&handle, &graph_def("shapes.graphdef", 0, inputs, outputs)).unwrap();
    let many: Vec<f32> = (0..1 << 18).map(|i| i as f32).collect();
    let request = Request::new(1)
        .input("X", dtype::FP32, &[512, 512], &bytes(&many))
        .input("SHAPE", dtype::INT64, &[1], &bytes(&[-1i64]))
        .request_output("PLUS")
        .request_output("SAME");
    hold_releases(true);
    let outcome = loaded.run(request);
    assert!(output(&outcome, "PLUS").adopted && !output(&outcome, "SAME").adopted);
    assert_eq!(floats(&outcome, "SAME"), many, "TensorFlow must not write to inputs");
    assert!(floats(&outcome, "PLUS").iter().zip(&many).all(|(sum, x)| *sum == x + 1.0));
    hold_releases(false);
}

#[test]
fn memory_does_not_grow_with_requests() {
    let (_session, handle) = start();
    let inputs: Tensors = &[("TEXT", dtype::STRING, &[2])];
    let outputs: Tensors = &[("SAME", dtype::STRING, &[2]), ("NUMBER", dtype::FP32, &[2])];
    let strings = load(&handle, &graph_def("strings.graphdef", 8, inputs, outputs)).unwrap();
    let sums = load(&handle, &addsub(crate::SAVED_MODEL, 8)).unwrap();
    let number = |text: &[u8], name: &str| {
        let request = Request::new(1).input("TEXT", dtype::STRING, &[1, 2], text);
        strings.run(request.request_output(name))
    };
    let (long, numbers) =
        (text(&["a string of more than twenty-two bytes", "b"]), text(&["1", "2"]));
    let run = |times: usize| {
        for _ in 0..times {
            assert_eq!(output(&sums.run(addsub_request(2)), "OUTPUT0").data.len(), 128);
            assert_eq!(output(&number(&long, "SAME"), "SAME").data, long);
            assert_eq!(floats(&number(&numbers, "NUMBER"), "NUMBER"), [1.0, 2.0]);
            assert!(number(&long, "NUMBER").result.is_err());
        }
    };
    run(1000);
    let before = resident_kib();
    run(5000);
    let grown = resident_kib().saturating_sub(before);
    // One tensor a request that is not freed makes at least 1 MiB.
    assert!(grown < 1024, "{grown} KiB more after 20,000 requests");
}

fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}
