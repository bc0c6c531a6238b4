//! Pooling over windows and over whole images, with channels first or last.

use super::Outputs;
use super::layout;
use super::window::{Padding, Window};
use crate::onnx::Attribute;
use crate::translate::graph::GraphBuilder;
use crate::translate::operator::Operator;

pub fn max_pool(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    pool_image(graph, op, "MaxPool", "GlobalMaxPool")
}

pub fn average_pool(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    pool_image(graph, op, "AveragePool", "GlobalAveragePool")
}

fn pool_image(
    graph: &mut GraphBuilder,
    op: &mut Operator<'_>,
    operator: &'static str,
    global: &'static str,
) -> Outputs {
    let order = op.order()?;
    let x = op.input(0)?;
    if op.flag("global_pooling", false)? {
        let rank = layout::image_rank(graph, op)?;
        let image = layout::to_channels_first_order(graph, order, x, rank);
        let mut dims = vec![1; rank];
        (dims[0], dims[1]) = (graph.dim(image, 0), graph.dim(image, 1));
        let output = graph.node(global, &[image], vec![]);
        let output = graph.shaped(output, Some(dims));
        return Ok(vec![layout::restore_order(graph, order, output, rank)]);
    }
    let window = Window::from_operator(op)?;
    let mut attributes = window.attributes();
    if window.padding == Padding::RoundedUp {
        attributes.push(Attribute::int("ceil_mode", 1));
    }
    if operator == "MaxPool" {
        attributes.push(Attribute::ints("dilations", &window.dilation));
    } else {
        if window.dilation.iter().any(|&size| size != 1) {
            return Err("a dilation of an average is not supported".to_owned());
        }
        attributes.push(Attribute::int("count_include_pad", op.int_or("count_include_pad", 0)?));
    }
    let rank = window.rank();
    let image = layout::to_channels_first_order(graph, order, x, rank);
    let mut dims = vec![-1; rank];
    (dims[0], dims[1]) = (graph.dim(image, 0), graph.dim(image, 1));
    let output = graph.node(operator, &[image], attributes);
    let output = graph.shaped(output, Some(dims));
    Ok(vec![layout::restore_order(graph, order, output, rank)])
}
