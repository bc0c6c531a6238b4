//! Unit tests of `batch_inputs.rs`: the parts of each kind.

use super::*;

/// Shape and values of the whole tensor for requests of these shapes.
fn whole(kind: BatchInputKind, shapes: &[&[i64]]) -> (Vec<Vec<i64>>, Vec<i64>) {
    let shapes: Vec<Shape> = shapes.iter().map(|shape| (*shape).into()).collect();
    let parts = batch_input_parts(kind, true, &shapes);
    let values = parts.iter().flat_map(|(_, values)| values.clone()).collect();
    (parts.into_iter().map(|(shape, _)| shape.to_vec()).collect(), values)
}

/// The requests of Triton's `L0_batch_input`.
#[test]
fn counts_are_those_of_each_request() {
    use BatchInputKind::{
        AccumulatedElementCount, AccumulatedElementCountWithZero, ElementCount,
        MaxElementCountAsShape,
    };
    let shapes: &[&[i64]] = &[&[1, 2], &[1, 4], &[1, 1], &[1, 3]];
    let ones = vec![vec![1]; 4];
    assert_eq!(whole(ElementCount, shapes), (ones.clone(), vec![2, 4, 1, 3]));
    assert_eq!(whole(AccumulatedElementCount, shapes), (ones, vec![2, 6, 7, 10]));
    let (parts, values) = whole(AccumulatedElementCountWithZero, shapes);
    assert_eq!((parts[0].clone(), parts.len(), values), (vec![2], 4, vec![0, 2, 6, 7, 10]));
    let (parts, values) = whole(MaxElementCountAsShape, shapes);
    assert_eq!((parts, values), (vec![vec![4], vec![0], vec![0], vec![0]], vec![0; 4]));
    // A request of two rows is one count.
    assert_eq!(whole(ElementCount, &[&[2, 3], &[1, 0]]).1, [6, 0]);
}

#[test]
fn shapes_are_those_of_each_row() {
    let shapes: &[&[i64]] = &[&[2, 1, 2], &[1, 1, 2], &[1, 2, 2]];
    let values = vec![1, 2, 1, 2, 1, 2, 2, 2];
    let (parts, items) = whole(BatchInputKind::ItemShape, shapes);
    assert_eq!((parts, &items), (vec![vec![2, 2], vec![1, 2], vec![1, 2]], &values));
    let (parts, flat) = whole(BatchInputKind::ItemShapeFlatten, shapes);
    assert_eq!((parts, &flat), (vec![vec![4], vec![2], vec![2]], &values));
}
