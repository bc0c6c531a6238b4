//! Runs a model with rows of zeros, to find out whether its first dimension is a batch.

use crate::compiled::{Compiled, Run};
use crate::network::Signature;
use crate::tensor::Tensor;
use crate::types::to_element;
use trtserver_framework::check::Element;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::CacheLine;
use trtserver_framework::row_probe::{self, ProbedInput, ProbedOutput};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::{element_count, type_size};

/// # Errors
/// Why the first dimension is not a batch.
pub fn expect_rows(compiled: &Compiled, signature: &Signature) -> Result<(), String> {
    let inputs = signature.inputs.iter().map(|input| ProbedInput {
        name: &input.name,
        dims: input.dims.as_deref().unwrap_or_default(),
        dim_names: &[],
    });
    let inputs: Vec<_> = inputs.collect();
    row_probe::expect_rows(&inputs, |shapes| run_probe(compiled, signature, shapes))
}

/// Runs the model with zeros of these shapes.
fn run_probe(
    compiled: &Compiled,
    signature: &Signature,
    shapes: &[Vec<i64>],
) -> Result<Vec<ProbedOutput>, PluginFault> {
    // Dropped after the run, which uses it.
    let mut memory: Vec<Vec<CacheLine>> = Vec::new();
    let mut run = Run::new(compiled)?;
    for (input, shape) in signature.inputs.iter().zip(shapes) {
        let Element::Known(dtype) = to_element(input.port.element) else {
            return Err(PluginFault::unsupported(format!(
                "input '{}' has a type without zeros",
                input.name
            )));
        };
        let bytes = element_count(shape).unwrap_or(0) * type_size(dtype);
        let mut block = vec![CacheLine::EMPTY; bytes.div_ceil(size_of::<CacheLine>())];
        // SAFETY: the block has this size, and lives until the run is dropped.
        unsafe {
            let tensor = Tensor::over(run.library(), input.port, shape, block.as_mut_ptr().cast())?;
            run.set_input(input.port.index, &tensor)?;
        }
        memory.push(block);
    }
    run.execute()?;
    let shape_of = |output: &crate::network::DeclaredTensor| {
        let mut buffer = [0; MAX_RANK];
        let rank = run.output(output.port.index)?.shape(&mut buffer)?;
        Ok((output.name.clone(), buffer[..rank].to_vec()))
    };
    let outputs = signature.outputs.iter().map(shape_of).collect();
    drop(run);
    drop(memory);
    outputs
}
