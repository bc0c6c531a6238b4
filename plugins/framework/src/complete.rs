//! Autocomplete: adds inputs, outputs, batch size and scheduler that a configuration omits.
//!
//! Batch size: kept if given. Else it becomes the default of the plugin (setting
//! `default-max-batch-size`) if the first dimension of every tensor is a batch dimension: dynamic,
//! of one name in all tensors (or without a name in all), in no configured tensor's dims, and if
//! runs of several rows show that they are independent (`row_probe.rs`). A model that batches more
//! than one row gets `dynamic_batching {}` unless a scheduler is configured, or the names contradict
//! its batch size.
//!
//! A dimension of 0, which no configuration can express, is added as -1; the file still decides
//! which shapes run.

use crate::check::{Dims, Element, ModelTensors, TensorDeclaration};
use crate::config::{Config, ConfiguredTensor};
use crate::fault::PluginFault;
use crate::types::{shape_text, type_name};
use std::fmt::Write;
use trtserver_plugin_api::author::Scope;

/// Server setting for the batch size of models that can batch and declare none.
pub const SETTING: &str = "default-max-batch-size";

/// Whether the file has to be read. A configuration with inputs and outputs is complete: without a
/// batch size the model does not batch.
pub fn is_needed(config: &Config) -> bool {
    config.inputs.is_empty() || config.outputs.is_empty()
}

/// The value of the setting [`SETTING`], else `default`.
pub fn default_batch(setting: Option<&str>, default: usize) -> Result<usize, PluginFault> {
    let Some(text) = setting else { return Ok(default) };
    text.trim().parse().ok().filter(|&n: &usize| n <= i32::MAX as usize).ok_or_else(|| {
        PluginFault::invalid(format!(
            "setting '{SETTING}' must be a number, 0 or more, not '{text}'"
        ))
    })
}

/// What completion adds to a configuration.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ConfigAdditions {
    /// Protobuf text; `None` = nothing to add.
    pub text: Option<String>,
    /// Log lines: why the model does not batch, which outputs are left out.
    pub notes: Vec<String>,
}

impl ConfigAdditions {
    /// Logs the notes and returns the text.
    pub fn log(self, log: &Scope, model: &str) -> Option<String> {
        for note in &self.notes {
            log.info(format_args!("model '{model}': {note}"));
        }
        self.text
    }
}

/// The additions. `expect_batch` runs the model with several rows; it returns why they are not a
/// batch, and is called only if everything else says that they are.
///
/// # Errors
/// A tensor that a configuration cannot express, no output but such, or a batch size for a model that cannot batch. The
/// caller adds which model.
pub fn config_patch<T: TensorDeclaration>(
    config: &Config,
    tensors: &ModelTensors<'_, T>,
    default_batch: usize,
    expect_batch: impl FnOnce() -> Result<(), String>,
) -> Result<ConfigAdditions, PluginFault> {
    let mut additions = ConfigAdditions::default();
    let mut text = String::new();
    if config.outputs.is_empty() {
        expect_dense_output(tensors.outputs)?;
    }
    let rows = match config.max_batch_size {
        0 if default_batch == 0 || says_unbatched(config, tensors) => 0,
        0 => match find_batch(tensors, expect_batch) {
            Ok(()) => {
                let _ = writeln!(text, "max_batch_size: {default_batch}");
                default_batch
            }
            Err(why) => {
                additions.notes.push(format!("max_batch_size is completed as 0: {why}"));
                0
            }
        },
        rows => expect_batch_dimension(tensors).map(|()| rows).map_err(|why| {
            PluginFault::invalid(format!(
                "model does not support batching while non-zero max_batch_size is specified: {why}"
            ))
        })?,
    };
    if rows > 1 && !config.facts.has_scheduler {
        match expect_one_name(tensors) {
            Ok(()) => text.push_str("dynamic_batching { }\n"),
            Err(why) => additions.notes.push(format!(
                "dynamic_batching is not completed: {why}; a configuration with dynamic_batching {{ }} overrides this"
            )),
        }
    }
    add_tensors(config, tensors, rows > 0, &mut text)?;
    if config.outputs.is_empty() {
        additions.notes.extend(tensors.outputs.iter().filter_map(left_out));
    }
    additions.text = Some(text).filter(|text| !text.is_empty());
    Ok(additions)
}

/// # Errors
/// Why the first dimension of the tensors is not a batch.
fn find_batch<T: TensorDeclaration>(
    tensors: &ModelTensors<'_, T>,
    expect_batch: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    expect_batch_dimension(tensors)?;
    expect_one_name(tensors)
        .and_then(|()| expect_batch())
        .map_err(|why| format!("{why}; a configuration with a max_batch_size overrides this"))
}

/// Adds the inputs and outputs that the configuration lacks.
fn add_tensors<T: TensorDeclaration>(
    config: &Config,
    tensors: &ModelTensors<'_, T>,
    batching: bool,
    text: &mut String,
) -> Result<(), PluginFault> {
    let mut add = |field: &str, tensors: &[T], not: &[String]| {
        let requested = tensors.iter().filter(|tensor| !not.iter().any(|n| n == tensor.name()));
        for tensor in requested.filter(|tensor| is_dense(*tensor)) {
            tensor_text(text, field, tensor, batching)?;
        }
        Ok::<(), PluginFault>(())
    };
    if config.inputs.is_empty() {
        // An input that is not a dense tensor cannot be provided, so the model is unusable.
        if let Some(odd) = tensors.inputs.iter().find(|input| !is_dense(*input)) {
            return Err(PluginFault::unsupported(format!(
                "input '{}' is not a dense tensor",
                odd.name()
            )));
        }
        add("input", tensors.inputs, &config.facts.host_inputs)?;
    }
    if config.outputs.is_empty() {
        add("output", tensors.outputs, &config.facts.host_outputs)?;
    }
    Ok(())
}

/// # Errors
/// No output can be sent to clients: the model would load and could not be asked for anything.
fn expect_dense_output<T: TensorDeclaration>(outputs: &[T]) -> Result<(), PluginFault> {
    match outputs.first().and_then(left_out) {
        Some(first) if !outputs.iter().any(is_dense) => Err(PluginFault::unsupported(format!(
            "the model has no output that can be sent: {first}"
        ))),
        _ => Ok(()),
    }
}

/// What the log says of an output that is left out.
fn left_out<T: TensorDeclaration>(output: &T) -> Option<String> {
    let Element::NotDense(what) = output.element() else { return None };
    Some(format!(
        "output '{}' is {what} and left out: only dense tensors can be sent to clients{}",
        output.name(),
        T::NOT_DENSE_ADVICE
    ))
}

fn is_dense<T: TensorDeclaration>(tensor: &T) -> bool {
    !matches!(tensor.element(), Element::NotDense(_))
}

/// Tensors that are not dense are omitted from the configuration, so they do not matter.
fn dense_tensors<'a, T: TensorDeclaration>(
    tensors: &ModelTensors<'a, T>,
) -> impl Iterator<Item = (&'static str, &'a T)> {
    let inputs = tensors.inputs.iter().map(|input| ("input", input));
    let outputs = tensors.outputs.iter().map(|output| ("output", output));
    inputs.chain(outputs).filter(|(_, tensor)| is_dense(*tensor))
}

/// # Errors
/// Names the first tensor whose first dimension is not dynamic.
fn expect_batch_dimension<T: TensorDeclaration>(
    tensors: &ModelTensors<'_, T>,
) -> Result<(), String> {
    let is_fixed = |(_, tensor): &(_, &T)| !matches!(tensor.dims(), Dims::Known([-1, ..]));
    match dense_tensors(tensors).find(is_fixed) {
        None => Ok(()),
        Some((kind, tensor)) => Err(match tensor.dims() {
            Dims::Known(dims) => format!(
                "the first dimension of {kind} '{}' of shape {} is not dynamic",
                tensor.name(),
                shape_text(dims)
            ),
            _ => format!("{kind} '{}' has no known first dimension", tensor.name()),
        }),
    }
}

/// # Errors
/// Names two tensors whose first dimensions have different names: only one of them is the batch.
fn expect_one_name<T: TensorDeclaration>(tensors: &ModelTensors<'_, T>) -> Result<(), String> {
    let mut all = dense_tensors(tensors);
    let Some((kind, first)) = all.next() else { return Ok(()) };
    let name_of = |tensor: &T| match tensor.first_dim_name() {
        Some(name) => format!("is named '{name}'"),
        None => "has no name".to_owned(),
    };
    match all.find(|(_, tensor)| tensor.first_dim_name() != first.first_dim_name()) {
        None => Ok(()),
        Some((other_kind, other)) => Err(format!(
            "the first dimension of {kind} '{}' {} in the file, that of {other_kind} '{}' {}",
            first.name(),
            name_of(first),
            other.name(),
            name_of(other)
        )),
    }
}

/// Whether a configured tensor has as many dimensions as in the file, and thus includes the batch
/// dimension.
fn says_unbatched<T: TensorDeclaration>(config: &Config, tensors: &ModelTensors<'_, T>) -> bool {
    let same_rank = |decls: &[ConfiguredTensor], tensors: &[T]| {
        decls.iter().any(|decl| {
            let of = tensors.iter().find(|tensor| tensor.name() == decl.name);
            let rank = of.and_then(|tensor| known(tensor.dims())).map(<[i64]>::len);
            rank == Some(decl.model_dims.len())
        })
    };
    same_rank(&config.inputs, tensors.inputs) || same_rank(&config.outputs, tensors.outputs)
}

fn known(dims: Dims<'_>) -> Option<&[i64]> {
    match dims {
        Dims::Known(dims) => Some(dims),
        Dims::ScalarOrUnknown => Some(&[]),
        Dims::Unknown => None,
    }
}

fn tensor_text<T: TensorDeclaration>(
    text: &mut String,
    field: &str,
    tensor: &T,
    batching: bool,
) -> Result<(), PluginFault> {
    let unsupported = |what: String| {
        PluginFault::unsupported(format!(
            "{field} '{}' has {what}, which no configuration can express",
            tensor.name()
        ))
    };
    let element = match tensor.element() {
        Element::Known(dtype) => Ok(dtype),
        Element::Foreign(name) => Err(format!("elements of {name}")),
        Element::Unknown | Element::NotDense(_) => Err("elements of an unknown type".to_owned()),
    };
    let dtype = element.map_err(unsupported)?;
    let dims = known(tensor.dims())
        .ok_or_else(|| unsupported("an unknown number of dimensions".to_owned()))?;
    let dims = &dims[usize::from(batching)..];
    let _ = write!(
        text,
        "{field} {{ name: \"{}\" data_type: {} ",
        escape_name(tensor.name()),
        type_name(dtype)
    );
    // A configuration must have dims. With batching, one element per row is a reshape to no
    // dimensions. Without batching such a reshape is not allowed, so `dims: [1]` stands for a
    // scalar.
    if dims.is_empty() {
        text.push_str(if batching {
            "dims: [ 1 ] reshape { shape: [ ] } "
        } else {
            "dims: [ 1 ] "
        });
    } else {
        let list = dims.iter().map(|&dim| if dim == 0 { -1 } else { dim }.to_string());
        let list: Vec<String> = list.collect();
        let _ = write!(text, "dims: [ {} ] ", list.join(", "));
    }
    text.push_str("}\n");
    Ok(())
}

/// Inside the quotes of protobuf text.
pub fn escape_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', byte as char]),
            0x20..0x7f => out.push(byte as char),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out
}

#[cfg(test)]
#[path = "complete_tests.rs"]
mod tests;
