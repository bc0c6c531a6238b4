//! Runs a model with a few rows, to find out whether its first dimension is a batch.

use crate::compiled::{Compiled, Run};
use crate::network::{DeclaredTensor, Signature};
use crate::tensor::Tensor;
use crate::types::to_element;
use trtserver_framework::check::Element;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::CacheLine;
use trtserver_framework::row_probe::{self, ProbeRun, ProbedInput, ProbedOutput};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::{element_count, type_size};
use trtserver_plugin_api::abi::types::dtype;

/// # Errors
/// Why the first dimension is not a batch.
pub fn expect_batch(compiled: &Compiled, signature: &Signature) -> Result<(), String> {
    row_probe::expect_batch(&probed_inputs(signature), |run| run_probe(compiled, signature, run))
}

/// # Errors
/// An output has another number of rows than the run, or no run succeeds.
pub fn expect_rows(compiled: &Compiled, signature: &Signature) -> Result<(), String> {
    row_probe::expect_rows(&probed_inputs(signature), |run| run_probe(compiled, signature, run))
}

fn probed_inputs(signature: &Signature) -> Vec<ProbedInput<'_>> {
    let inputs = signature.inputs.iter().map(|input| ProbedInput {
        name: &input.name,
        dims: input.dims.as_deref().unwrap_or_default(),
        dim_names: &[],
    });
    inputs.collect()
}

fn run_probe(
    compiled: &Compiled,
    signature: &Signature,
    probe: &ProbeRun<'_>,
) -> Result<Vec<ProbedOutput>, PluginFault> {
    // Dropped after the run, which uses it.
    let mut memory: Vec<Vec<CacheLine>> = Vec::new();
    let mut run = Run::new(compiled)?;
    for (input, shape) in signature.inputs.iter().zip(probe.shapes) {
        let Element::Known(dtype) = to_element(input.port.element) else {
            return Err(PluginFault::unsupported(format!(
                "input '{}' has a type without zeros",
                input.name
            )));
        };
        let bytes = element_count(shape).unwrap_or(0) * type_size(dtype);
        let mut block = vec![CacheLine::EMPTY; bytes.div_ceil(size_of::<CacheLine>())];
        let data = block.as_mut_ptr().cast::<u8>();
        // SAFETY: the block has this size, and lives until the run is dropped.
        unsafe {
            probe.write_input(dtype, std::slice::from_raw_parts_mut(data, bytes));
            let tensor = Tensor::over(run.library(), input.port, shape, data)?;
            run.set_input(input.port.index, &tensor)?;
        }
        memory.push(block);
    }
    run.execute()?;
    let read = |output: &DeclaredTensor| {
        let mut buffer = [0; MAX_RANK];
        let tensor = run.output(output.port.index)?;
        let rank = tensor.shape(&mut buffer)?;
        let (shape, name) = (buffer[..rank].to_vec(), output.name.clone());
        let Element::Known(dtype) = to_element(output.port.element) else {
            return Ok(ProbedOutput { name, shape, dtype: dtype::INVALID, elements: Vec::new() });
        };
        let elements = read_elements(&tensor, probe.compared_bytes(dtype, &shape))?;
        Ok(ProbedOutput { name, shape, dtype, elements })
    };
    let outputs = signature.outputs.iter().map(read).collect();
    drop(run);
    drop(memory);
    outputs
}

fn read_elements(tensor: &Tensor, bytes: usize) -> Result<Vec<u8>, PluginFault> {
    let (data, held) = tensor.data()?;
    if bytes == 0 || bytes > held {
        return Ok(Vec::new());
    }
    // SAFETY: the tensor holds this many bytes at least, and is alive during the copy.
    Ok(unsafe { std::slice::from_raw_parts(data, bytes) }.to_vec())
}
