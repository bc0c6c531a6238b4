//! Several requests in one run.

use super::*;
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_testkit::counts;

#[test]
fn requests_with_equal_shapes_are_merged() {
    let (_session, handle) = start();
    let loaded = load(&handle, &addsub(crate::SAVED_MODEL, 8)).unwrap();
    let mut one = addsub_request(1);
    one.requested_outputs.remove(0);
    let requests = [addsub_request(3), addsub_request(1).cancelled(), one, addsub_request(2)];
    let before = counts().gathered;
    let outcomes = loaded.instance.execute(&requests);
    assert_eq!(counts().gathered - before, 2);
    assert_eq!(floats(&outcomes[0], "OUTPUT0")[47], 48.0);
    assert_eq!(failure(&outcomes[1]).code, code::CANCELLED);
    assert_eq!(outcomes[2].responses[0].outputs.len(), 1);
    assert_eq!(floats(&outcomes[2], "OUTPUT1")[5], 4.0);
    assert_eq!(output(&outcomes[3], "OUTPUT1").shape, [2, 16]);
}

#[test]
fn request_that_fails_does_so_alone() {
    let (_session, handle) = start();
    let inputs: Tensors = &[("TEXT", dtype::STRING, &[2])];
    let outputs: Tensors = &[("NUMBER", dtype::FP32, &[2])];
    let loaded = load(&handle, &graph_def("strings.graphdef", 8, inputs, outputs)).unwrap();
    let request = |strings: &[&str]| {
        let request = Request::new(1).input("TEXT", dtype::STRING, &[1, 2], &text(strings));
        request.request_output("NUMBER")
    };
    let requests = [request(&["1", "2"]), request(&["3", "x"]), request(&["5", "6"])];
    let outcomes = loaded.instance.execute(&requests);
    assert_eq!(floats(&outcomes[0], "NUMBER"), [1.0, 2.0]);
    assert!(failure(&outcomes[1]).text.contains("model 'M'"));
    assert_eq!(floats(&outcomes[2], "NUMBER"), [5.0, 6.0]);
}
