//! Operators that change shapes, join and cut tensors, or return shapes.

use super::Outputs;
use crate::onnx::Attribute;
use crate::translate::graph::{GraphBuilder, GraphValue};
use crate::translate::operator::{ImageOrder, Operator, resolve_axis};
use crate::translate::tensor::element;

/// Axis of Concat and Split: by number, or that of the channels.
fn concat_axis(graph: &GraphBuilder, op: &Operator<'_>, added: usize) -> Result<usize, String> {
    let rank = graph.rank(op.input(0)?);
    match op.int("axis")? {
        Some(axis) => resolve_axis(axis, rank.map(|rank| rank + added)),
        None => Ok(match (op.order()?, rank) {
            (ImageOrder::ChannelsFirst, _) => 1,
            (ImageOrder::ChannelsLast, Some(rank)) => ImageOrder::ChannelsLast.channel_axis(rank),
            (ImageOrder::ChannelsLast, None) => 3,
        }),
    }
}

/// The second output, sizes of the inputs, is not computed.
pub fn translate_concat(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let added = op.flag("add_axis", false)?;
    let axis = concat_axis(graph, op, added.into())?;
    let mut inputs = op.inputs.clone();
    if inputs.is_empty() {
        op.input(0)?;
    }
    if added {
        for input in &mut inputs {
            *input = graph.unsqueeze(*input, &[axis as i64]);
        }
    }
    let sum = inputs.iter().try_fold(0i64, |sum, &input| match graph.dim(input, axis) {
        -1 => None,
        size => sum.checked_add(size),
    });
    let dims = graph.dims(inputs[0]).map(<[i64]>::to_vec).map(|mut dims| {
        if let Some(dim) = dims.get_mut(axis) {
            *dim = sum.unwrap_or(-1);
        }
        dims
    });
    let output = graph.node("Concat", &inputs, vec![Attribute::int("axis", axis as i64)]);
    Ok(vec![graph.shaped(output, dims)])
}

/// Into equal parts, or into sizes given by an argument or the second input.
pub fn translate_split(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    let axis = concat_axis(graph, op, 0)?;
    let n = op.n_outputs();
    let sizes = match op.ints("split") {
        Some(sizes) => Some(sizes.to_vec()),
        None if op.inputs.len() > 1 => Some(op.constant_ints(graph, 1)?),
        None => None,
    };
    let mut attributes = vec![Attribute::int("axis", axis as i64)];
    if let Some(sizes) = &sizes {
        if sizes.len() != n {
            return Err(format!("it has {n} outputs, and sizes of {}", sizes.len()));
        }
        attributes.push(Attribute::ints("split", sizes));
    }
    let whole = graph.dims(x).map(<[i64]>::to_vec);
    let outputs = graph.nodes("Split", &[x], attributes, n);
    let removed = op.flag("add_axis", false)?;
    let finish = |(nth, &output): (usize, &GraphValue)| {
        let dims = whole.clone().map(|mut dims| {
            if let Some(dim) = dims.get_mut(axis) {
                *dim = match &sizes {
                    Some(sizes) => sizes[nth],
                    None if *dim < 0 => -1,
                    None => *dim / n.max(1) as i64,
                };
            }
            dims
        });
        let output = graph.shaped(output, dims);
        if removed { squeeze_axes(graph, output, &[axis]) } else { output }
    };
    Ok(outputs.iter().enumerate().map(finish).collect())
}

/// The second output is the old shape.
pub fn translate_reshape(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    let shape = match op.ints("shape") {
        Some(shape) => Ok(shape.to_vec()),
        None if op.inputs.len() > 1 => op.constant_ints(graph, 1),
        None if op.argument("shape").is_some() => Ok(Vec::new()),
        None => return Err("it has neither an argument 'shape' nor a second input".to_owned()),
    };
    let output = match shape {
        Ok(shape) => {
            if let Some(wrong) = shape.iter().find(|&&dim| dim < -1) {
                return Err(format!("its shape has a dimension of {wrong}"));
            }
            graph.reshape(x, &shape)
        }
        // Computed in a run.
        Err(_) => {
            let shape = as_shape(graph, op.input(1)?);
            graph.node("Reshape", &[x, shape], vec![])
        }
    };
    let old = graph.node("Shape", &[x], vec![]);
    Ok(vec![output, old])
}

/// Integers as ONNX takes a shape.
pub fn as_shape(graph: &mut GraphBuilder, value: GraphValue) -> GraphValue {
    graph.same("Cast", &[value], vec![Attribute::int("to", element::INT64.into())])
}

pub fn translate_flatten(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    let axis = resolve_axis(op.int_or("axis", 1)?, graph.rank(x))?;
    let output = graph.node("Flatten", &[x], vec![Attribute::int("axis", axis as i64)]);
    let rows = if axis == 1 { graph.dim(x, 0) } else { -1 };
    Ok(vec![graph.shaped(output, Some(vec![rows, -1]))])
}

pub fn flatten_to_vector(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    Ok(vec![graph.reshape(op.input(0)?, &[-1])])
}

pub fn translate_squeeze(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let axes = axes(op)?;
    Ok(vec![squeeze_axes(graph, op.input(0)?, &axes)])
}

pub fn expand_dims(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let axes: Vec<i64> = axes(op)?.into_iter().map(|axis| axis as i64).collect();
    Ok(vec![graph.unsqueeze(op.input(0)?, &axes)])
}

/// The argument `dims`: sorted, each once.
fn axes(op: &Operator<'_>) -> Result<Vec<usize>, String> {
    let dims = op.ints("dims").unwrap_or_default();
    let mut axes =
        dims.iter().map(|&dim| resolve_axis(dim, None)).collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    axes.dedup();
    Ok(axes)
}

fn squeeze_axes(graph: &mut GraphBuilder, value: GraphValue, axes: &[usize]) -> GraphValue {
    if axes.is_empty() {
        return value;
    }
    let dims = graph.dims(value).map(|dims| {
        let kept = dims.iter().enumerate().filter(|(at, _)| !axes.contains(at));
        kept.map(|(_, &dim)| dim).collect()
    });
    let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    let output = graph.node("Squeeze", &[value], vec![Attribute::ints("axes", &axes)]);
    graph.shaped(output, dims)
}

/// The shape, or the dimensions that `axes` names.
pub fn translate_shape(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let rank = graph.rank(op.input(0)?).map(|rank| rank as i64);
    let whole = graph.node("Shape", &[op.input(0)?], vec![]);
    let Some(axes) = op.ints("axes") else {
        return Ok(vec![graph.shaped(whole, rank.map(|n| vec![n]))]);
    };
    let n = axes.len() as i64;
    let axes = graph.integers(axes);
    let output = graph.node("Gather", &[whole, axes], vec![]);
    Ok(vec![graph.shaped(output, Some(vec![n]))])
}

pub fn translate_size(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let output = graph.node("Size", &[op.input(0)?], vec![]);
    Ok(vec![graph.shaped(output, Some(vec![]))])
}

pub fn translate_tile(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (x, rank) = (op.input(0)?, op.rank(graph, 0)?);
    let (tiles, axis) = match op.inputs.len() {
        1 => (op.int_or("tiles", 1)?, op.int_or("axis", 0)?),
        _ => return Err("counts that are computed in a run are not supported".to_owned()),
    };
    let axis = resolve_axis(axis, Some(rank))?;
    let mut counts = vec![1; rank];
    let count = counts
        .get_mut(axis)
        .ok_or_else(|| format!("axis {axis} does not exist in {rank} dimensions"))?;
    *count = tiles;
    let counts = graph.integers(&counts);
    let dims = graph.dims(x).map(<[i64]>::to_vec).map(|mut dims| {
        dims[axis] = if dims[axis] < 0 { -1 } else { dims[axis].saturating_mul(tiles) };
        dims
    });
    let output = graph.node("Tile", &[x, counts], vec![]);
    Ok(vec![graph.shaped(output, dims)])
}
