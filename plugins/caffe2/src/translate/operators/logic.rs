//! Comparisons, logic and the choice between two tensors.

use super::Outputs;
use super::arithmetic::{aligned, broadcast};
use crate::translate::graph::GraphBuilder;
use crate::translate::operator::Operator;

pub fn translate_compare(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (a, b) = aligned(graph, op)?;
    let (operator, negated) = match op.kind() {
        "LT" => ("Less", false),
        "LE" => ("LessOrEqual", false),
        "GT" => ("Greater", false),
        "GE" => ("GreaterOrEqual", false),
        "NE" => ("Equal", true),
        _ => ("Equal", false),
    };
    let result = broadcast(graph, operator, a, b);
    Ok(vec![if negated { graph.same("Not", &[result], vec![]) } else { result }])
}

pub fn translate_boolean(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (a, b) = aligned(graph, op)?;
    let operator = match op.kind() {
        "And" => "And",
        "Or" => "Or",
        _ => "Xor",
    };
    Ok(vec![broadcast(graph, operator, a, b)])
}

pub fn translate_select(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    op.only("broadcast_on_rows", 0)?;
    let (condition, a, b) = (op.input(0)?, op.input(1)?, op.input(2)?);
    let dims = graph.dims(a).map(<[i64]>::to_vec);
    let output = graph.node("Where", &[condition, a, b], vec![]);
    Ok(vec![graph.shaped(output, dims)])
}
