//! Unit tests of `input.rs`.

use super::*;

fn tensor(contents: Option<InferTensorContents>) -> InferInputTensor {
    InferInputTensor { name: "I".into(), contents, ..Default::default() }
}

fn take(contents: InferTensorContents, dtype: DType) -> Result<Vec<u8>, std::string::String> {
    let got =
        InputContents::new("m", vec![], LedgerOwner::SERVER).take(&tensor(Some(contents)), dtype);
    got.map(|b| b.to_vec()).map_err(|e| e.message)
}

#[test]
fn typed_contents_become_tensor_bytes() {
    let c = InferTensorContents::default;
    let wrong = |text: &str| {
        Err(format!("unexpected explicit tensor data for input tensor 'I' for model 'm'{text}"))
    };
    let ints = InferTensorContents { int_contents: vec![-1, 258], ..c() };
    let uints = InferTensorContents { uint_contents: vec![258], ..c() };
    let both = InferTensorContents { uint64_contents: vec![1], ..ints.clone() };
    let text = InferTensorContents { bytes_contents: vec!["ab".into()], ..c() };
    let bools = InferTensorContents { bool_contents: vec![true, false], ..c() };
    for (contents, dtype, want) in [
        (ints.clone(), DType::Int8, Ok(vec![255, 2])),
        (ints.clone(), DType::Int16, Ok(vec![255, 255, 2, 1])),
        (ints.clone(), DType::Int32, Ok(vec![255, 255, 255, 255, 2, 1, 0, 0])),
        (uints, DType::Uint16, Ok(vec![2, 1])),
        (text, DType::String, Ok(vec![2, 0, 0, 0, b'a', b'b'])),
        (bools, DType::Bool, Ok(vec![1, 0])),
        (c(), DType::Fp16, Ok(vec![])),
        (ints, DType::Fp32, wrong(" of type 'INT32', expected datatype 'FP32'")),
        (both, DType::Int32, wrong(", binary data was already supplied.")),
    ] {
        assert_eq!(take(contents, dtype), want, "{dtype:?}");
    }
}

#[test]
fn raw_entries_are_taken_in_order() {
    let mut source = InputContents::new("m", vec!["a".into(), "b".into()], LedgerOwner::SERVER);
    assert_eq!(source.take(&tensor(None), DType::Int8).unwrap(), "a");
    let contents = InferTensorContents { int_contents: vec![1], ..Default::default() };
    let mixed = source.take(&tensor(Some(contents)), DType::Int8).unwrap_err();
    assert!(mixed.message.starts_with("contents field must not be specified"));
    // A message without elements counts as none.
    assert_eq!(source.take(&tensor(Some(Default::default())), DType::Int8).unwrap(), "b");
    let short = source.take(&tensor(None), DType::Int8).unwrap_err();
    assert_eq!(short.message, "unable to find data for input tensor 'I' for model 'm' in request.");
}
