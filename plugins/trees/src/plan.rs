//! The configuration against the model: what execution needs.

use crate::booster::Task;
use crate::parameters::Parameters;
use crate::scores::ScoreForm;
use trtserver_framework::config::{Config, ConfiguredTensor};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::types::{shape_text, type_name};
use trtserver_plugin_api::abi::types::dtype;

/// Names of tensors in completed configurations, and of outputs that are not scores.
pub const INPUT: &str = "input__0";
pub const SCORES: &str = "output__0";
const CONTRIBUTIONS: [&str; 2] = ["shap__output", "treeshap_output"];
const LEAVES: &str = "leaf__output";

/// What the model says of itself.
#[derive(Clone, Copy, Debug)]
pub struct ModelWidths {
    pub features: usize,
    pub scores: usize,
    pub leaves: usize,
    pub contributions: usize,
    /// The only score is the number of a class.
    pub scores_are_classes: bool,
}

impl ModelWidths {
    fn width(&self, task: Task) -> usize {
        match task {
            Task::Scores => self.scores,
            Task::Leaves => self.leaves,
            Task::Contributions => self.contributions,
        }
    }
}

/// An output as execution writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputPlan {
    pub name: String,
    pub task: Task,
    pub form: ScoreForm,
    /// FP32, FP64 or INT32.
    pub dtype: u32,
    /// Shape of a row.
    pub row: Vec<i64>,
}

/// What execution needs.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelPlan {
    pub input: String,
    /// FP32 or FP64.
    pub dtype: u32,
    /// The first dimension of input and outputs is the number of rows. Otherwise each request is
    /// one row.
    pub has_rows: bool,
    /// Requests may be executed in one run.
    pub batching: bool,
    pub outputs: Vec<OutputPlan>,
}

/// # Errors
/// Names the tensor, what was expected and what the configuration says.
pub fn plan_model(
    config: &Config,
    widths: &ModelWidths,
    parameters: &Parameters,
) -> Result<ModelPlan, PluginFault> {
    let refuse = |what: String| {
        Err(PluginFault::invalid(format!("unable to load model '{}': {what}", config.model)))
    };
    let [input] = config.inputs.as_slice() else {
        return refuse(format!(
            "configuration expects {} inputs, model provides 1: the rows of features",
            config.inputs.len()
        ));
    };
    if ![dtype::FP32, dtype::FP64].contains(&input.dtype) {
        return refuse(format!(
            "input '{}' has data type {}, expected TYPE_FP32 or TYPE_FP64",
            input.name,
            type_name(input.dtype)
        ));
    }
    let (batching, features) = (config.max_batch_size > 0, widths.features);
    let Some(has_rows) = find_rows(&input.model_dims, batching, widths.features) else {
        return refuse(format!(
            "input '{}' has dims {}, and the model has {features} features: expected dims [{features}]{}",
            input.name,
            shape_text(&input.model_dims),
            if batching { "" } else { " for one row, or [-1,N] for rows of N features" }
        ));
    };
    if config.outputs.is_empty() {
        return refuse("configuration expects 0 outputs, model provides 'output__0'".to_owned());
    }
    let mut outputs = Vec::new();
    for output in &config.outputs {
        let lead = usize::from(has_rows && !batching);
        match plan_output(output, lead, widths, parameters) {
            Ok(plan) => outputs.push(plan),
            Err(what) => return refuse(format!("output '{}' {what}", output.name)),
        }
    }
    Ok(ModelPlan { input: input.name.clone(), dtype: input.dtype, has_rows, batching, outputs })
}

/// Whether the first dimension of an input is the number of rows; `None` if the dims do not hold
/// the features.
fn find_rows(dims: &[i64], batching: bool, features: usize) -> Option<bool> {
    let is_row = |dims: &[i64]| match dims {
        [-1] => true,
        dims => product(dims) == Some(features),
    };
    match (batching, dims) {
        (true, dims) => is_row(dims).then_some(true),
        (false, [rows, row @ ..]) if !row.is_empty() && (*rows == -1 || *rows > 1) => {
            is_row(row).then_some(true)
        }
        (false, dims) => (product(dims) == Some(features)).then_some(false),
    }
}

fn product(dims: &[i64]) -> Option<usize> {
    dims.iter().try_fold(1usize, |all, dim| all.checked_mul(usize::try_from(*dim).ok()?))
}

/// `lead`: dimensions before those of a row.
fn plan_output(
    output: &ConfiguredTensor,
    lead: usize,
    widths: &ModelWidths,
    parameters: &Parameters,
) -> Result<OutputPlan, String> {
    let (task, types): (_, &[u32]) = match output.name.as_str() {
        LEAVES => (Task::Leaves, &[dtype::INT32, dtype::FP32, dtype::FP64]),
        name if CONTRIBUTIONS.contains(&name) => (Task::Contributions, &[dtype::FP32, dtype::FP64]),
        _ => (Task::Scores, &[dtype::FP32, dtype::FP64]),
    };
    if !types.contains(&output.dtype) {
        let names: Vec<String> = types.iter().map(|kind| type_name(*kind)).collect();
        return Err(format!(
            "has data type {}, expected {}",
            type_name(output.dtype),
            names.join(" or ")
        ));
    }
    let dims = output.model_dims.get(lead..).unwrap_or_default();
    let scores = widths.width(task);
    let forms: Vec<ScoreForm> = match task {
        Task::Scores => score_forms(widths, parameters),
        _ => vec![ScoreForm::Plain],
    };
    for form in &forms {
        if let Some(row) = fit_row(dims, form.width(scores)) {
            let (name, form, dtype) = (output.name.clone(), *form, output.dtype);
            return Ok(OutputPlan { name, task, form, dtype, row });
        }
    }
    let expected: Vec<String> =
        forms.iter().map(|form| format!("[{}]", form.width(scores))).collect();
    let why = match task {
        Task::Scores => " (by the model and the parameters output_class and predict_proba)",
        Task::Leaves => ", the trees",
        Task::Contributions => ", the features and the expected value, for each class",
    };
    Err(format!(
        "has dims {}, expected {}{why}{}",
        shape_text(&output.model_dims),
        expected.join(" or "),
        if lead == 1 { " after the dimension of the rows" } else { "" }
    ))
}

/// The forms that the scores may have, that of completed configurations first.
pub fn score_forms(widths: &ModelWidths, parameters: &Parameters) -> Vec<ScoreForm> {
    let class = ScoreForm::Class { threshold: parameters.threshold.unwrap_or(0.5) };
    match (widths.scores, parameters.probabilities, parameters.classes) {
        // Triton's FIL calls models of two classes ones of a single one.
        (1, true, _) => vec![ScoreForm::Pair, ScoreForm::Plain],
        (_, false, true) if !widths.scores_are_classes => vec![class],
        _ => vec![ScoreForm::Plain],
    }
}

/// The dims of a row of `width` values, with one variable dimension replaced.
fn fit_row(dims: &[i64], width: usize) -> Option<Vec<i64>> {
    let variable = dims.iter().filter(|dim| **dim == -1).count();
    let fixed: Vec<i64> = dims.iter().copied().filter(|dim| *dim != -1).collect();
    let fixed = product(&fixed).filter(|fixed| *fixed > 0)?;
    match variable {
        0 if fixed == width => Some(dims.to_vec()),
        1 if width.is_multiple_of(fixed) => {
            let rest = i64::try_from(width / fixed).ok()?;
            Some(dims.iter().map(|dim| if *dim == -1 { rest } else { *dim }).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
