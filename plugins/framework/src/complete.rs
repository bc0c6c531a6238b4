//! Autocomplete: adds inputs, outputs, batch size and scheduler that a configuration omits.
//!
//! Batch size: kept if given. Else, if every tensor of the file has a dynamic first dimension and no
//! configured tensor lists that dimension, it becomes the default of the plugin (setting `default-max-batch-size`). A model
//! that batches more than one row gets `dynamic_batching {}` unless a scheduler is configured.
//!
//! A dimension of 0, which no configuration can express, is added as -1; the file still decides which shapes run.

use crate::check::{Declared, Dims, Element, Tensors};
use crate::config::{Config, Decl};
use crate::fault::Fault;
use crate::types::type_name;
use std::fmt::Write;

/// Server setting for the batch size of models that can batch and declare none.
pub const SETTING: &str = "default-max-batch-size";

/// Whether the file has to be read. A configuration with inputs and outputs is complete: without a batch size the
/// model does not batch.
pub fn is_needed(config: &Config) -> bool {
    config.inputs.is_empty() || config.outputs.is_empty()
}

/// The value of the setting [`SETTING`], else `default`.
pub fn default_batch(setting: Option<&str>, default: usize) -> Result<usize, Fault> {
    let Some(text) = setting else { return Ok(default) };
    text.trim().parse().ok().filter(|&n: &usize| n <= i32::MAX as usize).ok_or_else(|| {
        Fault::invalid(format!("setting '{SETTING}' must be a number, 0 or more, not '{text}'"))
    })
}

/// The additions as protobuf text; `None` = nothing to add.
///
/// # Errors
/// A tensor that a configuration cannot express, or a batch size for a model that cannot batch. The caller adds which model.
pub fn patch<T: Declared>(
    config: &Config,
    tensors: &Tensors<'_, T>,
    default_batch: usize,
) -> Result<Option<String>, Fault> {
    let can_batch = can_batch(tensors);
    let mut text = String::new();
    let rows = match config.max_batch_size {
        0 if can_batch && !says_unbatched(config, tensors) && default_batch > 0 => {
            let _ = writeln!(text, "max_batch_size: {default_batch}");
            default_batch
        }
        rows if rows == 0 || can_batch => rows,
        _ => {
            return Err(Fault::invalid(
                "model does not support batching while non-zero max_batch_size is specified",
            ));
        }
    };
    if rows > 1 && !config.facts.has_scheduler {
        text.push_str("dynamic_batching { }\n");
    }
    let batching = rows > 0;
    let add = |text: &mut String, field: &str, tensors: &[T], not: &[String]| {
        let requested = tensors.iter().filter(|tensor| !not.iter().any(|n| n == tensor.name()));
        for tensor in requested.filter(|tensor| is_dense(*tensor)) {
            tensor_text(text, field, tensor, batching)?;
        }
        Ok::<(), Fault>(())
    };
    if config.inputs.is_empty() {
        // An input that is not a dense tensor cannot be provided, so the model is unusable.
        if let Some(odd) = tensors.inputs.iter().find(|input| !is_dense(*input)) {
            return Err(Fault::unsupported(format!(
                "input '{}' is not a dense tensor",
                odd.name()
            )));
        }
        add(&mut text, "input", tensors.inputs, &config.facts.host_inputs)?;
    }
    if config.outputs.is_empty() {
        add(&mut text, "output", tensors.outputs, &config.facts.host_outputs)?;
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn is_dense<T: Declared>(tensor: &T) -> bool {
    !matches!(tensor.element(), Element::NotDense(_))
}

/// Tensors that are not dense are omitted from the configuration, so they do not matter.
fn can_batch<T: Declared>(tensors: &Tensors<'_, T>) -> bool {
    let mut dense = tensors.inputs.iter().chain(tensors.outputs).filter(|tensor| is_dense(*tensor));
    dense.all(|tensor| matches!(tensor.dims(), Dims::Known([-1, ..])))
}

/// Whether a configured tensor has as many dimensions as in the file, and thus includes the batch dimension.
fn says_unbatched<T: Declared>(config: &Config, tensors: &Tensors<'_, T>) -> bool {
    let same_rank = |decls: &[Decl], tensors: &[T]| {
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

fn tensor_text<T: Declared>(
    text: &mut String,
    field: &str,
    tensor: &T,
    batching: bool,
) -> Result<(), Fault> {
    let unsupported = |what: String| {
        Fault::unsupported(format!(
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
        escaped(tensor.name()),
        type_name(dtype)
    );
    // A configuration must have dims. With batching, one element per row is a reshape to no dimensions.
    // Without batching such a reshape is not allowed, so `dims: [1]` stands for a scalar.
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
pub fn escaped(name: &str) -> String {
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
