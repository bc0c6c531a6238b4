//! Unit tests of `classes.rs`.

use super::*;

fn output(dtype: DType, data: Vec<u8>) -> OutputTensor {
    OutputTensor { name: "O".into(), dtype, shape: Default::default(), data: data.into() }
}

#[test]
fn order_is_descending_then_by_index_nan_last() {
    let data: Vec<u8> =
        [1f32, f32::NAN, 3., 3., -1., 2.].iter().flat_map(|v| v.to_le_bytes()).collect();
    let top2 = find_top_classes(&output(DType::Fp32, data.clone()), 2, 2).unwrap();
    let indices: Vec<Vec<usize>> =
        top2.iter().map(|i| i.iter().map(|c| c.index).collect()).collect();
    assert_eq!(indices, [vec![2, 0], vec![0, 2]]);
    let all = find_top_classes(&output(DType::Fp32, data), 1, 99).unwrap();
    assert_eq!(all[0].iter().map(|c| c.index).collect::<Vec<_>>(), [2, 3, 5, 0, 4, 1]);
}

#[test]
fn integers_keep_their_exact_value() {
    let data: Vec<u8> = [u64::MAX, u64::MAX - 1].iter().flat_map(|v| v.to_le_bytes()).collect();
    let got = find_top_classes(&output(DType::Uint64, data), 1, 1).unwrap();
    assert_eq!(got[0][0].integer, Some(u64::MAX as i128));
    assert!(find_top_classes(&output(DType::Bool, vec![1]), 1, 1).is_none());
    assert_eq!(find_top_classes(&output(DType::Int8, vec![5, 6]), 1, 0).unwrap(), [vec![]]);
}
