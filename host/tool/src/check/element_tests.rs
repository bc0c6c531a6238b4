//! Unit tests of `element.rs`.

use super::*;

fn response(dtype: DType, shape: &[i64], data: Vec<u8>) -> Response {
    let output = Output {
        name: "OUT".to_owned(),
        dtype: dtype.number(),
        shape: shape.to_vec(),
        data,
        adopted: false,
    };
    Response { outputs: vec![output], params: Vec::new() }
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn difference_names_output_position_and_values() {
    let found = |dtype, shape: &[i64], expected: Vec<u8>, found: Vec<u8>| {
        first_difference(&response(dtype, shape, expected), &response(dtype, shape, found))
    };
    let fp32 = |expected: &[f32], values: &[f32]| {
        found(DType::Fp32, &[2, 2], floats(expected), floats(values))
    };
    assert_eq!(fp32(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0005, 4.0]), None);
    assert_eq!(
        fp32(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.5, 5.0]).as_deref(),
        Some("output 'OUT' is 3.5 at [1, 0], expected 3")
    );
    assert_eq!(
        found(
            DType::String,
            &[2],
            b"\x01\0\0\0a\x01\0\0\0b".into(),
            b"\x01\0\0\0a\x02\0\0\0bc".into()
        )
        .as_deref(),
        Some("output 'OUT' is \"bc\" at [1], expected \"b\"")
    );
    assert_eq!(
        found(DType::Int8, &[1], vec![0xff], vec![1]).as_deref(),
        Some("output 'OUT' is 1 at [0], expected -1")
    );
    // 1.0, and its neighbour in half precision, which rounding explains; 2.0, which it does not.
    assert_eq!(found(DType::Fp16, &[1], vec![0, 0x3C], vec![1, 0x3C]), None);
    assert_eq!(
        found(DType::Fp16, &[1], vec![0, 0x3C], vec![0, 0x40]).as_deref(),
        Some("output 'OUT' is 2 at [0], expected 1")
    );
    let (one, two) =
        (response(DType::Bool, &[1], vec![1]), response(DType::Bool, &[2], vec![1, 1]));
    assert_eq!(
        first_difference(&one, &two).as_deref(),
        Some("output 'OUT' has shape [2], expected [1]")
    );
    assert_eq!(
        first_difference(&one, &Response::default()).as_deref(),
        Some("output 'OUT' is missing")
    );
}

#[test]
fn rows_of_inputs_differ() {
    for dtype in [DType::Fp32, DType::Fp16, DType::Bf16, DType::Int64, DType::String, DType::Bool] {
        let row = |row| (0..24).flat_map(|at| element_value(dtype, 0, row, at)).collect::<Vec<_>>();
        let rows: std::collections::HashSet<_> = (0..16).map(row).collect();
        assert_eq!(rows.len(), 16, "{dtype:?}");
    }
}
