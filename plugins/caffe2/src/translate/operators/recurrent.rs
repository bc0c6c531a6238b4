//! Steps of recurrent layers, as unrolled nets have them.

use super::Outputs;
use crate::onnx::Attribute;
use crate::translate::graph::{GraphBuilder, GraphValue};
use crate::translate::operator::Operator;

/// Hidden and cell state after a step. The gates are input, forget, output, and the candidate of
/// the cell.
pub fn lstm_unit(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (hidden, cell) = (op.input(0)?, op.input(1)?);
    let gates = split_gates(graph, op.input(2)?, 4);
    let input = graph.node("Sigmoid", &[gates[0]], vec![]);
    let bias = op.float_or("forget_bias", 0.0)?;
    let bias = graph.float(bias);
    let forget = graph.node("Add", &[gates[1], bias], vec![]);
    let forget = graph.node("Sigmoid", &[forget], vec![]);
    let output = graph.node("Sigmoid", &[gates[2]], vec![]);
    let candidate = graph.node("Tanh", &[gates[3]], vec![]);
    let kept = graph.same("Mul", &[cell, forget], vec![]);
    let added = graph.node("Mul", &[input, candidate], vec![]);
    let new_cell = graph.same("Add", &[kept, added], vec![]);
    let squashed = graph.same("Tanh", &[new_cell], vec![]);
    let new_hidden = graph.same("Mul", &[squashed, output], vec![]);
    let ended = ended_mask(graph, op, 3)?;
    Ok(vec![
        after_end(graph, op, ended, hidden, new_hidden)?,
        after_end(graph, op, ended, cell, new_cell)?,
    ])
}

/// Hidden state after a step. The gates are reset (applied by the net before), update and output.
pub fn gru_unit(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let hidden = op.input(0)?;
    let gates = split_gates(graph, op.input(1)?, 3);
    let update = graph.node("Sigmoid", &[gates[1]], vec![]);
    let output = graph.node("Tanh", &[gates[2]], vec![]);
    // update * hidden + (1 - update) * output
    let one = graph.float(1.0);
    let rest = graph.node("Sub", &[one, update], vec![]);
    let kept = graph.same("Mul", &[hidden, update], vec![]);
    let added = graph.node("Mul", &[output, rest], vec![]);
    let new = graph.same("Add", &[kept, added], vec![]);
    let ended = ended_mask(graph, op, 2)?;
    Ok(vec![after_end(graph, op, ended, hidden, new)?])
}

fn split_gates(graph: &mut GraphBuilder, gates: GraphValue, n: usize) -> Vec<GraphValue> {
    graph.nodes("Split", &[gates], vec![Attribute::int("axis", -1)], n)
}

/// Whether the sequence of each row has ended: the step, behind the lengths, is not below its
/// length. The condition is a column, so that it combines with states of batch and features.
/// `None`: the unit has no lengths.
fn ended_mask(
    graph: &mut GraphBuilder,
    op: &Operator<'_>,
    lengths: usize,
) -> Result<Option<GraphValue>, String> {
    if !op.flag("sequence_lengths", true)? {
        return Ok(None);
    }
    let step = graph.reshape(op.input(lengths + 1)?, &[1]);
    let running = graph.node("Less", &[step, op.input(lengths)?], vec![]);
    let ended = graph.node("Not", &[running], vec![]);
    Ok(Some(graph.unsqueeze(ended, &[1])))
}

/// The state of rows whose sequence has ended stays, or is zero.
fn after_end(
    graph: &mut GraphBuilder,
    op: &Operator<'_>,
    ended: Option<GraphValue>,
    old: GraphValue,
    new: GraphValue,
) -> Result<GraphValue, String> {
    let Some(ended) = ended else { return Ok(new) };
    let old = if op.flag("drop_states", false)? { graph.float(0.0) } else { old };
    let dims = graph.dims(new).map(<[i64]>::to_vec);
    let state = graph.node("Where", &[ended, old, new], vec![]);
    Ok(graph.shaped(state, dims))
}
