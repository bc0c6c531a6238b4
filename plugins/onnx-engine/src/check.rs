//! The model's signature against its configuration, and the plan for execution that results.
//!
//! Every configured tensor must exist in the file with the same type and a compatible shape; every input that the file
//! requires must be configured or added by the host. Outputs may be omitted.

use crate::session::{Declared, Signature};
use crate::types;
use ort_sys::ONNXTensorElementDataType as Element;
use std::ffi::CString;
use trtserver_framework::config::{Config, Decl};
use trtserver_framework::fault::Fault;
use trtserver_framework::slot;
use trtserver_framework::types::{shape_text, type_name};

/// How ONNX Runtime names a tensor in a run.
#[derive(Debug, Clone)]
pub struct OnnxTensor {
    pub c_name: CString,
    pub element: Element,
}

pub type Slot = slot::Slot<OnnxTensor>;
pub type Plan = slot::Plan<OnnxTensor>;

pub fn check(config: &Config, signature: &Signature) -> Result<Plan, Fault> {
    let mut known: Vec<&Declared> = signature.inputs.iter().collect();
    known.extend(&signature.defaulted);
    let outputs: Vec<&Declared> = signature.outputs.iter().collect();

    let names = Names { config, kind: "input", known: &known };
    let mut inputs = names.resolve(&config.inputs)?;
    let missing: Vec<&str> = signature
        .inputs
        .iter()
        .map(|input| input.name.as_str())
        .filter(|name| !config.inputs.iter().any(|decl| decl.name == *name))
        .filter(|name| !config.facts.host_inputs.iter().any(|own| own == name))
        .collect();
    if !missing.is_empty() {
        return Err(Fault::invalid(format!(
            "unable to load model '{}', configuration expects {} inputs, model provides {}; not \
             configured: {}",
            config.model,
            config.inputs.len(),
            signature.inputs.len(),
            missing.join(", ")
        )));
    }
    for slot in &mut inputs {
        slot.optional |= signature.defaulted.iter().any(|input| input.name == slot.name);
    }
    // Tensors added by the host are found by name, after the configured ones.
    for input in &known {
        if !inputs.iter().any(|slot| slot.name == input.name) {
            inputs.extend(host_slot(input));
        }
    }

    let names = Names { config, kind: "output", known: &outputs };
    let mut plan_outputs = names.resolve(&config.outputs)?;
    for output in &outputs {
        if !plan_outputs.iter().any(|slot| slot.name == output.name) {
            plan_outputs.extend(host_slot(output));
        }
    }
    for slot in &mut plan_outputs {
        slot.passed = known.iter().any(|input| input.name == slot.name);
    }
    Ok(Plan { inputs, outputs: plan_outputs, batching: config.max_batch_size > 0 })
}

/// A tensor that the configuration does not list, as the file declares it. `None` if the plugin interface lacks its type:
/// such a tensor cannot be requested.
fn host_slot(declared: &Declared) -> Option<Slot> {
    let dtype = types::dtype_of(declared.element);
    Some(Slot {
        name: declared.name.clone(),
        handle: OnnxTensor { c_name: declared.c_name.clone(), element: types::element(dtype)? },
        dtype,
        dims: declared.dims.clone(),
        unranked: declared.dims.is_empty(),
        scalar: false,
        reshape: None,
        optional: true,
        passed: false,
    })
}

struct Names<'a> {
    config: &'a Config,
    kind: &'a str,
    known: &'a [&'a Declared],
}

impl Names<'_> {
    fn resolve(&self, decls: &[Decl]) -> Result<Vec<Slot>, Fault> {
        decls.iter().map(|decl| self.one(decl)).collect()
    }

    fn one(&self, decl: &Decl) -> Result<Slot, Fault> {
        let model = &self.config.model;
        let Some(declared) = self.known.iter().find(|known| known.name == decl.name) else {
            let allowed: Vec<&str> = self.known.iter().map(|known| known.name.as_str()).collect();
            let (kind, name) = (self.kind, &decl.name);
            return Err(Fault::invalid(format!(
                "unable to load model '{model}': unexpected inference {kind} '{name}', allowed {kind}s \
                 are: {}",
                allowed.join(", ")
            )));
        };
        let dtype = types::dtype_of(declared.element);
        if declared.element == 0 {
            return Err(Fault::unsupported(format!(
                "model '{model}', tensor '{}': the model has a sequence, map or sparse tensor here; \
                 only dense tensors are supported",
                decl.name
            )));
        }
        let Some(element) = types::element(dtype).filter(|_| dtype == decl.dtype) else {
            return Err(Fault::invalid(format!(
                "model '{model}', tensor '{}': the model expects data type {} but the model \
                 configuration specifies data type {}",
                decl.name,
                types::element_name(declared.element),
                type_name(decl.dtype)
            )));
        };
        let scalar = self.agree(decl, declared)?;
        let reshape =
            (decl.dims != decl.model_dims).then(|| (decl.dims.clone(), decl.model_dims.clone()));
        Ok(Slot {
            name: decl.name.clone(),
            handle: OnnxTensor { c_name: declared.c_name.clone(), element },
            dtype,
            dims: declared.dims.clone(),
            unranked: declared.dims.is_empty(),
            scalar,
            reshape,
            optional: decl.optional,
            passed: false,
        })
    }

    /// Compares shapes. True = the tensor is a scalar that the configuration writes as `dims: [1]`.
    fn agree(&self, decl: &Decl, declared: &Declared) -> Result<bool, Fault> {
        let (model, batching) = (&self.config.model, self.config.max_batch_size > 0);
        let place = format!("model '{model}', tensor '{}'", decl.name);
        let known = &declared.dims;
        if known.is_empty() {
            // Nothing to compare. An input without dimensions has no batch dimension; an output without a shape
            // in the file is common, and each run decides its shape.
            return Ok(!batching && decl.model_dims == [1]);
        }
        if batching && known[0] != -1 {
            return Err(Fault::invalid(format!(
                "{place}: for the model to support batching the shape should have at least 1 \
                 dimension and the first dimension must be -1; but shape expected by the model is {}",
                shape_text(known)
            )));
        }
        let mut full = decl.model_dims.clone();
        if batching {
            full.insert(0, -1);
        }
        let specifies = match batching {
            false => format!("shape {}", shape_text(&full)),
            true => format!(
                "an initial batch dimension because max_batch_size > 0 followed by the explicit \
                 tensor shape, making complete shape {}",
                shape_text(&full)
            ),
        };
        if full.len() != known.len() {
            return Err(Fault::invalid(format!(
                "{place}: the model expects {} dimensions (shape {}) but the model configuration \
                 specifies {} dimensions ({specifies})",
                known.len(),
                shape_text(known),
                full.len(),
            )));
        }
        if known.iter().zip(&full).any(|(&known, &requested)| known != -1 && known != requested) {
            return Err(Fault::invalid(format!(
                "{place}: the model expects shape {} but the model configuration specifies {specifies}",
                shape_text(known)
            )));
        }
        Ok(false)
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
pub mod tests;
