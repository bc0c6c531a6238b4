//! Unit tests of `fast_path.rs`.

use super::*;
use crate::RequestRegions;
use crate::grpc::fallback;
use prost::Message;
use trtserver_proto::v2::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use trtserver_proto::v2::{InferParameter, InferTensorContents, ModelInferRequest};
use trtserver_wire::echo_testing::context;

fn input(name: &str, datatype: &str, shape: &[i64]) -> InferInputTensor {
    InferInputTensor {
        name: name.into(),
        datatype: datatype.into(),
        shape: shape.into(),
        ..Default::default()
    }
}

fn request(raw: &[usize]) -> ModelInferRequest {
    ModelInferRequest {
        model_name: "echo".into(),
        model_version: "3".into(),
        id: "é".into(),
        inputs: vec![input("TEXT", "BYTES", &[1, 2]), input("FP", "FP32", &[1, -300, i64::MAX])],
        outputs: vec![InferRequestedOutputTensor { name: "FP".into(), ..Default::default() }],
        raw_input_contents: raw.iter().map(|n| vec![*n as u8; *n].into()).collect(),
        ..Default::default()
    }
}

/// Asserts that the fast path read the same request as the fallback.
fn assert_same(
    served: &OpenVersion,
    (got, spec): (&UncheckedRequest, &ResponseSpec),
    request: ModelInferRequest,
    what: &dyn std::fmt::Debug,
) {
    let (want, want_spec) = fallback::read_request(served, request, RequestRegions::DISABLED)
        .unwrap_or_else(|e| panic!("{what:?}: {e}"));
    assert_eq!((&got.id, &spec.id), (&want.id, &want_spec.id), "{what:?}");
    assert_eq!(got.outputs, want.outputs, "{what:?}");
    let all = |unchecked: &UncheckedRequest| {
        let tensor = |t: &InputTensor| (t.index, t.dtype, t.shape.clone(), t.data.clone());
        unchecked.inputs.iter().map(tensor).collect::<Vec<_>>()
    };
    assert_eq!(all(got), all(&want), "{what:?}");
}

#[test]
fn mutated_messages_are_read_as_by_the_fallback_or_return_none() {
    let served = context().models.find("echo", None).unwrap();
    let whole = request(&[1, 2]).encode_to_vec();
    let mut read = 0;
    let mut check = |message: Vec<u8>, what: (usize, u8)| {
        let message = Bytes::from(message);
        let Some(fast) = FastRequest::parse(&message) else { return };
        let (model, version) = (fast.model.to_owned(), fast.version.to_owned());
        let request =
            ModelInferRequest::decode(message.clone()).unwrap_or_else(|e| panic!("{what:?}: {e}"));
        assert_eq!((&model, &version), (&request.model_name, &request.model_version));
        if let Some((unchecked, spec)) = fast.into_unchecked(&served, &message) {
            read += 1;
            assert_same(&served, (&unchecked, &spec), request, &what);
        }
    };
    for at in 0..whole.len() {
        for byte in 0..=255 {
            let mut other = whole.clone();
            other[at] = byte;
            check(other, (at, byte));
            // An inserted byte, which invalidates the lengths.
            let mut longer = whole.clone();
            longer.insert(at, byte);
            check(longer, (at, byte));
        }
        // Fields in another order, some repeated.
        check([&whole[at..], &whole[..]].concat(), (at, 0));
        check([&whole[..], &whole[..at]].concat(), (at, 1));
    }
    assert!(read > 1000, "{read} messages were read");
}

#[test]
fn fast_path_and_fallback_read_the_same_request() {
    let served = context().models.find("echo", None).unwrap();
    for raw in [[64, 64], [0, 1], [17, 0], [3, 5000], [5000, 9]] {
        let request = request(&raw);
        // At any alignment of the message.
        for skip in 0..8 {
            let message = [vec![0; skip], request.encode_to_vec()].concat();
            let message = Bytes::from(message).slice(skip..);
            let fast = FastRequest::parse(&message).unwrap();
            assert_eq!((fast.model, fast.version), ("echo", "3"));
            let (got, spec) = fast.into_unchecked(&served, &message).unwrap();
            assert_eq!(got.inputs.len(), 2);
            assert_same(&served, (&got, &spec), request.clone(), &raw);
            for got in &got.inputs {
                let aligned = (got.data.as_ptr() as usize).is_multiple_of(ALIGN);
                assert!(aligned || got.data.is_empty() || got.data.len() > MAX_COPIED);
            }
        }
    }
}

#[test]
fn other_messages_return_none() {
    let served = context().models.find("echo", None).unwrap();
    let good = request(&[1, 2]);
    let parameters = [("k".to_owned(), InferParameter::default())];
    let parameters = || parameters.clone().into();
    let with = |change: &dyn Fn(&mut ModelInferRequest)| {
        let mut request = good.clone();
        change(&mut request);
        request.encode_to_vec()
    };
    let contents = InferTensorContents { fp32_contents: vec![1.0], ..Default::default() };
    for (what, message) in [
        ("a parameter", with(&|r| r.parameters = parameters())),
        ("a parameter of an input", with(&|r| r.inputs[0].parameters = parameters())),
        ("a parameter of an output", with(&|r| r.outputs[0].parameters = parameters())),
        ("typed contents", with(&|r| r.inputs[0].contents = Some(contents.clone()))),
        ("an unknown input", with(&|r| r.inputs[0].name = "X".into())),
        ("an unknown type", with(&|r| r.inputs[0].datatype = "X".into())),
        ("an unknown output", with(&|r| r.outputs[0].name = "X".into())),
        ("a tensor too few", with(&|r| r.raw_input_contents.truncate(1))),
        ("a tensor too many", with(&|r| r.raw_input_contents.push(Bytes::new()))),
        ("many inputs", with(&|r| r.inputs = vec![r.inputs[0].clone(); 100])),
        ("an unknown field", [with(&|_| ()), vec![0x42, 0]].concat()),
        ("a varint field", [with(&|_| ()), vec![0x08, 1]].concat()),
        ("a name that is not UTF-8", [vec![0x0a, 1, 0xff], with(&|_| ())].concat()),
    ] {
        let message = Bytes::from(message);
        let read = FastRequest::parse(&message).and_then(|p| p.into_unchecked(&served, &message));
        assert!(read.is_none(), "{what}");
    }
    // A truncated message may still be a valid, shorter one.
    let whole = good.encode_to_vec();
    for len in 0..whole.len() {
        let cut = Bytes::copy_from_slice(&whole[..len]);
        if FastRequest::parse(&cut).and_then(|p| p.into_unchecked(&served, &cut)).is_some() {
            let request = ModelInferRequest::decode(cut).unwrap();
            assert!(
                fallback::read_request(&served, request, RequestRegions::DISABLED).is_ok(),
                "truncated after {len} bytes"
            );
        }
    }
}
