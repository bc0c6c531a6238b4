//! An ensemble against the models of its steps: do the tensors that it connects fit each other?

use crate::error::{Error, Result};
use crate::repository::Served;
use crate::request::{DType, ShapeText, Signature, TensorSpec};
use crate::scheduler::ensemble::StepPlan;
use std::collections::HashMap;
use std::sync::Arc;

/// A step and what serves it.
pub struct Composing<'a> {
    pub plan: &'a StepPlan,
    pub served: Arc<Served>,
}

/// A tensor as one of the models sees it.
#[derive(Clone, Copy)]
struct Seen<'a> {
    model: &'a str,
    batching: bool,
    dtype: DType,
    dims: &'a [i64],
}

impl Seen<'_> {
    /// With the batch dimension, if there is one.
    fn full(&self) -> Vec<i64> {
        self.batching.then_some(-1).into_iter().chain(self.dims.iter().copied()).collect()
    }
}

/// Checks the mapping of every step, and every tensor against the first model that has it; the ensemble's own
/// declarations come first.
///
/// # Errors
/// The first thing that does not fit, with the names of both sides.
pub fn check(ensemble: &Signature, steps: &[Composing<'_>]) -> Result<()> {
    let mut tensors: HashMap<&str, Seen<'_>> = HashMap::new();
    for spec in ensemble.inputs.iter().chain(&ensemble.outputs) {
        // The steps see what the ensemble's own reshape makes of a tensor.
        unite(ensemble, &mut tensors, &spec.name, seen(ensemble, spec, &spec.model_dims))?;
    }
    for step in steps {
        let model = &step.served.signature;
        let (name, own) = (&ensemble.model, &model.model);
        // A model without batches gets a batch as a dimension of its own, or one row at a time.
        if model.batching() && ensemble.max_batch_size > model.max_batch_size {
            return refuse(format!(
                "ensemble {name} allows maximum batch size {}, but it contains model {own} which only allows \
                 maximum batch size to be {}",
                ensemble.max_batch_size, model.max_batch_size
            ));
        }
        if step.served.decoupled() {
            return refuse(format!(
                "in ensemble {name}, model {own} is decoupled: a step has to answer exactly once"
            ));
        }
        inputs(ensemble, step, &mut tensors)?;
        for (output, tensor) in &step.plan.outputs {
            let Some(index) = model.output(output) else {
                return refuse(format!(
                    "in ensemble {name}, ensemble tensor {tensor} is mapped from non-existing output {output} \
                     in model {own}"
                ));
            };
            let spec = &model.outputs[index];
            unite(ensemble, &mut tensors, tensor, seen(model, spec, &spec.dims))?;
        }
    }
    Ok(())
}

fn inputs<'a>(
    ensemble: &Signature,
    step: &'a Composing<'_>,
    tensors: &mut HashMap<&'a str, Seen<'a>>,
) -> Result<()> {
    let model = &step.served.signature;
    let (name, own) = (&ensemble.model, &model.model);
    for (input, tensor) in &step.plan.inputs {
        if model.input(input).is_none() {
            return refuse(format!(
                "in ensemble {name}, ensemble tensor {tensor} is mapping to non-existing input {input} in \
                 model {own}"
            ));
        }
    }
    for spec in &model.inputs {
        let input = &spec.name;
        let Some((_, tensor)) = step.plan.inputs.iter().find(|(i, _)| **i == **input) else {
            if spec.optional {
                continue;
            }
            return refuse(format!(
                "in ensemble {name}, input {input} in model {own} is not mapped to any ensemble tensors"
            ));
        };
        let optional = ensemble.input(tensor).is_some_and(|i| ensemble.inputs[i].optional);
        if optional && !spec.optional {
            return refuse(format!(
                "in ensemble {name}, ensemble tensor {tensor} is an optional input of the ensemble but input \
                 {input} in model {own} is required"
            ));
        }
        unite(ensemble, tensors, tensor, seen(model, spec, &spec.dims))?;
    }
    Ok(())
}

fn seen<'a>(signature: &'a Signature, spec: &'a TensorSpec, dims: &'a [i64]) -> Seen<'a> {
    let batching = signature.batching() && !spec.shape_tensor;
    Seen { model: &signature.model, batching, dtype: spec.dtype, dims }
}

/// Notes how a model sees `tensor`, and compares that with how others do.
fn unite<'a>(
    ensemble: &Signature,
    tensors: &mut HashMap<&'a str, Seen<'a>>,
    tensor: &'a str,
    new: Seen<'a>,
) -> Result<()> {
    let old = *tensors.entry(tensor).or_insert(new);
    let complaint = |what: &str, a: &dyn std::fmt::Display, b: &dyn std::fmt::Display| {
        refuse(format!(
            "in ensemble {}, ensemble tensor {tensor}: inconsistent {what}: {a} is inferred from model {} while \
             {b} is inferred from model {}",
            ensemble.model, old.model, new.model
        ))
    };
    if old.dtype != new.dtype {
        return complaint("data type", &old.dtype.config_name(), &new.dtype.config_name());
    }
    // A model without batches may still take the batch as a dimension of its own.
    let whole = old.batching != new.batching && compatible(&old.full(), &new.full());
    if !compatible(old.dims, new.dims) && !whole {
        return complaint("shape", &ShapeText(&old.full()), &ShapeText(&new.full()));
    }
    Ok(())
}

/// -1 goes with anything: what really comes is compared when it comes.
fn compatible(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| a == b || a == -1 || b == -1)
}

/// The ensemble's signature; outputs without labels get those of the step that writes them.
pub fn with_labels(ensemble: &Signature, steps: &[Composing<'_>]) -> Signature {
    let mut signature = ensemble.clone();
    for output in signature.outputs.iter_mut().filter(|o| o.labels.is_none()) {
        output.labels = steps.iter().find_map(|step| {
            let (own, _) = step.plan.outputs.iter().find(|(_, tensor)| **tensor == *output.name)?;
            let model = &step.served.signature;
            model.outputs[model.output(own)?].labels.clone()
        });
    }
    signature
}

fn refuse<T>(message: String) -> Result<T> {
    Err(Error::invalid(message))
}
