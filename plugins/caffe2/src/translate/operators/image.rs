//! Operators on images that are neither convolution nor pooling.

use super::Outputs;
use super::layout;
use super::window::window_pads;
use crate::onnx::Attribute;
use crate::translate::graph::GraphBuilder;
use crate::translate::operator::{ImageOrder, Operator};
use crate::translate::tensor::ConstantTensor;

/// Channels of each group are interleaved with those of the others.
pub fn channel_shuffle(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let order = op.order()?;
    let groups = op.int_or("group", 1)?;
    let rank = layout::image_rank(graph, op)?;
    let image = layout::to_channels_first_order(graph, order, op.input(0)?, rank);
    let shape = graph.node("Shape", &[image], vec![]);
    // The shape with the channels replaced by groups and channels of a group.
    let mut part = |from: i64, to: i64| {
        let inputs = [shape, graph.integers(&[from]), graph.integers(&[to])];
        graph.node("Slice", &inputs, vec![])
    };
    let (batch, space) = (part(0, 1), part(2, i64::from(i32::MAX)));
    let split = graph.integers(&[groups, -1]);
    let split = graph.node("Concat", &[batch, split, space], vec![Attribute::int("axis", 0)]);
    let grouped = graph.node("Reshape", &[image, split], vec![]);
    let mut permutation: Vec<i64> = (0..=rank as i64).collect();
    permutation.swap(1, 2);
    let shuffled = graph.transpose(grouped, &permutation);
    let dims = graph.dims(image).map(<[i64]>::to_vec);
    let output = graph.node("Reshape", &[shuffled, shape], vec![]);
    let output = graph.shaped(output, dims);
    Ok(vec![layout::restore_order(graph, order, output, rank)])
}

pub fn resize_nearest(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let attributes = vec![
        Attribute::text("mode", "nearest"),
        Attribute::text("coordinate_transformation_mode", "asymmetric"),
        Attribute::text("nearest_mode", "floor"),
    ];
    resize_image(graph, op, attributes)
}

pub fn upsample_bilinear(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let attributes = vec![
        Attribute::text("mode", "linear"),
        Attribute::text("coordinate_transformation_mode", "align_corners"),
    ];
    resize_image(graph, op, attributes)
}

fn resize_image(
    graph: &mut GraphBuilder,
    op: &mut Operator<'_>,
    attributes: Vec<Attribute>,
) -> Outputs {
    let order = op.order()?;
    let scales = match op.inputs.get(1) {
        None => vec![op.float_or("height_scale", 1.0)?, op.float_or("width_scale", 1.0)?],
        Some(&input) => {
            let scales = graph.known_constant(input).and_then(ConstantTensor::as_floats);
            scales.ok_or_else(|| {
                format!("{} is computed in a run, which is not supported", op.name(1))
            })?
        }
    };
    let &[height, width] = scales.as_slice() else {
        return Err(format!("it has {} scales instead of 2", scales.len()));
    };
    let image = layout::to_channels_first_order(graph, order, op.input(0)?, 4);
    let mut dims = vec![-1; 4];
    (dims[0], dims[1]) = (graph.dim(image, 0), graph.dim(image, 1));
    let region = graph.constant(ConstantTensor::floats(&[0], &[]));
    let scales = graph.constant(ConstantTensor::floats(&[4], &[1.0, 1.0, height, width]));
    let output = graph.node("Resize", &[image, region, scales], attributes);
    let output = graph.shaped(output, Some(dims));
    Ok(vec![layout::restore_order(graph, order, output, 4)])
}

pub fn translate_pad(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let mode = match op.text("mode")? {
        None | Some("constant") => "constant",
        Some("reflect") => "reflect",
        Some("edge") => "edge",
        Some(other) => return Err(format!("its mode '{other}' is not supported")),
    };
    let pads = window_pads(op, 2)?;
    let (front, back) = pads.split_at(2);
    let whole = |sides: &[i64]| match op.order() {
        Ok(ImageOrder::ChannelsLast) => [&[0], sides, &[0]].concat(),
        _ => [&[0, 0], sides].concat(),
    };
    op.order()?;
    let pads = [whole(front), whole(back)].concat();
    let x = op.input(0)?;
    let grown = |at: usize| match graph.dim(x, at) {
        -1 => -1,
        dim => dim.saturating_add(pads[at]).saturating_add(pads[at + 4]),
    };
    let dims = (0..4).map(grown).collect();
    let value = op.float_or("value", 0.0)?;
    let inputs = [x, graph.integers(&pads), graph.float(value)];
    let output = graph.node("Pad", &inputs, vec![Attribute::text("mode", mode)]);
    Ok(vec![graph.shaped(output, Some(dims))])
}
