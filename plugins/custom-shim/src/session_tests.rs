//! Unit tests of `session.rs`.

use super::*;

fn output(dims: &[i64]) -> DeclaredOutput {
    DeclaredOutput { dtype: Dtype::Int32, dims: dims.to_vec(), batched: true }
}

#[test]
fn generation_a_output_shape_is_inferred_from_size() {
    let mut shape = Vec::new();
    for (dims, bytes, want) in [
        (&[4][..], 99, &[2, 4][..]),
        (&[-1], 32, &[2, 4]),
        (&[3, -1], 48, &[2, 3, 2]),
        (&[-1], 0, &[2, 0]),
    ] {
        output(dims).infer(2, bytes, &mut shape).unwrap();
        assert_eq!(shape, want);
    }
    for (dims, bytes) in [(&[-1, -1][..], 32), (&[-1], 33), (&[0, -1], 8)] {
        let text = output(dims).infer(2, bytes, &mut shape).unwrap_err();
        assert!(text.contains("generation A cannot specify a shape"), "{text}");
    }
}

#[test]
fn first_hint_sets_length_of_zero_input() {
    let mut block = ZeroBlock::default();
    let mut zeros = Zeros::default();
    assert_eq!(zeros.next(0, 100, &mut block), END);
    let (p, n) = zeros.next(8, 100, &mut block);
    assert!(!p.is_null() && n == 8);
    assert_eq!(zeros.next(8, 100, &mut block), END);
    // A huge hint is limited to the maximum.
    let mut zeros = Zeros::default();
    let max = ZeroBlock::BYTES + 5;
    let sizes: Vec<u64> = std::iter::from_fn(|| Some(zeros.next(u64::MAX, max, &mut block).1))
        .take_while(|n| *n > 0)
        .collect();
    assert_eq!(sizes, [ZeroBlock::BYTES, 5]);
}
