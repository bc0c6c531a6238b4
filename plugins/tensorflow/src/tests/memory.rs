//! Memory that TensorFlow shares: with requests, with variables, with the host.

use super::*;
use trtserver_plugin_testkit::hold_releases;

#[test]
fn model_that_keeps_inputs_gets_copies_and_a_session_per_instance() {
    let Some((session, handle)) = start() else { return };
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
    let Some((_session, handle)) = start() else { return };
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
