//! Reductions over dimensions.

use super::Outputs;
use crate::onnx::Attribute;
use crate::translate::graph::{GraphBuilder, GraphValue};
use crate::translate::operator::Operator;

/// Over the dimensions that `axes` names, all without it.
pub fn translate_reduce(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let operator = match op.kind() {
        "ReduceL1" => "ReduceL1",
        "ReduceL2" => "ReduceL2",
        "ReduceMax" => "ReduceMax",
        "ReduceMean" => "ReduceMean",
        "ReduceMin" => "ReduceMin",
        _ => "ReduceSum",
    };
    let keep = op.flag("keepdims", true)?;
    let axes = op.ints("axes").map(<[i64]>::to_vec);
    Ok(vec![reduce_axes(graph, operator, op.input(0)?, axes.as_deref(), keep)])
}

/// Over the first or the last dimensions, one by default.
pub fn reduce_end(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    if op.inputs.len() > 1 {
        return Err("lengths as a second input are not supported".to_owned());
    }
    let operator = match op.kind() {
        kind if kind.ends_with("Max") => "ReduceMax",
        kind if kind.ends_with("Mean") => "ReduceMean",
        _ => "ReduceSum",
    };
    let n = op.int_or("num_reduce_dim", 1)?;
    if !(0..=64).contains(&n) {
        return Err(format!("its argument 'num_reduce_dim' = {n} is not supported"));
    }
    let axes: Vec<i64> = match op.kind().starts_with("ReduceFront") {
        true => (0..n).collect(),
        false => (-n..0).collect(),
    };
    if axes.is_empty() {
        return Ok(vec![op.input(0)?]);
    }
    Ok(vec![reduce_axes(graph, operator, op.input(0)?, Some(&axes), false)])
}

fn reduce_axes(
    graph: &mut GraphBuilder,
    operator: &'static str,
    x: GraphValue,
    axes: Option<&[i64]>,
    keep: bool,
) -> GraphValue {
    let dims = graph.dims(x).map(|dims| {
        let rank = dims.len() as i64;
        let is_reduced = |at: usize| {
            let at = at as i64;
            axes.is_none_or(|axes| axes.contains(&at) || axes.contains(&(at - rank)))
        };
        let rest = dims.iter().enumerate().filter_map(|(at, &dim)| match is_reduced(at) {
            true => keep.then_some(1),
            false => Some(dim),
        });
        rest.collect()
    });
    let mut attributes = vec![Attribute::int("keepdims", keep.into())];
    attributes.extend(axes.map(|axes| Attribute::ints("axes", axes)));
    let output = graph.node(operator, &[x], attributes);
    graph.shaped(output, dims)
}

/// SumElements and SumSqrElements: a number, optionally the average.
pub fn sum_elements(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    let terms = if op.kind() == "SumElements" { x } else { graph.same("Mul", &[x, x], vec![]) };
    let operator = if op.flag("average", false)? { "ReduceMean" } else { "ReduceSum" };
    Ok(vec![reduce_axes(graph, operator, terms, None, false)])
}
