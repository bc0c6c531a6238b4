//! Normalisation: by stored statistics, by those of an image, by neighbouring channels, by length.

use super::Outputs;
use super::layout;
use crate::onnx::Attribute;
use crate::translate::graph::{GraphBuilder, GraphValue};
use crate::translate::operator::{ImageOrder, Operator, resolve_axis};
use crate::translate::tensor::ConstantTensor;

pub fn spatial_bn(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    if !op.flag("is_test", false)? {
        return Err("it has no is_test = 1: the net was saved for training".to_owned());
    }
    let epsilon = Attribute::float("epsilon", op.float_or("epsilon", 1e-5)?);
    let order = op.order()?;
    let rank = rank_in(graph, op, order)?;
    let mut inputs = vec![layout::to_channels_first_order(graph, order, op.input(0)?, rank)];
    for at in 1..5 {
        inputs.push(op.input(at)?);
    }
    let output = graph.same("BatchNormalization", &inputs, vec![epsilon]);
    Ok(vec![layout::restore_order(graph, order, output, rank)])
}

pub fn instance_norm(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let epsilon = Attribute::float("epsilon", op.float_or("epsilon", 1e-5)?);
    let order = op.order()?;
    let rank = rank_in(graph, op, order)?;
    let image = layout::to_channels_first_order(graph, order, op.input(0)?, rank);
    let inputs = [image, op.input(1)?, op.input(2)?];
    let output = graph.same("InstanceNormalization", &inputs, vec![epsilon]);
    Ok(vec![layout::restore_order(graph, order, output, rank)])
}

/// Each group of channels is normalised as InstanceNormalization normalises a channel.
pub fn group_norm(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let groups = op.int_or("group", 32)?;
    let size = usize::try_from(groups).ok().filter(|size| (1..=1 << 16).contains(size));
    let size = size.ok_or_else(|| format!("its argument 'group' = {groups} is not supported"))?;
    let epsilon = Attribute::float("epsilon", op.float_or("epsilon", 1e-5)?);
    let (order, rank) = (op.order()?, layout::image_rank(graph, op)?);
    let image = layout::to_channels_first_order(graph, order, op.input(0)?, rank);
    let shape = graph.node("Shape", &[image], vec![]);
    let grouped = graph.reshape(image, &[0, groups, -1]);
    let ones = graph.constant(ConstantTensor::floats(&[groups], &vec![1.0; size]));
    let zeros = graph.constant(ConstantTensor::floats(&[groups], &vec![0.0; size]));
    let inputs = [grouped, ones, zeros];
    let normalised = graph.node("InstanceNormalization", &inputs, vec![epsilon]);
    let normalised = graph.node("Reshape", &[normalised, shape], vec![]);
    let dims = graph.dims(image).map(<[i64]>::to_vec);
    let normalised = graph.shaped(normalised, dims);
    let scale = layout::per_channel(graph, ImageOrder::ChannelsFirst, rank, op.input(1)?);
    let bias = layout::per_channel(graph, ImageOrder::ChannelsFirst, rank, op.input(2)?);
    let scaled = graph.same("Mul", &[normalised, scale], vec![]);
    let output = graph.same("Add", &[scaled, bias], vec![]);
    Ok(vec![layout::restore_order(graph, order, output, rank)])
}

/// Over the dimensions from the axis on. The further outputs, mean and deviation, are not computed.
pub fn layer_norm(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (x, rank) = (op.input(0)?, op.rank(graph, 0)?);
    let axis = resolve_axis(op.int_or("axis", 1)?, Some(rank))?;
    let axes: Vec<i64> = (axis..rank).map(|axis| axis as i64).collect();
    let reduced = |graph: &mut GraphBuilder, value: GraphValue| {
        let attributes = vec![Attribute::ints("axes", &axes), Attribute::int("keepdims", 1)];
        graph.node("ReduceMean", &[value], attributes)
    };
    let mean = reduced(graph, x);
    let centred = graph.same("Sub", &[x, mean], vec![]);
    let squares = graph.same("Mul", &[centred, centred], vec![]);
    let variance = reduced(graph, squares);
    let epsilon = op.float_or("epsilon", 1e-5)?;
    let epsilon = graph.float(epsilon);
    let variance = graph.node("Add", &[variance, epsilon], vec![]);
    let deviation = graph.node("Sqrt", &[variance], vec![]);
    let normalised = graph.same("Div", &[centred, deviation], vec![]);
    if !op.flag("elementwise_affine", false)? {
        return Ok(vec![normalised]);
    }
    let scaled = graph.same("Mul", &[normalised, op.input(1)?], vec![]);
    Ok(vec![graph.same("Add", &[scaled, op.input(2)?], vec![])])
}

pub fn translate_lrn(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let attributes = vec![
        Attribute::int("size", op.int_or("size", 0)?),
        Attribute::float("alpha", op.float_or("alpha", 0.0)?),
        Attribute::float("beta", op.float_or("beta", 0.0)?),
        Attribute::float("bias", op.float_or("bias", 1.0)?),
    ];
    let order = op.order()?;
    let rank = rank_in(graph, op, order)?;
    let image = layout::to_channels_first_order(graph, order, op.input(0)?, rank);
    let output = graph.same("LRN", &[image], attributes);
    Ok(vec![layout::restore_order(graph, order, output, rank)])
}

/// The rank matters with channels last alone.
fn rank_in(graph: &GraphBuilder, op: &Operator<'_>, order: ImageOrder) -> Result<usize, String> {
    match order {
        ImageOrder::ChannelsFirst => Ok(0),
        ImageOrder::ChannelsLast => layout::image_rank(graph, op),
    }
}

pub fn affine_channel(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (order, rank) = (op.order()?, op.rank(graph, 0)?);
    let scale = layout::per_channel(graph, order, rank, op.input(1)?);
    let bias = layout::per_channel(graph, order, rank, op.input(2)?);
    let scaled = graph.same("Mul", &[op.input(0)?, scale], vec![]);
    Ok(vec![graph.same("Add", &[scaled, bias], vec![])])
}

/// Normalize and NormalizeL1: division by the length along an axis.
pub fn translate_normalize(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
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
