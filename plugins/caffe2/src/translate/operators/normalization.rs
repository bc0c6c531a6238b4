//! Normalisation: by stored statistics, by those of an image, by neighbouring channels, by length.

use super::Outputs;
use super::layout;
use crate::onnx::Attribute;
use crate::translate::graph::Graph;
use crate::translate::operator::{Operator, Order};

pub fn spatial_bn(graph: &mut Graph, op: &mut Operator<'_>) -> Outputs {
    if !op.flag("is_test", false)? {
        return Err("it has no is_test = 1: the net was saved for training".to_owned());
    }
    let epsilon = Attribute::float("epsilon", op.float_or("epsilon", 1e-5)?);
    let order = op.order()?;
    let rank = rank_in(graph, op, order)?;
    let mut inputs = vec![layout::first(graph, order, op.input(0)?, rank)];
    for at in 1..5 {
        inputs.push(op.input(at)?);
    }
    let output = graph.same("BatchNormalization", &inputs, vec![epsilon]);
    Ok(vec![layout::restored(graph, order, output, rank)])
}

pub fn instance_norm(graph: &mut Graph, op: &mut Operator<'_>) -> Outputs {
    let epsilon = Attribute::float("epsilon", op.float_or("epsilon", 1e-5)?);
    let order = op.order()?;
    let rank = rank_in(graph, op, order)?;
    let image = layout::first(graph, order, op.input(0)?, rank);
    let inputs = [image, op.input(1)?, op.input(2)?];
    let output = graph.same("InstanceNormalization", &inputs, vec![epsilon]);
    Ok(vec![layout::restored(graph, order, output, rank)])
}

pub fn lrn(graph: &mut Graph, op: &mut Operator<'_>) -> Outputs {
    let attributes = vec![
        Attribute::int("size", op.int_or("size", 0)?),
        Attribute::float("alpha", op.float_or("alpha", 0.0)?),
        Attribute::float("beta", op.float_or("beta", 0.0)?),
        Attribute::float("bias", op.float_or("bias", 1.0)?),
    ];
    let order = op.order()?;
    let rank = rank_in(graph, op, order)?;
    let image = layout::first(graph, order, op.input(0)?, rank);
    let output = graph.same("LRN", &[image], attributes);
    Ok(vec![layout::restored(graph, order, output, rank)])
}

/// The rank matters with channels last alone.
fn rank_in(graph: &Graph, op: &Operator<'_>, order: Order) -> Result<usize, String> {
    match order {
        Order::ChannelsFirst => Ok(0),
        Order::ChannelsLast => layout::image_rank(graph, op),
    }
}

pub fn affine_channel(graph: &mut Graph, op: &mut Operator<'_>) -> Outputs {
    let (order, rank) = (op.order()?, op.rank(graph, 0)?);
    let scale = layout::per_channel(graph, order, rank, op.input(1)?);
    let bias = layout::per_channel(graph, order, rank, op.input(2)?);
    let scaled = graph.same("Mul", &[op.input(0)?, scale], vec![]);
    Ok(vec![graph.same("Add", &[scaled, bias], vec![])])
}

/// Normalize and NormalizeL1: division by the length along an axis.
pub fn normalize(graph: &mut Graph, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    let axis = op.int_or("axis", -1)?;
    let length = if op.kind() == "Normalize" { "ReduceL2" } else { "ReduceL1" };
    let attributes = vec![Attribute::ints("axes", &[axis]), Attribute::int("keepdims", 1)];
    let length = graph.node(length, &[x], attributes);
    // Caffe2 has the same lower limit of the divisor.
    let least = graph.float(1e-12);
    let length = graph.node("Max", &[length, least], vec![]);
    Ok(vec![graph.same("Div", &[x, length], vec![])])
}
