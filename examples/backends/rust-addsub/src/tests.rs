// SPDX-License-Identifier: Apache-2.0
//! The backend on the test host, without a server: `cargo test`.

use super::AddSub;
use trtserver_plugin_api::abi::types::{code, dtype};
use trtserver_plugin_testkit::{
    Backend, Instance, InstanceSpec, ModelSpec, Request, Session, bytes, table, values,
};

fn open() -> Instance {
    let names = [["INPUT0", "OUTPUT0"], ["INPUT1", "OUTPUT1"]];
    let spec = names.iter().fold(ModelSpec::new("m").max_batch_size(8), |spec, [input, output]| {
        spec.input(input, dtype::FP32, &[-1]).output(output, dtype::FP32, &[-1])
    });
    let backend = Backend::open(table::<AddSub>(), "rust_addsub", "", &[]).unwrap();
    backend.open_model(&spec).unwrap().open_instance(&InstanceSpec::default()).unwrap()
}

fn request(a: &[f32], b: &[f32]) -> Request {
    let shape = |values: &[f32]| [1, values.len() as i64];
    Request::new(1)
        .input("INPUT0", dtype::FP32, &shape(a), &bytes(a))
        .input("INPUT1", dtype::FP32, &shape(b), &bytes(b))
        .request_output("OUTPUT0")
}

#[test]
fn adds_in_a_batch() {
    // Fails the test at its end if the backend violated the interface.
    let _session = Session::start();
    let outcomes = open().execute(&[request(&[1.0], &[10.0]), request(&[2.0, 3.0], &[0.5, 0.5])]);
    for (outcome, sums) in outcomes.iter().zip([vec![11.0], vec![2.5, 3.5]]) {
        let output = outcome.response().unwrap().output("OUTPUT0").unwrap();
        assert_eq!(values::<f32>(&output.data), sums);
    }
}

#[test]
fn invalid_request_does_not_fail_its_batch() {
    let session = Session::start();
    let outcomes = open().execute(&[request(&[1.0], &[1.0, 2.0]), request(&[1.0], &[1.0])]);
    let error = outcomes[0].result.as_ref().unwrap_err();
    assert_eq!((error.code, &*error.text), (code::INVALID, "INPUT0 and INPUT1 differ in shape"));
    assert_eq!(outcomes[1].result, Ok(()));
    assert!(session.logged("is ready to add"));
}
