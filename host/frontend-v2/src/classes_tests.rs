//! Unit tests of `classes.rs`.

use super::*;
use trtserver_request::TensorSpec;
use trtserver_request::class_labels::ClassLabels;

#[test]
fn classes_are_strings_with_the_batch_shape() {
    let spec = TensorSpec {
        labels: ClassLabels::from_lines("zero\n\n".to_owned()).map(Into::into),
        ..TensorSpec::new("O", DType::Fp32, &[3])
    };
    let signature = |max_batch_size| ModelSignature {
        model: "m".into(),
        max_batch_size,
        inputs: vec![],
        outputs: vec![spec.clone()],
        ..Default::default()
    };
    let floats: Vec<u8> =
        [0.25f32, 1.5, -1.0, 3.0, 2.0, 1.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let output = |dtype, shape: &[i64], data: &[u8]| OutputTensor {
        name: "O".into(),
        dtype,
        shape: shape.into(),
        data: data.to_vec().into(),
    };
    let table = [
        (
            output(DType::Fp32, &[2, 3], &floats),
            8,
            2,
            vec![2, 2],
            vec!["1.500000:1", "0.250000:0:zero", "3.000000:0:zero", "2.000000:1"],
        ),
        (output(DType::Int8, &[2], &[255, 0]), 0, 9, vec![2], vec!["0:1", "-1:0:zero"]),
    ];
    for (output, max_batch, k, shape, want) in table {
        let got = classify_output(&signature(max_batch), &output, k).unwrap();
        assert_eq!((got.dtype, got.shape.to_vec()), (DType::String, shape));
        let texts: Vec<_> = strings::string_elements(got.data.payload())
            .map(|s| String::from_utf8_lossy(s))
            .collect();
        assert_eq!(texts, want);
    }
    let refused = classify_output(&signature(0), &output(DType::Bool, &[1], &[1]), 1).unwrap_err();
    assert_eq!(
        refused.message,
        "class result not available for output due to unsupported type 'BOOL'"
    );
}
