//! Checks an ensemble against the models of its steps: the tensors it connects must match in type
//! and shape.

use std::collections::HashMap;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_request::{DType, ModelSignature, ShapeText, TensorSpec};
use trtserver_scheduler::ensemble::StepPlan;

/// A step and the tensors of its model.
pub struct StepTensors<'a> {
    pub plan: &'a StepPlan,
    pub signature: Arc<ModelSignature>,
    pub decoupled: bool,
}

/// A tensor as one of the models declares it.
#[derive(Clone, Copy)]
struct DeclaredTensor<'a> {
    model: &'a str,
    batching: bool,
    dtype: DType,
    dims: &'a [i64],
}

impl DeclaredTensor<'_> {
    /// Dims including the batch dimension, if there is one.
    fn full(&self) -> Vec<i64> {
        self.batching.then_some(-1).into_iter().chain(self.dims.iter().copied()).collect()
    }
}

/// Checks the mapping of every step, and every tensor against its first declaration; those of the
/// ensemble come first.
///
/// # Errors
/// The first mismatch, with the names of both sides.
pub fn check_ensemble_steps(ensemble: &ModelSignature, steps: &[StepTensors<'_>]) -> Result<()> {
    let mut tensors: HashMap<&str, DeclaredTensor<'_>> = HashMap::new();
    for spec in ensemble.inputs.iter().chain(&ensemble.outputs) {
        // Steps get a tensor after the reshape that the ensemble declares for it.
        let declared = declared_tensor(ensemble, spec, &spec.model_dims);
        match_first(ensemble, &mut tensors, &spec.name, declared)?;
    }
    for step in steps {
        let model = &step.signature;
        let (name, step_model) = (&ensemble.model, &model.model);
        // A model without batching gets the batch as an ordinary dimension, or one row at a time.
        if model.batching() && ensemble.max_batch_size > model.max_batch_size {
            return refuse_ensemble(format!(
                "ensemble {name} allows maximum batch size {}, but it contains model {step_model} which only allows \
                 maximum batch size to be {}",
                ensemble.max_batch_size, model.max_batch_size
            ));
        }
        check_step_inputs(ensemble, step, &mut tensors)?;
        for (output, tensor) in &step.plan.outputs {
            let Some(index) = model.output(output) else {
                return refuse_ensemble(format!(
                    "in ensemble {name}, ensemble tensor {tensor} is mapped from non-existing output {output} \
                     in model {step_model}"
                ));
            };
            let spec = &model.outputs[index];
            match_first(ensemble, &mut tensors, tensor, declared_tensor(model, spec, &spec.dims))?;
        }
    }
    Ok(())
}

fn check_step_inputs<'a>(
    ensemble: &ModelSignature,
    step: &'a StepTensors<'_>,
    tensors: &mut HashMap<&'a str, DeclaredTensor<'a>>,
) -> Result<()> {
    let model = &step.signature;
    let (name, step_model) = (&ensemble.model, &model.model);
    for (input, tensor) in &step.plan.inputs {
        if model.input(input).is_none() {
            return refuse_ensemble(format!(
                "in ensemble {name}, ensemble tensor {tensor} is mapping to non-existing input {input} in \
                 model {step_model}"
            ));
        }
    }
    for spec in &model.inputs {
        let input = &spec.name;
        let Some((_, tensor)) = step.plan.inputs.iter().find(|(i, _)| **i == **input) else {
            if spec.optional {
                continue;
            }
            return refuse_ensemble(format!(
                "in ensemble {name}, input {input} in model {step_model} is not mapped to any ensemble tensors"
            ));
        };
        let optional = ensemble.input(tensor).is_some_and(|i| ensemble.inputs[i].optional);
        if optional && !spec.optional {
            return refuse_ensemble(format!(
                "in ensemble {name}, ensemble tensor {tensor} is an optional input of the ensemble but input \
                 {input} in model {step_model} is required"
            ));
        }
        match_first(ensemble, tensors, tensor, declared_tensor(model, spec, &spec.dims))?;
    }
    Ok(())
}

fn declared_tensor<'a>(
    signature: &'a ModelSignature,
    spec: &'a TensorSpec,
    dims: &'a [i64],
) -> DeclaredTensor<'a> {
    let batching = signature.batching() && !spec.shape_tensor;
    DeclaredTensor { model: &signature.model, batching, dtype: spec.dtype, dims }
}

/// Compares a declaration of `tensor` with the first one; records it if it is the first.
fn match_first<'a>(
    ensemble: &ModelSignature,
    tensors: &mut HashMap<&'a str, DeclaredTensor<'a>>,
    tensor: &'a str,
    new: DeclaredTensor<'a>,
) -> Result<()> {
    let old = *tensors.entry(tensor).or_insert(new);
    let mismatch = |what: &str, a: &dyn std::fmt::Display, b: &dyn std::fmt::Display| {
        refuse_ensemble(format!(
            "in ensemble {}, ensemble tensor {tensor}: inconsistent {what}: {a} is inferred from model {} while \
             {b} is inferred from model {}",
            ensemble.model, old.model, new.model
        ))
    };
    if old.dtype != new.dtype {
        return mismatch("data type", &old.dtype.config_name(), &new.dtype.config_name());
    }
    // A model without batching may declare the batch as an ordinary dimension.
    let whole = old.batching != new.batching && are_dims_compatible(&old.full(), &new.full());
    if !are_dims_compatible(old.dims, new.dims) && !whole {
        return mismatch("shape", &ShapeText(&old.full()), &ShapeText(&new.full()));
    }
    Ok(())
}

/// -1 matches any size; actual sizes are compared when a request is executed.
fn are_dims_compatible(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| a == b || a == -1 || b == -1)
}

/// The ensemble's signature; outputs without labels get those of the step that produces them.
pub fn with_labels(ensemble: &ModelSignature, steps: &[StepTensors<'_>]) -> ModelSignature {
    let mut signature = ensemble.clone();
    for output in signature.outputs.iter_mut().filter(|o| o.labels.is_none()) {
        output.labels = steps.iter().find_map(|step| {
            let (model_output, _) =
                step.plan.outputs.iter().find(|(_, tensor)| **tensor == *output.name)?;
            let model = &step.signature;
            model.outputs[model.output(model_output)?].labels.clone()
        });
    }
    signature
}

fn refuse_ensemble<T>(message: String) -> Result<T> {
    Err(Error::invalid(message))
}
