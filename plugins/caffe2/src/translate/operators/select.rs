//! Operators that pick elements: by position, by index, by size.

use super::Outputs;
use crate::onnx::Attribute;
use crate::translate::graph::GraphBuilder;
use crate::translate::operator::{Operator, resolve_axis};

/// Starts and ends by argument or by input. A negative one counts from one behind the last element,
/// so -1 is the end.
pub fn translate_slice(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    let [starts, ends] = [("starts", 1), ("ends", 2)].map(|(name, at)| match op.ints(name) {
        Some(list) => Ok(list.to_vec()),
        None => op.constant_ints(graph, at),
    });
    let (starts, ends) = (starts?, ends?);
    if starts.len() != ends.len() {
        return Err(format!("it has {} starts and {} ends", starts.len(), ends.len()));
    }
    // ONNX counts from the last element, and cuts what lies behind it.
    let position = |&at: &i64| match at {
        -1 => i64::from(i32::MAX),
        ..0 => at + 1,
        _ => at,
    };
    let starts: Vec<i64> = starts.iter().map(position).collect();
    let ends: Vec<i64> = ends.iter().map(position).collect();
    let dims = graph.dims(x).map(<[i64]>::to_vec).map(|mut dims| {
        for (at, dim) in dims.iter_mut().enumerate().take(starts.len()) {
            if (starts[at], ends[at]) != (0, i64::from(i32::MAX)) {
                *dim = if *dim < 0 { -1 } else { length(*dim, starts[at], ends[at]) };
            }
        }
        dims
    });
    let inputs = [x, graph.integers(&starts), graph.integers(&ends)];
    let output = graph.node("Slice", &inputs, vec![]);
    Ok(vec![graph.shaped(output, dims)])
}

fn length(dim: i64, start: i64, end: i64) -> i64 {
    let within = |at: i64| (if at < 0 { at + dim } else { at }).clamp(0, dim);
    (within(end) - within(start)).max(0)
}

/// Gather, and BatchGather along the second dimension.
pub fn translate_gather(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    op.only("match_outer", 0)?;
    let (data, indices) = (op.input(0)?, op.input(1)?);
    let default = if op.kind() == "BatchGather" { 1 } else { 0 };
    let axis = resolve_axis(op.int_or("axis", default)?, graph.rank(data))?;
    let dims = graph.dims(data).zip(graph.dims(indices)).filter(|(data, _)| axis < data.len());
    let dims = dims.map(|(data, indices)| [&data[..axis], indices, &data[axis + 1..]].concat());
    let axis = Attribute::int("axis", axis as i64);
    let output = graph.node("Gather", &[data, indices], vec![axis]);
    Ok(vec![graph.shaped(output, dims)])
}

/// Values and their positions. The third output, positions in the flattened tensor, is not
/// computed.
pub fn top_k(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    let k = match op.int("k")? {
        Some(k) => k,
        None => op.constant_ints(graph, 1)?.first().copied().unwrap_or(0),
    };
    let axis = op.int_or("axis", -1)?;
    let dims = graph.dims(x).map(<[i64]>::to_vec).map(|mut dims| {
        let at = if axis < 0 { axis + dims.len() as i64 } else { axis };
        if let Some(dim) = usize::try_from(at).ok().and_then(|at| dims.get_mut(at)) {
            *dim = k;
        }
        dims
    });
    let k = graph.integers(&[k]);
    let outputs = graph.nodes("TopK", &[x, k], vec![Attribute::int("axis", axis)], 2);
    Ok(outputs.into_iter().map(|output| graph.shaped(output, dims.clone())).collect())
}

pub fn arg_extreme(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    let operator = if op.kind() == "ArgMax" { "ArgMax" } else { "ArgMin" };
    let (axis, keep) = (op.int_or("axis", -1)?, op.flag("keepdims", true)?);
    let dims = graph.dims(x).map(<[i64]>::to_vec).map(|mut dims| {
        let at = if axis < 0 { axis + dims.len() as i64 } else { axis };
        match usize::try_from(at).ok().filter(|&at| at < dims.len()) {
            Some(at) if keep => dims[at] = 1,
            Some(at) => {
                dims.remove(at);
            }
            None => {}
        }
        dims
    });
    let attributes = vec![Attribute::int("axis", axis), Attribute::int("keepdims", keep.into())];
    let output = graph.node(operator, &[x], attributes);
    Ok(vec![graph.shaped(output, dims)])
}
