//! Activations and other operators of one input, element by element; Softmax.

use super::Outputs;
use super::layout;
use crate::onnx::Attribute;
use crate::translate::graph::GraphBuilder;
use crate::translate::operator::{Operator, resolve_axis};

/// Operators that both sides have without arguments.
pub fn translate_unary(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let operator = match op.kind() {
        "Abs" => "Abs",
        "Acos" => "Acos",
        "Asin" => "Asin",
        "Atan" => "Atan",
        "Ceil" => "Ceil",
        "Cos" => "Cos",
        "Cosh" => "Cosh",
        "Erf" => "Erf",
        "Exp" => "Exp",
        "Floor" => "Floor",
        "Log" => "Log",
        "Negative" => "Neg",
        "Not" => "Not",
        "Reciprocal" => "Reciprocal",
        "Relu" => "Relu",
        "Sigmoid" => "Sigmoid",
        "Sign" => "Sign",
        "Sin" => "Sin",
        "Sinh" => "Sinh",
        "Softplus" => "Softplus",
        "Softsign" => "Softsign",
        "Sqrt" => "Sqrt",
        "Tan" => "Tan",
        "Tanh" => "Tanh",
        other => return Err(format!("'{other}' is not an operator of one input")),
    };
    Ok(vec![graph.same(operator, &[op.input(0)?], vec![])])
}

pub fn translate_rsqrt(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let root = graph.same("Sqrt", &[op.input(0)?], vec![]);
    Ok(vec![graph.same("Reciprocal", &[root], vec![])])
}

pub fn translate_elu(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let alpha = Attribute::float("alpha", op.float_or("alpha", 1.0)?);
    Ok(vec![graph.same("Elu", &[op.input(0)?], vec![alpha])])
}

pub fn translate_selu(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let alpha = Attribute::float("alpha", op.float_or("alpha", 1.673_263_2)?);
    let gamma = Attribute::float("gamma", op.float_or("scale", 1.050_701)?);
    Ok(vec![graph.same("Selu", &[op.input(0)?], vec![alpha, gamma])])
}

pub fn leaky_relu(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let alpha = Attribute::float("alpha", op.float_or("alpha", 0.01)?);
    Ok(vec![graph.same("LeakyRelu", &[op.input(0)?], vec![alpha])])
}

pub fn thresholded_relu(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let alpha = Attribute::float("alpha", op.float_or("alpha", 1.0)?);
    Ok(vec![graph.same("ThresholdedRelu", &[op.input(0)?], vec![alpha])])
}

pub fn hard_sigmoid(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let alpha = Attribute::float("alpha", op.float_or("alpha", 0.2)?);
    let beta = Attribute::float("beta", op.float_or("beta", 0.5)?);
    Ok(vec![graph.same("HardSigmoid", &[op.input(0)?], vec![alpha, beta])])
}

pub fn relu_n(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let limit = op.float_or("n", 6.0)?;
    let (zero, limit) = (graph.float(0.0), graph.float(limit));
    Ok(vec![graph.same("Clip", &[op.input(0)?, zero, limit], vec![])])
}

pub fn translate_swish(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    let gate = graph.same("Sigmoid", &[x], vec![]);
    Ok(vec![graph.same("Mul", &[x, gate], vec![])])
}

/// x / 2 * (1 + erf(x / sqrt(2))).
pub fn translate_gelu(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    op.only("fast_gelu", 0)?;
    let x = op.input(0)?;
    let [root, one, half] = [std::f32::consts::FRAC_1_SQRT_2, 1.0, 0.5].map(|n| graph.float(n));
    let scaled = graph.same("Mul", &[x, root], vec![]);
    let erf = graph.same("Erf", &[scaled], vec![]);
    let gate = graph.same("Add", &[erf, one], vec![]);
    let halved = graph.same("Mul", &[x, half], vec![]);
    Ok(vec![graph.same("Mul", &[halved, gate], vec![])])
}

/// The slope has one element, or one per channel.
pub fn translate_prelu(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let (x, slope) = (op.input(0)?, op.input(1)?);
    let single = graph.dims(slope).is_some_and(|dims| dims.iter().product::<i64>() == 1);
    let slope = if single {
        graph.reshape(slope, &[1])
    } else {
        let rank = op.rank(graph, 0)?;
        layout::per_channel(graph, op.order()?, rank, slope)
    };
    Ok(vec![graph.same("PRelu", &[x, slope], vec![])])
}

/// Both normalise over all dimensions from the axis on.
pub fn translate_softmax(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let x = op.input(0)?;
    let axis = resolve_axis(op.int_or("axis", 1)?, graph.rank(x))?;
    Ok(vec![graph.same("Softmax", &[x], vec![Attribute::int("axis", axis as i64)])])
}
