//! Arithmetic of several tensors, with Caffe2's two rules for differing shapes.

use super::Outputs;
use crate::translate::graph::{GraphBuilder, GraphValue};
use crate::translate::operator::Operator;

pub fn translate_binary(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let operator = match op.kind() {
        "Add" => "Add",
        "Sub" => "Sub",
        "Mul" => "Mul",
        _ => "Div",
    };
    let (a, b) = aligned(graph, op)?;
    Ok(vec![broadcast(graph, operator, a, b)])
}

/// A node of two inputs whose output has the shape of both, by the rule of numpy.
pub fn broadcast(
    graph: &mut GraphBuilder,
    operator: &'static str,
    a: GraphValue,
    b: GraphValue,
) -> GraphValue {
    let dims = graph.dims(a).zip(graph.dims(b)).map(|(a, b)| {
        let rank = a.len().max(b.len());
        let at = |dims: &[i64], axis: usize| {
            let missing = rank - dims.len();
            if axis < missing { 1 } else { dims[axis - missing] }
        };
        let both = |axis| match (at(a, axis), at(b, axis)) {
            (1, other) | (other, 1) => other,
            (-1, other) | (other, _) => other,
        };
        (0..rank).map(both).collect()
    });
    let output = graph.node(operator, &[a, b], vec![]);
    graph.shaped(output, dims)
}

/// The inputs such that numpy's rule combines them as Caffe2 does. With `broadcast` the dimensions
/// of the second input are those of the first from `axis` on; without it Caffe2 has numpy's rule.
pub fn aligned(
    graph: &mut GraphBuilder,
    op: &Operator<'_>,
) -> Result<(GraphValue, GraphValue), String> {
    let (a, b) = (op.input(0)?, op.input(1)?);
    let axis = match op.text("axis_str")?.filter(|text| !text.is_empty()) {
        None => op.int_or("axis", -1)?,
        Some(name) => {
            let order = op.text("order")?.unwrap_or("NCHW");
            let at = order
                .find(name)
                .ok_or_else(|| format!("axis_str '{name}' is not in order '{order}'"))?;
            at as i64
        }
    };
    if !op.flag("broadcast", false)? {
        return match axis {
            -1 => Ok((a, b)),
            _ => Err(format!("axis {axis} is set without broadcast")),
        };
    }
    let single = graph.dims(b).is_some_and(|dims| dims.iter().all(|&dim| dim == 1));
    if axis == -1 || single && graph.rank(b) <= Some(1) {
        return Ok((a, b));
    }
    let (rank, own) = (op.rank(graph, 0)?, op.rank(graph, 1)?);
    let behind = usize::try_from(axis).ok().and_then(|axis| rank.checked_sub(axis + own));
    let behind = behind.ok_or_else(|| {
        format!("{own} dimensions of {} do not fit axis {axis} of {rank} dimensions", op.name(1))
    })?;
    let axes: Vec<i64> = (own..own + behind).map(|axis| axis as i64).collect();
    Ok((a, graph.unsqueeze(b, &axes)))
}

/// Sum, Mean, Max and Min of any number of tensors of one shape.
pub fn n_ary(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let first = op.input(0)?;
    Ok(vec![match op.kind() {
        "Max" => graph.same("Max", &op.inputs, vec![]),
        "Min" => graph.same("Min", &op.inputs, vec![]),
        "Mean" => graph.same("Mean", &op.inputs, vec![]),
        // ONNX Runtime's Sum has no integers, its Add has.
        _ => {
            op.inputs[1..].iter().fold(first, |sum, &next| graph.same("Add", &[sum, next], vec![]))
        }
    }])
}

pub fn translate_power(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    if op.inputs.len() > 1 {
        let (a, b) = aligned(graph, op)?;
        return Ok(vec![broadcast(graph, "Pow", a, b)]);
    }
    let exponent =
        op.float("exponent")?.ok_or("it has neither an argument 'exponent' nor a second input")?;
    let exponent = graph.float(exponent);
    Ok(vec![graph.same("Pow", &[op.input(0)?, exponent], vec![])])
}

/// Sqr and Cube.
pub fn power_of_itself(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    let square = graph.same("Mul", &[x, x], vec![]);
    Ok(vec![if op.kind() == "Sqr" { square } else { graph.same("Mul", &[square, x], vec![]) }])
}

pub fn translate_scale(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let factor = op.float_or("scale", 1.0)?;
    let factor = graph.float(factor);
    Ok(vec![graph.same("Mul", &[op.input(0)?, factor], vec![])])
}

pub fn translate_clip(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let min = op.float_or("min", f32::MIN)?;
    let max = op.float_or("max", f32::MAX)?;
    let (min, max) = (graph.float(min), graph.float(max));
    Ok(vec![graph.same("Clip", &[op.input(0)?, min, max], vec![])])
}
