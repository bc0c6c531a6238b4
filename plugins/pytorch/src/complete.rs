//! Autocomplete: inputs, outputs, batch size and scheduler that a configuration omits.

use crate::loaded::LoadedPackage;
use crate::zero_runs::{expect_batch, find_outputs};
use trtserver_framework::complete::{ConfigAdditions, config_patch};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;

/// Rows of a batch, unless the server or the configuration sets another limit; as Triton completes
/// other formats.
pub const DEFAULT_BATCH: usize = 4;

/// # Errors
/// A tensor that a configuration cannot express, a batch size for a model that cannot batch, or a
/// model that does not run with zeros. The caller adds which model.
pub fn complete_config(
    package: &LoadedPackage,
    config: &Config,
    default_batch: usize,
) -> Result<ConfigAdditions, PluginFault> {
    let mut signature = package.signature.clone();
    signature.adopt_numbered_names(config);
    for (output, (element, dims)) in signature.outputs.iter_mut().zip(find_outputs(package)?) {
        (output.element, output.dims) = (element, Some(dims));
    }
    let largest = package.code.iter().flatten().filter_map(|input| input.dims.first());
    let largest = largest.map(|dim| dim.bounds.upper).min().unwrap_or(i64::MAX);
    let default_batch = default_batch.min(usize::try_from(largest).unwrap_or(usize::MAX));
    config_patch(config, &signature.tensors(), default_batch, || expect_batch(package))
}
