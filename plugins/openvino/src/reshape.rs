//! Other shapes than those of the file: inputs with the dims of the configuration, and a batch
//! dimension for models that were exported for one row.

use crate::network::{DeclaredTensor, Signature};
use crate::options::Options;
use trtserver_framework::config::Config;

/// Positions of the inputs that get another shape than the file's, and their shapes.
pub fn wanted_shapes(
    config: &Config,
    signature: &Signature,
    options: &Options,
) -> Vec<(usize, Vec<i64>)> {
    let inputs = signature.inputs.iter();
    let wanted = inputs.filter_map(|input| {
        let shape = wanted_shape(config, input, options)?;
        (input.dims.as_ref() != Some(&shape)).then_some((input.port.index, shape))
    });
    wanted.collect()
}

fn wanted_shape(config: &Config, input: &DeclaredTensor, options: &Options) -> Option<Vec<i64>> {
    let batching = config.max_batch_size > 0;
    let configured = config.inputs.iter().find(|tensor| tensor.name == input.name);
    if let Some(tensor) = configured.filter(|_| options.reshape_inputs) {
        let batch = batching.then_some(-1);
        return Some(batch.into_iter().chain(tensor.model_dims.iter().copied()).collect());
    }
    let mut dims = input.dims.clone()?;
    match dims.first_mut() {
        // Another number may be anything, such as the colours of an image.
        Some(first) if *first == 1 && batching && !options.fixed_batch => *first = -1,
        _ => return None,
    }
    Some(dims)
}

#[cfg(test)]
#[path = "reshape_tests.rs"]
mod tests;
