//! Autocomplete: inputs, outputs, batch size and scheduler that a configuration omits, from a
//! file's signature.

use crate::signature::Signature;
use trtserver_framework::check::{Dims, Element, TensorDeclaration};
use trtserver_framework::complete::{self, ConfigAdditions};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;

/// The batch size of a model that can batch and declares none, as in the v1 server
/// (docs/protocol/v1.md section 7.4).
pub const DEFAULT_BATCH: usize = 1;

/// The additions for a SavedModel. `expect_rows` runs it with several rows.
///
/// # Errors
/// A tensor that a configuration cannot express, or a batch size for a model that cannot batch.
pub fn saved_model(
    config: &Config,
    signature: &Signature,
    default_batch: usize,
    expect_rows: impl FnOnce(&Signature) -> Result<(), String>,
) -> Result<ConfigAdditions, PluginFault> {
    complete::config_patch(config, &signature.tensors(), default_batch, || expect_rows(signature))
}

/// The additions for a GraphDef, from its placeholders and the outputs that no operation consumes:
/// `ends`, with types and shapes as TensorFlow knows them after the import.
///
/// Such outputs include those of operations for training and saving. Outputs that a configuration
/// cannot express are left out unless all are such.
///
/// # Errors
/// The errors of [`saved_model`].
pub fn graph_def(
    config: &Config,
    ends: Signature,
    default_batch: usize,
    expect_rows: impl FnOnce(&Signature) -> Result<(), String>,
) -> Result<ConfigAdditions, PluginFault> {
    let Signature { inputs, mut outputs, method } = ends;
    let can_express = |output: &_| {
        matches!(TensorDeclaration::element(output), Element::Known(_))
            && matches!(TensorDeclaration::dims(output), Dims::Known(dims) if !dims.contains(&0))
    };
    if outputs.iter().any(can_express) {
        outputs.retain(can_express);
    }
    saved_model(config, &Signature { inputs, outputs, method }, default_batch, expect_rows)
}

#[cfg(test)]
#[path = "complete_tests.rs"]
mod tests;
