//! Unit tests of `signature.rs`.

use super::*;

fn signature(dims: &[i64], model_dims: &[i64], max_batch_size: u32) -> ModelSignature {
    let spec =
        TensorSpec { model_dims: model_dims.to_vec(), ..TensorSpec::new("T", DType::Fp32, dims) };
    ModelSignature {
        model: "m".into(),
        max_batch_size,
        inputs: vec![spec.clone()],
        outputs: vec![spec],
        ..Default::default()
    }
}

#[test]
fn shapes_convert_to_model_and_back() {
    for (dims, model_dims, batch, caller, model) in [
        (&[16][..], &[4, 4][..], 8, &[2, 16][..], &[2, 4, 4][..]),
        (&[-1, 4, -1], &[4, -1, -1], 0, &[3, 4, 5], &[4, 3, 5]),
        (&[1], &[], 8, &[2, 1], &[2]),
        (&[-1], &[-1], 8, &[2, 7], &[2, 7]),
    ] {
        let s = signature(dims, model_dims, batch);
        assert_eq!(s.to_model(&s.inputs[0], caller).as_slice(), model);
        assert_eq!(s.to_caller(&s.outputs[0], model).unwrap().as_slice(), caller);
    }
}

#[test]
fn wrong_output_shape_error_shows_both_shapes() {
    let s = signature(&[16], &[16], 8);
    let e = s.to_caller(&s.outputs[0], &[2, 15]).unwrap_err();
    assert_eq!(
        e.message,
        "output 'T' for model 'm' has shape [2,15] but model configuration specifies shape [-1,16]"
    );
    assert!(s.to_caller(&s.outputs[0], &[]).is_err());
}
