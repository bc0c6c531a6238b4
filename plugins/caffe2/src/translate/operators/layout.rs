//! Transpositions, and the order of an image's dimensions: ONNX has channels first alone.

use super::Outputs;
use crate::onnx::Attribute;
use crate::translate::graph::{GraphBuilder, GraphValue};
use crate::translate::operator::{ImageOrder, Operator};

/// An image of `rank` dimensions with channels first.
pub fn to_channels_first_order(
    graph: &mut GraphBuilder,
    order: ImageOrder,
    image: GraphValue,
    rank: usize,
) -> GraphValue {
    match order {
        ImageOrder::ChannelsFirst => image,
        ImageOrder::ChannelsLast => graph.transpose(image, &channels_first(rank)),
    }
}

/// The inverse of [`to_channels_first_order`].
pub fn restore_order(
    graph: &mut GraphBuilder,
    order: ImageOrder,
    image: GraphValue,
    rank: usize,
) -> GraphValue {
    match order {
        ImageOrder::ChannelsFirst => image,
        ImageOrder::ChannelsLast => graph.transpose(image, &channels_last(rank)),
    }
}

fn channels_first(rank: usize) -> Vec<i64> {
    let rank = rank as i64;
    [0, rank - 1].into_iter().chain(1..rank - 1).collect()
}

fn channels_last(rank: usize) -> Vec<i64> {
    let rank = rank as i64;
    [0].into_iter().chain(2..rank).chain([1]).collect()
}

pub fn to_channels_last(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let rank = image_rank(graph, op)?;
    Ok(vec![graph.transpose(op.input(0)?, &channels_last(rank))])
}

pub fn to_channels_first(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let rank = image_rank(graph, op)?;
    Ok(vec![graph.transpose(op.input(0)?, &channels_first(rank))])
}

/// Dimensions of an image, of which there are three at least: batch, channels, and one of space.
pub fn image_rank(graph: &GraphBuilder, op: &Operator<'_>) -> Result<usize, String> {
    match op.rank(graph, 0)? {
        rank @ 3.. => Ok(rank),
        rank => Err(format!("{} has {rank} dimensions, an image has 3 at least", op.name(0))),
    }
}

pub fn translate_transpose(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    if let Some(axes) = op.ints("axes") {
        return Ok(vec![graph.transpose(x, axes)]);
    }
    let dims = graph.dims(x).map(|dims| dims.iter().rev().copied().collect());
    let output = graph.node("Transpose", &[x], Vec::<Attribute>::new());
    Ok(vec![graph.shaped(output, dims)])
}

/// A vector with an element per channel, such that it combines with an image of `rank` dimensions.
pub fn per_channel(
    graph: &mut GraphBuilder,
    order: ImageOrder,
    rank: usize,
    vector: GraphValue,
) -> GraphValue {
    let behind = rank.saturating_sub(order.channel_axis(rank));
    let axes: Vec<i64> = (1..behind).map(|axis| axis as i64).collect();
    graph.unsqueeze(vector, &axes)
}
