//! Autocomplete: tensors and batch size that a configuration omits, from the engine.

use crate::engine::Engine;
use crate::tensors::EngineTensor;
use crate::types;
use std::fmt::Write;
use trtserver_framework::check::Element;
use trtserver_framework::complete::escape_name;
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::types::type_name;

/// What of an engine decides the completion.
pub struct OfferedTensors<'a> {
    pub tensors: &'a [EngineTensor],
    /// Maximum of an implicit batch dimension.
    pub implicit_batch: Option<usize>,
    /// The largest first dimension that profile 0 allows.
    pub profile_batch: Option<usize>,
}

impl OfferedTensors<'_> {
    pub fn from_engine(engine: &Engine) -> OfferedTensors<'_> {
        OfferedTensors {
            tensors: &engine.tensors,
            implicit_batch: engine.implicit_batch,
            profile_batch: max_batch(engine, 0),
        }
    }

    /// The largest batch; `None` if the engine cannot batch.
    fn max_batch(&self) -> Option<usize> {
        let dynamic = |tensor: &EngineTensor| {
            tensor.is_shape || tensor.shape.dims().first().is_some_and(|dim| *dim == -1)
        };
        self.implicit_batch.or_else(|| {
            let batches = self.tensors.iter().any(|tensor| !tensor.is_shape)
                && self.tensors.iter().all(dynamic);
            batches.then_some(self.profile_batch).flatten()
        })
    }
}

/// The largest batch that a profile of an engine with explicit batch dimension allows.
pub fn max_batch(engine: &Engine, profile: usize) -> Option<usize> {
    let is_shape = |name: &str| engine.tensors.iter().any(|t| t.name == name && t.is_shape);
    let max = engine.profiles.get(profile)?.max_batch(|name| !is_shape(name))?;
    usize::try_from(max).ok().filter(|max| *max > 0)
}

/// The additions as protobuf text; `None` = nothing to add.
///
/// # Errors
/// A tensor that a configuration cannot express, or a batch size for an engine that cannot batch.
pub fn config_patch(
    config: &Config,
    offered: &OfferedTensors<'_>,
) -> Result<Option<String>, PluginFault> {
    let max = offered.max_batch();
    let mut text = String::new();
    let batching = match (config.max_batch_size, max) {
        (0, Some(max)) if !says_unbatched(config, offered) => {
            let _ = writeln!(text, "max_batch_size: {max}");
            if max > 1 && !config.facts.has_scheduler {
                text.push_str("dynamic_batching { }\n");
            }
            true
        }
        (0, _) => false,
        (_, Some(_)) => true,
        (_, None) => {
            return Err(PluginFault::invalid(
                "model does not support batching while non-zero max_batch_size is specified",
            ));
        }
    };
    let explicit = offered.implicit_batch.is_none();
    for (field, is_input, configured, host) in [
        ("input", true, config.inputs.is_empty(), &config.facts.host_inputs),
        ("output", false, config.outputs.is_empty(), &config.facts.host_outputs),
    ] {
        let tensors = offered.tensors.iter().filter(|tensor| tensor.is_input == is_input);
        let missing = tensors.filter(|tensor| configured && !host.contains(&tensor.name));
        for tensor in missing {
            tensor_text(&mut text, field, tensor, batching && explicit)?;
        }
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// A configured tensor has as many dimensions as in the engine, so the batch dimension is one of
/// them.
fn says_unbatched(config: &Config, offered: &OfferedTensors<'_>) -> bool {
    let declared = config.inputs.iter().chain(&config.outputs);
    offered.implicit_batch.is_none()
        && declared.into_iter().any(|decl| {
            offered.tensors.iter().any(|tensor| {
                tensor.name == decl.name
                    && !tensor.is_shape
                    && tensor.shape.dims().len() == decl.model_dims.len()
            })
        })
}

fn tensor_text(
    text: &mut String,
    field: &str,
    tensor: &EngineTensor,
    skip_first: bool,
) -> Result<(), PluginFault> {
    let name = &tensor.name;
    let dtype = match types::to_element(tensor.kind) {
        Element::Known(dtype) => dtype,
        Element::Foreign(what) => {
            return Err(PluginFault::unsupported(format!(
                "{field} '{name}' has elements of {what}, which no configuration can express"
            )));
        }
        Element::Unknown | Element::NotDense(_) => {
            return Err(PluginFault::unsupported(format!(
                "{field} '{name}' has elements of an unknown type"
            )));
        }
    };
    let skip = usize::from(skip_first && !tensor.is_shape);
    let dims = tensor.shape.dims().get(skip..).unwrap_or_default();
    let (name, dtype) = (escape_name(name), type_name(dtype));
    let _ = write!(text, "{field} {{ name: \"{name}\" data_type: {dtype}");
    match dims {
        // A configuration has no scalars.
        [] if skip == 0 => text.push_str(" dims: 1"),
        [] => text.push_str(" dims: 1 reshape { }"),
        dims => dims.iter().for_each(|dim| {
            let _ = write!(text, " dims: {dim}");
        }),
    }
    text.push_str(if tensor.is_shape { " is_shape_tensor: true }\n" } else { " }\n" });
    Ok(())
}

#[cfg(test)]
#[path = "complete_tests.rs"]
mod tests;
