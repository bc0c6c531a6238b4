//! Convolutions, with channels first or last. With channels last the weights have theirs last too.

use super::Outputs;
use super::layout;
use super::window::{Padding, Window};
use crate::onnx::Attribute;
use crate::translate::graph::{GraphBuilder, GraphValue};
use crate::translate::operator::{ImageOrder, Operator};

pub fn translate_conv(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (window, order, rank) = prepare_convolution(op)?;
    let x = layout::to_channels_first_order(graph, order, op.input(0)?, rank);
    let weights = layout::to_channels_first_order(graph, order, op.input(1)?, rank);
    let inputs: Vec<GraphValue> =
        [x, weights].into_iter().chain(op.inputs.get(2).copied()).collect();
    let mut attributes = window.attributes();
    attributes.push(Attribute::ints("dilations", &window.dilation));
    attributes.push(Attribute::int("group", op.int_or("group", 1)?));
    let (found, expected) = (graph.dim(x, 1), graph.dim(weights, 1));
    let expected = expected.saturating_mul(op.int_or("group", 1)?);
    if found >= 0 && expected >= 0 && found != expected {
        return Err(format!("its input has {found} channels, its weights are for {expected}"));
    }
    let channels = graph.dim(weights, 0);
    let output = graph.node("Conv", &inputs, attributes);
    let output = graph.shaped(output, image_dims(graph, x, channels, rank));
    Ok(vec![layout::restore_order(graph, order, output, rank)])
}

pub fn conv_transpose(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (window, order, rank) = prepare_convolution(op)?;
    if window.padding != Padding::Explicit || window.dilation.iter().any(|&size| size != 1) {
        return Err("its arguments 'legacy_pad' and 'dilation' are not supported".to_owned());
    }
    let x = layout::to_channels_first_order(graph, order, op.input(0)?, rank);
    let weights = layout::to_channels_first_order(graph, order, op.input(1)?, rank);
    let inputs: Vec<GraphValue> =
        [x, weights].into_iter().chain(op.inputs.get(2).copied()).collect();
    let group = op.int_or("group", 1)?;
    let adjust = match (op.int("adj")?, op.ints("adjs")) {
        (Some(one), _) => vec![one; rank - 2],
        (None, Some(list)) => list.to_vec(),
        (None, None) => vec![op.int_or("adj_h", 0)?, op.int_or("adj_w", 0)?],
    };
    let mut attributes = window.attributes();
    attributes.push(Attribute::int("group", group));
    if adjust.iter().any(|&size| size != 0) {
        attributes.push(Attribute::ints("output_padding", &adjust));
    }
    let channels = graph.dim(weights, 1);
    let channels = if channels < 0 { -1 } else { channels.saturating_mul(group) };
    let output = graph.node("ConvTranspose", &inputs, attributes);
    let output = graph.shaped(output, image_dims(graph, x, channels, rank));
    Ok(vec![layout::restore_order(graph, order, output, rank)])
}

fn prepare_convolution(op: &Operator<'_>) -> Result<(Window, ImageOrder, usize), String> {
    let window = Window::from_operator(op)?;
    if window.padding == Padding::RoundedUp {
        return Err("its argument 'legacy_pad' = 3 is supported for pooling only".to_owned());
    }
    let rank = window.rank();
    Ok((window, op.order()?, rank))
}

/// An image of `channels` as large as one of `x` at most.
fn image_dims(graph: &GraphBuilder, x: GraphValue, channels: i64, rank: usize) -> Option<Vec<i64>> {
    let mut dims = vec![-1; rank];
    dims[0] = graph.dim(x, 0);
    dims[1] = channels;
    Some(dims)
}
