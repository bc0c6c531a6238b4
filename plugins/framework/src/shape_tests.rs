//! Unit tests of `shape.rs`.

use super::*;

fn slot(dims: &[i64], reshape: Option<(&[i64], &[i64])>) -> TensorSlot<()> {
    TensorSlot {
        name: "t".into(),
        dtype: dtype::FP32,
        dims: dims.to_vec(),
        unranked: dims.is_empty(),
        scalar: false,
        reshape: reshape.map(|(a, b)| (a.to_vec(), b.to_vec())),
        optional: false,
        flat: false,
        passed: false,
        configured: None,
        handle: (),
    }
}

fn model_shape(slot: &TensorSlot<()>, batching: bool, given: &[i64]) -> Option<Vec<i64>> {
    for_model(slot, batching, given, &mut [0; MAX_RANK]).map(<[i64]>::to_vec)
}

#[test]
fn an_input_must_fit_the_model() {
    let fixed = slot(&[-1, 16], None);
    assert_eq!(model_shape(&fixed, true, &[3, 16]), Some(vec![3, 16]));
    assert_eq!(model_shape(&fixed, true, &[0, 16]), Some(vec![0, 16]));
    for wrong in [&[3, 15][..], &[3], &[3, 16, 1], &[-1, 16], &[]] {
        assert_eq!(model_shape(&fixed, true, wrong), None, "{wrong:?}");
    }
    assert_eq!(model_shape(&slot(&[], None), false, &[2, 2]), Some(vec![2, 2]));
    assert_eq!(model_shape(&slot(&[], None), false, &[1; MAX_RANK + 1]), None);
}

#[test]
fn reshape_is_applied_once() {
    let flat = slot(&[-1, 16], Some((&[4, 4], &[16])));
    assert_eq!(model_shape(&flat, true, &[3, 4, 4]), Some(vec![3, 16]));
    assert_eq!(model_shape(&flat, true, &[3, 16]), Some(vec![3, 16]));
    assert_eq!(model_shape(&flat, true, &[3, 4, 3]), None);
    let variable = slot(&[-1, -1, 4], Some((&[2, -1, 2], &[-1, 4])));
    assert_eq!(model_shape(&variable, true, &[1, 2, 7, 2]), Some(vec![1, 7, 4]));
    let empty = slot(&[-1], Some((&[1], &[])));
    assert_eq!(model_shape(&empty, true, &[5, 1]), Some(vec![5]));
    assert_eq!(model_shape(&empty, true, &[5]), Some(vec![5]));
}

#[test]
fn scalars_are_one_element_for_clients() {
    let mut scalar = slot(&[], None);
    scalar.scalar = true;
    assert_eq!(model_shape(&scalar, false, &[1]), Some(vec![]));
}

#[test]
fn outputs_known_before_the_run() {
    let known = |dims: &[i64], rows| {
        before_run(&slot(dims, None), rows, &mut [0; MAX_RANK])
            .map(|(shape, bytes)| (shape.to_vec(), bytes))
    };
    assert_eq!(known(&[-1, 16], Some(3)), Some((vec![3, 16], 192)));
    assert_eq!(known(&[2, 0], None), Some((vec![2, 0], 0)));
    assert_eq!(known(&[-1, -1], Some(3)), None);
    assert_eq!(known(&[-1], None), None);
    assert_eq!(known(&[], None), None);
    let mut text = slot(&[2], None);
    text.dtype = dtype::STRING;
    assert_eq!(before_run(&text, None, &mut [0; MAX_RANK]), None);
}
