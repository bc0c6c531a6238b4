//! Which heads are repeated, and that requests with them are what they are without.

use super::*;
use crate::RequestRegions;
use crate::http::infer_request::read_infer_request;
use trtserver_base::error::Result;
use trtserver_request::{DType, TensorSpec};

fn signature(dtype: DType) -> Arc<ModelSignature> {
    let spec = |name: &str| TensorSpec::new(name, dtype, &[-1]);
    Arc::new(ModelSignature {
        model: "m".into(),
        inputs: vec![spec("A"), spec("B")],
        outputs: vec![spec("O"), spec("P")],
        ..Default::default()
    })
}

fn read(
    signature: &Arc<ModelSignature>,
    json: &str,
    tail: &[u8],
) -> Result<(UncheckedRequest, ResponseSpec)> {
    let body = Bytes::from([json.as_bytes(), tail].concat());
    read_infer_request(signature, &body, json.len(), 10_000, RequestRegions::DISABLED)
}

fn is_repeated(signature: &Arc<ModelSignature>, json: &str, tail: &[u8]) -> bool {
    let body = Bytes::from([json.as_bytes(), tail].concat());
    find_repeated(signature, &body, json.len()).is_some()
}

const HEAD: &str = r#"{"inputs":[
    {"name":"B","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":2}},
    {"name":"A","datatype":"INT8","shape":[1],"parameters":{"binary_data_size":1}}],
    "outputs":[{"name":"P","parameters":{"binary_data":true}},
               {"name":"O","parameters":{"classification":3}}],
    "parameters":{"binary_data_output":true}}"#;

#[test]
fn requests_with_the_same_head_differ_in_data_alone() {
    let signature = signature(DType::Int8);
    for data in [[1u8, 2, 3], [4, 5, 6]] {
        let (request, spec) = read(&signature, HEAD, &data).unwrap();
        let inputs: Vec<_> = request
            .inputs
            .iter()
            .map(|i| (i.index, i.dtype, i.shape.to_vec(), i.data.cpu().unwrap().to_vec()))
            .collect();
        let [b, a] = [vec![data[0], data[1]], vec![data[2]]];
        assert_eq!(inputs, [(1, DType::Int8, vec![2], b), (0, DType::Int8, vec![1], a)]);
        let outputs: Vec<_> = request.outputs.iter().map(|o| (o.index(), o.classes)).collect();
        assert_eq!(outputs, [(1, 0), (0, 3)]);
        assert!(request.id.is_empty() && request.parameters.binary_output && spec.binary);
        assert!(spec.outputs[0].binary && spec.outputs[1].classes == 3, "{spec:?}");
        assert!(is_repeated(&signature, HEAD, &data));
    }
}

#[test]
fn head_is_read_again_for_other_models_and_lengths() {
    let (first, second) = (signature(DType::Int8), signature(DType::Int8));
    read(&first, HEAD, &[1, 2, 3]).unwrap();
    assert!(!is_repeated(&second, HEAD, &[1, 2, 3]));
    for tail in [&[1, 2][..], &[1, 2, 3, 4]] {
        assert!(!is_repeated(&first, HEAD, tail));
        let first_time = read(&second, HEAD, tail).err().unwrap();
        let repeated = read(&first, HEAD, tail).err().unwrap();
        assert_eq!(repeated.message, first_time.message);
    }
    // A model that is loaded again has another signature, whatever its address.
    for _ in 0..100 {
        assert!(!is_repeated(&signature(DType::Int8), HEAD, &[1, 2, 3]));
    }
}

#[test]
fn heads_that_differ_or_hold_data_are_not_repeated() {
    let signature = signature(DType::Int8);
    let input = r#""inputs":[{"name":"A","datatype":"INT8","shape":[1],"#;
    let binary = format!(r#"{input}"parameters":{{"binary_data_size":1}}}}]"#);
    let empty = r#"{"name":"B","datatype":"INT8","shape":[0],"data":[]}"#;
    for (json, tail) in [
        (format!(r#"{{"id":"1",{binary}}}"#), &[1][..]),
        (format!(r#"{{"parameters":{{"sequence_id":1}},{binary}}}"#), &[1]),
        (format!(r#"{{"parameters":{{"mine":1}},{binary}}}"#), &[1]),
        (format!(r#"{{{input}"data":[1]}}]}}"#), &[]),
        (format!(r#"{{{}, {empty}]}}"#, binary.trim_end_matches(']')), &[1]),
    ] {
        read(&signature, &json, tail).unwrap();
        assert!(!is_repeated(&signature, &json, tail), "{json}");
    }
    let json = format!("{{{binary}}}");
    read(&signature, &json, &[1]).unwrap();
    assert!(is_repeated(&signature, &json, &[1]));
}
