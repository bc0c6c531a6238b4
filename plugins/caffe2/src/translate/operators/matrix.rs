//! Products of matrices.

use super::Outputs;
use crate::onnx::Attribute;
use crate::translate::graph::{GraphBuilder, GraphValue};
use crate::translate::operator::{Operator, resolve_axis};

/// FC and FCTransposed. Input and weights are matrices: the dimensions before the axis, and those
/// from it on.
pub fn fully_connected(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (x, weights, bias) = (op.input(0)?, op.input(1)?, op.input(2)?);
    let axis = resolve_axis(op.int_or("axis", 1)?, graph.rank(x))?;
    let weight_axis = resolve_axis(op.int_or("axis_w", 1)?, graph.rank(weights))?;
    let weights = to_matrix(graph, weights, weight_axis);
    let transposed = op.kind() == "FC";
    let columns = graph.dim(weights, usize::from(!transposed));
    let depth = graph.dim(weights, usize::from(transposed));
    if axis == 1 {
        let x = to_matrix(graph, x, 1);
        agree(graph.dim(x, 1), depth)?;
        let rows = graph.dim(x, 0);
        let attributes = vec![Attribute::int("transB", transposed.into())];
        let output = graph.node("Gemm", &[x, weights, bias], attributes);
        return Ok(vec![graph.shaped(output, Some(vec![rows, columns]))]);
    }
    // The dimensions before the axis stay; zeros copy them.
    let mut shape = vec![0; axis];
    shape.push(-1);
    let x = if graph.rank(x) == Some(axis + 1) { x } else { graph.reshape(x, &shape) };
    agree(graph.dim(x, axis), depth)?;
    let weights = if transposed { graph.transpose(weights, &[1, 0]) } else { weights };
    let mut dims: Vec<i64> = (0..axis).map(|at| graph.dim(x, at)).collect();
    dims.push(columns);
    let product = graph.node("MatMul", &[x, weights], vec![]);
    let product = graph.shaped(product, Some(dims));
    Ok(vec![graph.same("Add", &[product, bias], vec![])])
}

/// Refuses rows and weights of different length, which ONNX Runtime finds in a run only.
fn agree(row: i64, weights: i64) -> Result<(), String> {
    if row < 0 || weights < 0 || row == weights {
        return Ok(());
    }
    Err(format!("its input has {row} elements in a row, its weights are for {weights}"))
}

/// A value as a matrix: dimensions before the axis, and dimensions from it on.
fn to_matrix(graph: &mut GraphBuilder, value: GraphValue, axis: usize) -> GraphValue {
    if graph.rank(value) == Some(2) && axis == 1 {
        return value;
    }
    let product = |dims: &[i64]| match dims.contains(&-1) {
        true => -1,
        false => dims.iter().fold(1i64, |product, &dim| product.saturating_mul(dim)),
    };
    let dims = graph.dims(value).filter(|dims| axis <= dims.len());
    let dims = dims.map(|dims| vec![product(&dims[..axis]), product(&dims[axis..])]);
    let axis = Attribute::int("axis", axis as i64);
    let output = graph.node("Flatten", &[value], vec![axis]);
    graph.shaped(output, dims.or(Some(vec![-1, -1])))
}

pub fn mat_mul(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (a, b) = (op.input(0)?, op.input(1)?);
    let axes = [op.int_or("axis_a", 1)?, op.int_or("axis_b", 1)?];
    let a = to_matrix(graph, a, resolve_axis(axes[0], graph.rank(a))?);
    let b = to_matrix(graph, b, resolve_axis(axes[1], graph.rank(b))?);
    let a = if op.flag("trans_a", false)? { graph.transpose(a, &[1, 0]) } else { a };
    let b = if op.flag("trans_b", false)? { graph.transpose(b, &[1, 0]) } else { b };
    let dims = vec![graph.dim(a, 0), graph.dim(b, 1)];
    let output = graph.node("MatMul", &[a, b], vec![]);
    Ok(vec![graph.shaped(output, Some(dims))])
}

/// Products of the last two dimensions. With `broadcast` the dimensions before them follow numpy's
/// rule.
pub fn batch_mat_mul(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (mut a, mut b) = (op.input(0)?, op.input(1)?);
    if op.flag("trans_a", false)? {
        a = last_two_swapped(graph, a, op.rank(graph, 0)?);
    }
    if op.flag("trans_b", false)? {
        b = last_two_swapped(graph, b, op.rank(graph, 1)?);
    }
    let dims = graph.dims(a).zip(graph.dims(b)).filter(|(a, b)| a.len() > 1 && b.len() > 1);
    let dims = dims.map(|(a, b)| {
        let rank = a.len().max(b.len());
        let mut dims = vec![-1; rank];
        dims[rank - 2] = a[a.len() - 2];
        dims[rank - 1] = b[b.len() - 1];
        dims
    });
    let output = graph.node("MatMul", &[a, b], vec![]);
    Ok(vec![graph.shaped(output, dims)])
}

/// A vector stays one.
fn last_two_swapped(graph: &mut GraphBuilder, value: GraphValue, rank: usize) -> GraphValue {
    if rank < 2 {
        return value;
    }
    let mut permutation: Vec<i64> = (0..rank as i64).collect();
    permutation.swap(rank - 1, rank - 2);
    graph.transpose(value, &permutation)
}
