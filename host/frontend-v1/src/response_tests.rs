//! Unit tests of `response.rs`.

use super::*;
use crate::{header_text, testing};
use trtserver_proto::text;

fn spec(model: &str, batch: u32, requested: &[(usize, u32)]) -> ResponseSpec {
    let served = testing::context("").models.find(model, None).unwrap();
    let outputs =
        requested.iter().map(|&(index, classes)| RequestedOutput::new(index, classes)).collect();
    ResponseSpec { served, batch, id: 0, outputs, per_item: false }
}

fn tensor(name: &str, dtype: DType, shape: &[i64], data: Vec<u8>) -> OutputTensor {
    OutputTensor { name: name.into(), dtype, shape: shape.into(), data: data.into() }
}

fn response(outputs: Vec<OutputTensor>) -> InferResponse {
    InferResponse { outputs: outputs.into(), ..Default::default() }
}

#[test]
fn raw_outputs_in_requested_order() {
    let one = tensor("OUTPUT1", DType::Int32, &[2, 16], vec![1; 128]);
    let zero = tensor("OUTPUT0", DType::Int32, &[2, 16], vec![0; 128]);
    let want = "model_name: \"simple\" model_version: 1 batch_size: 2 output { name: \"OUTPUT1\" raw { dims: \
                16 batch_byte_size: 128 } } output { name: \"OUTPUT0\" raw { dims: 16 batch_byte_size: 128 } }";
    for outputs in [vec![one.clone(), zero.clone()], vec![zero.clone(), one.clone()]] {
        let built =
            build_response(&spec("simple", 2, &[(1, 0), (0, 0)]), response(outputs)).unwrap();
        assert_eq!(header_text::format_response_header(&built.header).text(), want);
        assert_eq!((built.raw[0][0], built.raw[1][0]), (1, 0));
        assert_eq!(
            header_text::format_response_header(&per_item(built.header)).text(),
            "model_name: \"simple\" model_version: 1 batch_size: 2 output { name: \"OUTPUT1\" raw { \
             byte_size: 64 } } output { name: \"OUTPUT0\" raw { byte_size: 64 } }"
        );
    }
    let built = build_response(&spec("simple", 1, &[]), response(vec![])).unwrap();
    assert_eq!(
        header_text::format_response_header(&built.header).text(),
        "model_name: \"simple\" model_version: 1 batch_size: 1"
    );
    let built = build_response(&spec("simple", 2, &[(0, 0), (1, 0)]), response(vec![one])).unwrap();
    assert_eq!((built.header.output.len(), built.raw.len()), (1, 1));
}

#[test]
fn without_a_batch_dimension_dims_are_the_whole_shape() {
    let data = vec![0; 16];
    let out = response(vec![tensor("C", DType::Fp32, &[1, 4], data)]);
    let built = build_response(&spec("m", 1, &[(2, 0)]), out).unwrap();
    assert_eq!(
        header_text::format_response_header(&built.header).text(),
        "model_name: \"m\" model_version: 3 batch_size: 1 output { name: \"C\" raw { dims: 1 dims: 4 \
         batch_byte_size: 16 } }"
    );
}

#[test]
fn classes_with_labels() {
    let values: Vec<u8> =
        (0..32i32).flat_map(|i| if i < 16 { i } else { 100 - i }.to_le_bytes()).collect();
    let out = response(vec![tensor("OUTPUT1", DType::Int32, &[2, 16], values)]);
    let built = build_response(&spec("simple", 2, &[(1, 2)]), out).unwrap();
    assert_eq!(built.raw[..], [Bytes::new()]);
    assert_eq!(
        text::print_line(&built.header),
        "model_name: \"simple\" model_version: 1 batch_size: 2 output { name: \"OUTPUT1\" batch_classes { \
         cls { idx: 15 value: 15 } cls { idx: 14 value: 14 } } batch_classes { cls { value: 84 label: \
         \"zero\" } cls { idx: 1 value: 83 label: \"one\" } } }"
    );
    assert_eq!(
        header_text::format_response_header(&without_classes(built.header)).text(),
        "model_name: \"simple\" model_version: 1 batch_size: 2 output { name: \"OUTPUT1\" }"
    );
}

#[test]
fn unrankable_types_are_refused() {
    let out = response(vec![tensor("F", DType::Fp16, &[1], vec![0, 0])]);
    let error = build_response(&spec("m", 1, &[(0, 1)]), out).err().unwrap();
    assert_eq!(
        error.message,
        "class result not available for output 'F' due to unsupported type 'TYPE_FP16'"
    );
}
