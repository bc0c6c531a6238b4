//! Unit tests of `views.rs`.

use super::*;
use crate::batch::slot::RequestSlot;
use bytes::Bytes;
use trtserver_request::state_spec::{StateSpec, StateTensor};
use trtserver_request::testing::{request, signature};
use trtserver_request::{DType, InputTensor};

#[test]
fn reshape_to_more_dimensions_does_not_reallocate() {
    let mut declared = Arc::into_inner(signature(&[2], 0)).unwrap();
    declared.inputs[0].model_dims = vec![1; 40];
    declared.inputs[0].model_dims[0] = 2;
    declared.inputs.push(declared.inputs[0].clone());
    let names = Arc::new(TensorNames::new(&declared));
    let options = ViewOptions { signature: &declared, names: &names, gpu: None };
    let mut request = request("").0;
    let data = Bytes::from(vec![0; 8]);
    request.inputs.push(InputTensor {
        index: 1,
        dtype: DType::Fp32,
        shape: [2][..].into(),
        data: data.into(),
    });
    let requests = [request];
    let mut views = Views::default();
    views.reserve(&requests, &options);
    let capacity = views.shapes.capacity();
    views.add(RequestSlot::obtain().handle(), &requests[0], &options);
    assert_eq!((views.shapes.len(), views.shapes.capacity()), (80, capacity));
    assert_eq!(views.tensors[0].shape, views.shapes.as_ptr());
    assert_eq!(views.tensors[1].rank, 40);
}

#[test]
fn added_inputs_and_states_are_flagged() {
    let mut declared = Arc::into_inner(signature(&[2], 0)).unwrap();
    let hidden = |name, role| TensorSpec { role, ..TensorSpec::new(name, DType::Fp32, &[1]) };
    declared.hidden = vec![hidden("START", InputRole::Control), hidden("S_IN", InputRole::State)];
    let state = |output: &str| StateSpec {
        input: 2,
        output: output.into(),
        dtype: DType::Fp32,
        dims: vec![1],
        initial: StateTensor { shape: [1][..].into(), data: Bytes::from_static(&[0; 4]).into() },
    };
    declared.states = vec![state("S_OUT"), state("O")];
    let names = Arc::new(TensorNames::new(&declared));
    let options = ViewOptions { signature: &declared, names: &names, gpu: None };
    let mut request = request("").0;
    let (one, data) = ([1][..].into(), Bytes::from(vec![0; 4]));
    let start = InputTensor { index: 1, dtype: DType::Fp32, shape: one, data: data.into() };
    request.inputs.extend([InputTensor { index: 2, ..start.clone() }, start]);
    request.warmup = true;
    let mut silent = trtserver_request::testing::request("").0;
    Arc::get_mut(&mut silent.responder).unwrap().context.outputs.clear();
    let requests = [request, silent];
    let mut views = Views::default();
    views.reserve(&requests, &options);
    for request in &requests {
        views.add(RequestSlot::obtain().handle(), request, &options);
    }
    let seen: Vec<_> = views.tensors.iter().map(|t| (t.index, t.flags)).collect();
    let none = u32::MAX;
    assert_eq!(seen, [(0, 0), (none, tensor_flags::STATE), (none, tensor_flags::CONTROL), (0, 0)]);
    assert_eq!(views.tensors[1].name.p, names.inputs[2].as_ptr().cast());
    // `O` is also a state and requested by the first request, so it appears once.
    let requested: Vec<_> = views.requested.iter().map(|w| w.index).collect();
    assert_eq!(requested, [0, none, none, 0]);
    assert_eq!((views.requests[0].flags, views.requests[1].flags), (request_flags::WARMUP, 0));
    assert_eq!(views.inputs_at(2).map(|i| i.is_some()).collect::<Vec<_>>(), [true, false]);
}
