//! Autocomplete: adds inputs, outputs, batch size and scheduler that a configuration omits.
//!
//! Batch size: kept if given. Else, if every tensor of the file has a dynamic first dimension and no
//! configured tensor lists that dimension, it becomes 4 (setting `default-max-batch-size`), and
//! above 1 `dynamic_batching {}` is added unless a scheduler is configured.

use crate::session::{Declared, Signature};
use crate::types;
use std::fmt::Write;
use trtserver_framework::config::{Config, Decl};
use trtserver_framework::fault::Fault;
use trtserver_framework::types::type_name;
use trtserver_plugin_api::abi::types::dtype;

/// Server setting for the batch size of models that can batch and declare none.
pub const SETTING: &str = "default-max-batch-size";
const DEFAULT_BATCH: usize = 4;

/// Whether the file has to be read. A configuration with inputs and outputs is complete: without a batch size the
/// model does not batch.
pub fn is_needed(config: &Config) -> bool {
    config.inputs.is_empty() || config.outputs.is_empty()
}

pub fn default_batch(setting: Option<&str>) -> Result<usize, Fault> {
    let Some(text) = setting else { return Ok(DEFAULT_BATCH) };
    text.trim().parse().ok().filter(|&n: &usize| n <= i32::MAX as usize).ok_or_else(|| {
        Fault::invalid(format!("setting '{SETTING}' must be a number, 0 or more, not '{text}'"))
    })
}

/// The additions as protobuf text; `None` = nothing to add.
pub fn patch(
    config: &Config,
    signature: &Signature,
    default_batch: usize,
) -> Result<Option<String>, Fault> {
    let can_batch = can_batch(signature);
    let mut text = String::new();
    let batching = match config.max_batch_size {
        0 if can_batch && !says_unbatched(config, signature) && default_batch > 0 => {
            let _ = writeln!(text, "max_batch_size: {default_batch}");
            if default_batch > 1 && !config.facts.has_scheduler {
                text.push_str("dynamic_batching { }\n");
            }
            true
        }
        0 => false,
        _ if can_batch => true,
        _ => {
            return Err(Fault::invalid(format!(
                "autofill failed for model '{}': model does not support batching while non-zero \
                 max_batch_size is specified",
                config.model
            )));
        }
    };
    let add = |text: &mut String, field: &str, tensors: &[Declared], not: &[String]| {
        let requested = tensors.iter().filter(|tensor| !not.contains(&tensor.name));
        for tensor in requested.filter(|tensor| tensor.element != 0) {
            tensor_text(text, field, &config.model, tensor, batching)?;
        }
        Ok::<(), Fault>(())
    };
    if config.inputs.is_empty() {
        // An input that is not a dense tensor cannot be provided, so the model is unusable.
        if let Some(odd) = signature.inputs.iter().find(|input| input.element == 0) {
            return Err(Fault::unsupported(format!(
                "autofill failed for model '{}': input '{}' is not a dense tensor",
                config.model, odd.name
            )));
        }
        add(&mut text, "input", &signature.inputs, &config.facts.host_inputs)?;
    }
    if config.outputs.is_empty() {
        add(&mut text, "output", &signature.outputs, &config.facts.host_outputs)?;
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Maps and sequences are omitted from the configuration, so they do not matter.
fn can_batch(signature: &Signature) -> bool {
    let mut tensors =
        signature.inputs.iter().chain(&signature.outputs).filter(|tensor| tensor.element != 0);
    tensors.all(|tensor| tensor.dims.first() == Some(&-1))
}

/// Whether a configured tensor has as many dimensions as in the file, and thus includes the batch dimension.
fn says_unbatched(config: &Config, signature: &Signature) -> bool {
    let same_rank = |decls: &[Decl], tensors: &[Declared]| {
        decls.iter().any(|decl| {
            let of = tensors.iter().find(|tensor| tensor.name == decl.name);
            of.is_some_and(|tensor| tensor.dims.len() == decl.model_dims.len())
        })
    };
    same_rank(&config.inputs, &signature.inputs) || same_rank(&config.outputs, &signature.outputs)
}

fn tensor_text(
    text: &mut String,
    field: &str,
    model: &str,
    tensor: &Declared,
    batching: bool,
) -> Result<(), Fault> {
    let kind = types::dtype_of(tensor.element);
    if kind == dtype::INVALID {
        return Err(Fault::unsupported(format!(
            "autofill failed for model '{model}': {field} '{}' has elements of {}, which no \
             configuration can express",
            tensor.name,
            types::element_name(tensor.element)
        )));
    }
    let dims = if batching { &tensor.dims[1..] } else { &tensor.dims[..] };
    if let Some(zero) = dims.iter().find(|&&dim| dim == 0) {
        return Err(Fault::unsupported(format!(
            "autofill failed for model '{model}': {field} '{}' has a dimension of {zero}, which a \
             configuration cannot express",
            tensor.name
        )));
    }
    let _ = write!(
        text,
        "{field} {{ name: \"{}\" data_type: {} ",
        escaped(&tensor.name),
        type_name(kind)
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
        let list: Vec<String> = dims.iter().map(i64::to_string).collect();
        let _ = write!(text, "dims: [ {} ] ", list.join(", "));
    }
    text.push_str("}\n");
    Ok(())
}

/// Inside the quotes of protobuf text.
fn escaped(name: &str) -> String {
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
