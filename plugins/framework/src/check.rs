//! The tensors that a model's file declares against its configuration, and the plan for execution
//! that results.
//!
//! Every configured tensor must exist in the file with the same type and a compatible shape; every
//! input that the file requires must be configured or added by the host. Outputs may be omitted.

use crate::config::{Config, ConfiguredTensor};
use crate::fault::PluginFault;
use crate::slot::{ConfiguredShape, TensorPlan, TensorSlot};
use crate::types::{shape_text, type_name};

/// A tensor as the model's file declares it.
pub trait TensorDeclaration {
    /// How the framework names it in a run.
    type Handle;

    /// What a file says of the shapes of outputs is a hint: exporters write wrong ones, and the
    /// framework runs such files. The configuration wins over it.
    const OUTPUT_SHAPES_ARE_HINTS: bool = false;

    fn name(&self) -> &str;

    fn element(&self) -> Element;

    fn dims(&self) -> Dims<'_>;

    /// Ends messages about a tensor that is not dense: how to get a file without it.
    const NOT_DENSE_ADVICE: &str = "";

    /// The name that the file gives the first dimension, if it is dynamic and has one.
    fn first_dim_name(&self) -> Option<&str> {
        None
    }

    /// `None` for types that the framework lacks.
    fn handle(&self, dtype: u32) -> Option<Self::Handle>;

    /// What an error about shapes begins with. `kind` is `input` or `output`; `full` is the
    /// configuration's shape.
    fn shape_error(&self, model: &str, kind: &str, full: &[i64]) -> String {
        let _ = (kind, full);
        format!("model '{model}', tensor '{}'", self.name())
    }
}

/// The type of a tensor's elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// One of the interface's types.
    Known(u32),
    /// The file does not say.
    Unknown,
    /// The name of a type that the interface lacks.
    Foreign(String),
    /// No dense tensor, but this.
    NotDense(&'static str),
}

/// The shape of a tensor in the file, batch dimension first if the model batches, -1 = dynamic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dims<'a> {
    Known(&'a [i64]),
    /// The file does not say how many dimensions there are.
    Unknown,
    /// No dimensions, or the file does not say how many: the framework reports both alike.
    ScalarOrUnknown,
}

/// What a file declares.
#[derive(Debug)]
pub struct ModelTensors<'a, T> {
    pub inputs: &'a [T],
    /// Inputs with a default value.
    pub defaulted: &'a [T],
    pub outputs: &'a [T],
}

/// # Errors
/// A tensor that is missing or not in the file, or another type or shape than the file's.
pub fn check_tensors<T: TensorDeclaration>(
    config: &Config,
    tensors: &ModelTensors<'_, T>,
) -> Result<TensorPlan<T::Handle>, PluginFault> {
    let known: Vec<&T> = tensors.inputs.iter().chain(tensors.defaulted).collect();
    let names = TensorNames { config, kind: "input", known: &known };
    names.expect_enough()?;
    let mut inputs = names.resolve(&config.inputs)?;
    for (name, dtype) in &config.facts.batch_inputs {
        names.handle(name, *dtype)?;
    }
    let missing: Vec<&str> = tensors
        .inputs
        .iter()
        .map(TensorDeclaration::name)
        .filter(|name| !config.inputs.iter().any(|decl| decl.name == *name))
        .filter(|name| !config.facts.host_inputs.iter().any(|own| own == name))
        .collect();
    if !missing.is_empty() {
        return Err(PluginFault::invalid(format!(
            "unable to load model '{}', configuration expects {} inputs, model provides {}; not \
             configured: {}",
            config.model,
            config.inputs.len(),
            tensors.inputs.len(),
            missing.join(", ")
        )));
    }
    for slot in &mut inputs {
        slot.optional |= tensors.defaulted.iter().any(|input| input.name() == slot.name);
    }
    // Tensors added by the host are found by name, after the configured ones.
    for input in &known {
        if !inputs.iter().any(|slot| slot.name == input.name()) {
            inputs.extend(host_slot(*input));
        }
    }

    let outputs: Vec<&T> = tensors.outputs.iter().collect();
    let names = TensorNames { config, kind: "output", known: &outputs };
    let mut plan_outputs = names.resolve(&config.outputs)?;
    for output in &outputs {
        if !plan_outputs.iter().any(|slot| slot.name == output.name()) {
            plan_outputs.extend(host_slot(*output));
        }
    }
    for slot in &mut plan_outputs {
        slot.passed = known.iter().any(|input| input.name() == slot.name);
    }
    let whole_batch = !config.facts.batch_inputs.is_empty()
        || inputs.iter().chain(&plan_outputs).any(|slot| slot.flat);
    let batching = config.max_batch_size > 0;
    let notes = plan_outputs.iter().filter_map(shape_contradiction).collect();
    Ok(TensorPlan { inputs, outputs: plan_outputs, batching, whole_batch, notes })
}

/// A tensor that the configuration does not list, as the file declares it. `None` if the plugin
/// interface lacks its type: such a tensor cannot be requested.
fn host_slot<T: TensorDeclaration>(declared: &T) -> Option<TensorSlot<T::Handle>> {
    let Element::Known(dtype) = declared.element() else { return None };
    let (dims, unranked) = slot_dims(declared.dims());
    Some(TensorSlot {
        name: declared.name().to_owned(),
        handle: declared.handle(dtype)?,
        dtype,
        dims,
        unranked,
        scalar: false,
        reshape: None,
        optional: true,
        flat: false,
        passed: false,
        configured: None,
    })
}

/// Shape of a slot, and whether it is unknown.
fn slot_dims(dims: Dims<'_>) -> (Vec<i64>, bool) {
    match dims {
        Dims::Known(dims) => (dims.to_vec(), false),
        Dims::Unknown | Dims::ScalarOrUnknown => (Vec::new(), true),
    }
}

/// What the log says of an output whose configured shape contradicts the file's.
fn shape_contradiction<H>(slot: &TensorSlot<H>) -> Option<String> {
    let configured = slot.configured.as_ref()?;
    let declared = configured.contradicts.as_ref()?;
    Some(format!(
        "output '{}': the file declares shape {}, the model configuration specifies {}, which is used",
        slot.name,
        shape_text(declared),
        shape_text(&configured.dims)
    ))
}

struct TensorNames<'a, T> {
    config: &'a Config,
    kind: &'a str,
    known: &'a [&'a T],
}

impl<T: TensorDeclaration> TensorNames<'_, T> {
    /// # Errors
    /// The configuration has more inputs than the file.
    fn expect_enough(&self) -> Result<(), PluginFault> {
        let is_known = |name: &&str| self.known.iter().any(|known| known.name() == *name);
        let configured = self.config.inputs.iter().map(|decl| decl.name.as_str());
        let added = self.config.facts.host_inputs.iter().map(String::as_str);
        let all: Vec<&str> = configured.chain(added).collect();
        let (expected, provided) = (all.len(), self.known.len());
        let unknown = all.iter().find(|name| !is_known(name));
        match unknown.filter(|_| expected > provided) {
            None => Ok(()),
            Some(name) => Err(PluginFault::invalid(format!(
                "unable to load model '{}', configuration expects {expected} inputs, model provides \
                 {provided}; {}",
                self.config.model,
                self.unknown_name(name)
            ))),
        }
    }

    fn unknown_name(&self, name: &str) -> String {
        let allowed: Vec<&str> = self.known.iter().map(|known| known.name()).collect();
        let (kind, allowed) = (self.kind, allowed.join(", "));
        format!("unexpected inference {kind} '{name}', allowed {kind}s are: {allowed}")
    }

    fn resolve(
        &self,
        decls: &[ConfiguredTensor],
    ) -> Result<Vec<TensorSlot<T::Handle>>, PluginFault> {
        decls.iter().map(|decl| self.one(decl)).collect()
    }

    /// The tensor of the file, which must have the type `dtype`.
    fn handle(&self, name: &str, dtype: u32) -> Result<(&T, T::Handle), PluginFault> {
        let model = &self.config.model;
        let Some(declared) = self.known.iter().find(|known| known.name() == name) else {
            let why = self.unknown_name(name);
            return Err(PluginFault::invalid(format!("unable to load model '{model}': {why}")));
        };
        let expected = match declared.element() {
            Element::NotDense(what) => {
                return Err(PluginFault::unsupported(format!(
                    "model '{model}', tensor '{name}': the model has {what} here; only dense tensors are \
                     supported{}",
                    T::NOT_DENSE_ADVICE
                )));
            }
            Element::Foreign(name) => Err(name),
            Element::Known(known) if known != dtype => Err(type_name(known)),
            Element::Known(_) | Element::Unknown => {
                declared.handle(dtype).ok_or_else(|| "unknown".to_owned())
            }
        };
        let handle = expected.map_err(|expected| {
            PluginFault::invalid(format!(
                "unable to load model '{model}', configuration expects datatype {} for {} '{name}', model \
                 provides {expected}",
                type_name(dtype),
                self.kind
            ))
        })?;
        Ok((*declared, handle))
    }

    fn one(&self, decl: &ConfiguredTensor) -> Result<TensorSlot<T::Handle>, PluginFault> {
        let (declared, handle) = self.handle(&decl.name, decl.dtype)?;
        let is_output = self.kind == "output";
        let cut = is_output && self.config.facts.batch_outputs.contains(&decl.name);
        let mut configured = None;
        let scalar = match decl.ragged {
            true => self.expect_flat(decl, declared)?,
            // What a run returns has as many elements as the source inputs, in any shape.
            false if cut => false,
            false if is_output && T::OUTPUT_SHAPES_ARE_HINTS => {
                let agreed = self.agree(decl, declared);
                configured = Some(self.configured_shape(decl, declared.dims()));
                agreed.unwrap_or(false)
            }
            false => self.agree(decl, declared)?,
        };
        let reshape = (!decl.ragged && decl.dims != decl.model_dims)
            .then(|| (decl.dims.clone(), decl.model_dims.clone()));
        let (mut dims, unranked) = slot_dims(declared.dims());
        if let Some(ConfiguredShape { dims: own, contradicts: Some(_), .. }) = &configured {
            dims.clone_from(own);
        }
        Ok(TensorSlot {
            flat: decl.ragged || cut,
            name: decl.name.clone(),
            handle,
            dtype: decl.dtype,
            dims,
            unranked,
            scalar,
            reshape,
            optional: decl.optional,
            passed: false,
            configured,
        })
    }

    /// A shape that says the same as the file's may be the file's, written by completion: it does
    /// not bind.
    fn configured_shape(&self, decl: &ConfiguredTensor, declared: Dims<'_>) -> ConfiguredShape {
        let dims = self.full_dims(decl);
        // Completion writes `dims: [ 1 ]` for a scalar.
        let scalar = self.config.max_batch_size == 0 && dims == [1];
        let known = match declared {
            Dims::Known(known) => known,
            Dims::ScalarOrUnknown if scalar => &[],
            Dims::Unknown | Dims::ScalarOrUnknown => {
                return ConfiguredShape { dims, binding: true, contradicts: None };
            }
        };
        let all = |alike: fn(i64, i64) -> bool| {
            let alike = |(&known, &own): (&i64, &i64)| alike(known, own);
            known.is_empty() && scalar
                || known.len() == dims.len() && known.iter().zip(&dims).all(alike)
        };
        let binding = !all(|known, own| known == own || (known, own) == (0, -1));
        let contradicts = !all(|known, own| known == -1 || own == -1 || known == own);
        ConfiguredShape { binding, contradicts: contradicts.then(|| known.to_vec()), dims }
    }

    /// The configured shape of a tensor of the model, batch dimension first.
    fn full_dims(&self, decl: &ConfiguredTensor) -> Vec<i64> {
        let batch = (self.config.max_batch_size > 0).then_some(-1);
        batch.into_iter().chain(decl.model_dims.iter().copied()).collect()
    }

    /// A ragged input must have one dimension of any size in the file. False: it is not a scalar.
    fn expect_flat(&self, decl: &ConfiguredTensor, declared: &T) -> Result<bool, PluginFault> {
        match declared.dims() {
            Dims::Unknown | Dims::Known([-1]) => Ok(false),
            other => Err(PluginFault::invalid(format!(
                "unable to load model '{}', configuration expects model provides input with shape [-1] \
                 for ragged input '{}', model provides {}",
                self.config.model,
                decl.name,
                shape_text(if let Dims::Known(dims) = other { dims } else { &[] })
            ))),
        }
    }

    /// Compares shapes. True = the tensor is a scalar that the configuration writes as `dims: [1]`.
    fn agree(&self, decl: &ConfiguredTensor, declared: &T) -> Result<bool, PluginFault> {
        let batching = self.config.max_batch_size > 0;
        let one = !batching && decl.model_dims == [1];
        let known = match declared.dims() {
            // Nothing to compare: each run decides the shape.
            Dims::Unknown => return Ok(false),
            Dims::ScalarOrUnknown => return Ok(one),
            Dims::Known([]) if one => return Ok(true),
            Dims::Known(dims) => dims,
        };
        let full = self.full_dims(decl);
        let fault = |why: String| {
            let place = declared.shape_error(&self.config.model, self.kind, &full);
            Err(PluginFault::invalid(format!("{place}: {why}")))
        };
        if batching && known.first() != Some(&-1) {
            return fault(format!(
                "for the model to support batching the shape should have at least 1 dimension and the \
                 first dimension must be -1; but shape expected by the model is {}",
                shape_text(known)
            ));
        }
        let specifies = match batching {
            false => format!("shape {}", shape_text(&full)),
            true => format!(
                "an initial batch dimension because max_batch_size > 0 followed by the explicit \
                 tensor shape, making complete shape {}",
                shape_text(&full)
            ),
        };
        // A configuration cannot express a dimension of 0.
        let differs = |(&known, &requested): (&i64, &i64)| {
            known != -1 && known != requested && (known, requested) != (0, -1)
        };
        if full.len() != known.len() || known.iter().zip(&full).any(differs) {
            return fault(format!(
                "the model expects {} dimensions (shape {}) but the model configuration specifies {} \
                 dimensions ({specifies})",
                known.len(),
                shape_text(known),
                full.len(),
            ));
        }
        Ok(false)
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
pub mod tests;
