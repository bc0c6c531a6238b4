//! Runs of a model that show types and shapes of its outputs, which the package does not say, and
//! whether it batches.

use crate::library::TorchLibrary;
use crate::loaded::LoadedPackage;
use crate::tensor::OwnedTensor;
use std::ptr;
use trtserver_framework::check::Element;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::InputBlocks;
use trtserver_framework::row_probe::{self, ProbeRun, ProbedInput, ProbedOutput};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::{element_count, shape_text, type_size};
use trtserver_plugin_api::abi::types::dtype;

/// Rows of the first run and of the second.
const ROWS: [i64; 2] = [2, 3];

/// Sizes of other dynamic dimensions in the two runs. A size may have to be a multiple of a power
/// of two.
const SIZES: [i64; 2] = [16, 32];

/// Type and shape of an output.
type FoundOutput = (Element, Vec<i64>);

/// Types and shapes of all outputs: a dimension is dynamic where two runs with other sizes differ.
///
/// # Errors
/// No run succeeds, or the package does not describe the inputs.
pub fn find_outputs(package: &LoadedPackage) -> Result<Vec<FoundOutput>, PluginFault> {
    let first = run_rows(package, &ProbeRun::with_zeros(&zero_shapes(package, 0)?))?;
    let second = run_rows(package, &ProbeRun::with_zeros(&zero_shapes(package, 1)?))?;
    let merged = first.into_iter().zip(second).map(|(first, second)| {
        let (element, dims, other) = (first.element, first.shape, second.shape);
        if dims.len() != other.len() {
            return (element, vec![-1; dims.len()]);
        }
        let merge = |(own, other): (&i64, &i64)| if own == other { *own } else { -1 };
        (element, dims.iter().zip(&other).map(merge).collect())
    });
    Ok(merged.collect())
}

/// # Errors
/// Why the first dimension of the tensors is not a batch.
pub fn expect_batch(package: &LoadedPackage) -> Result<(), String> {
    let inputs: Vec<ProbedInput<'_>> = package
        .signature
        .inputs
        .iter()
        .map(|input| ProbedInput {
            name: &input.name,
            dims: input.dims.as_deref().unwrap_or_default(),
            dim_names: &[],
        })
        .collect();
    row_probe::expect_batch(&inputs, |run| {
        let outputs = run_rows(package, run)?;
        let named = package.signature.outputs.iter().zip(outputs);
        let probed = named.map(|(own, RowOutput { element, shape, elements })| {
            let dtype = if let Element::Known(dtype) = element { dtype } else { dtype::INVALID };
            ProbedOutput { name: own.name.clone(), shape, dtype, elements }
        });
        Ok(probed.collect())
    })
}

/// Shapes of the first or the second run.
fn zero_shapes(package: &LoadedPackage, nth: usize) -> Result<Vec<Vec<i64>>, PluginFault> {
    let Some(code) = &package.code else {
        return Err(PluginFault::unsupported(
            "the package lacks the generated code (X.wrapper.cpp), which alone says types and shapes of its inputs: \
             write inputs and outputs into the configuration",
        ));
    };
    let shapes = code.iter().map(|input| {
        let dims = input.dims.iter().enumerate().map(|(at, dim)| match (at, dim.size) {
            (0, -1) => ROWS[nth].clamp(dim.bounds.lower, dim.bounds.upper),
            (_, -1) => SIZES[nth].clamp(dim.bounds.lower, dim.bounds.upper),
            (_, fixed) => fixed,
        });
        dims.collect()
    });
    Ok(shapes.collect())
}

/// An output of a run.
struct RowOutput {
    element: Element,
    shape: Vec<i64>,
    /// Only of runs that compare results.
    elements: Vec<u8>,
}

fn run_rows(package: &LoadedPackage, run: &ProbeRun<'_>) -> Result<Vec<RowOutput>, PluginFault> {
    let (compiled, torch, shapes) = (&package.compiled, &*package.compiled.torch, run.shapes);
    expect_bounds(package, shapes)?;
    package.links.check(shapes, |at| &package.signature.inputs[at].name)?;
    let mut blocks = InputBlocks::default();
    let mut tensors = Vec::new();
    for (at, (input, shape)) in package.signature.inputs.iter().zip(shapes).enumerate() {
        let Element::Known(dtype) = input.element else {
            return Err(PluginFault::unsupported(format!(
                "input '{}' has elements of a type that the server lacks: {:?}",
                input.name, input.element
            )));
        };
        let number = torch.dtypes.number(dtype).unwrap_or_default();
        let bytes = element_count(shape).unwrap_or(0) * type_size(dtype);
        let data = blocks.block(at, bytes);
        // SAFETY: the block has so many bytes, and outlives the run, which takes the tensor.
        tensors.push(unsafe {
            run.write_input(dtype, std::slice::from_raw_parts_mut(data, bytes));
            OwnedTensor::over(torch, number, shape, data)?
        });
    }
    let mut raw: Vec<_> = tensors.into_iter().map(OwnedTensor::into_raw).collect();
    let mut outputs = Vec::new();
    // SAFETY: the tensors were just made.
    unsafe { compiled.run(&mut raw, &mut outputs, 1)? };
    let owned = outputs.iter_mut().map(|raw| {
        // SAFETY: an output of the run, owned by this code alone.
        unsafe { OwnedTensor::from_raw(torch, std::mem::replace(raw, ptr::null_mut())) }
    });
    let owned: Vec<OwnedTensor<'_>> = owned.collect::<Result<_, _>>()?;
    owned.iter().map(|tensor| read_output(torch, tensor, run)).collect()
}

fn read_output(
    torch: &TorchLibrary,
    tensor: &OwnedTensor<'_>,
    run: &ProbeRun<'_>,
) -> Result<RowOutput, PluginFault> {
    let mut buffer = [0; MAX_RANK];
    let (number, rank) = tensor.describe(&mut buffer)?;
    let shape = buffer[..rank].to_vec();
    let Some(dtype) = torch.dtypes.dtype(number) else {
        let element = Element::Foreign(format!("torch type {number}"));
        return Ok(RowOutput { element, shape, elements: Vec::new() });
    };
    let mut elements = vec![0; run.compared_bytes(dtype, &shape)];
    // SAFETY: the block has the bytes of the tensor's elements, or none.
    unsafe { tensor.copy_to(number, &shape, elements.as_mut_ptr(), elements.len())? };
    Ok(RowOutput { element: Element::Known(dtype), shape, elements })
}

/// # Errors
/// A size is outside of what the model was compiled for.
fn expect_bounds(package: &LoadedPackage, shapes: &[Vec<i64>]) -> Result<(), PluginFault> {
    let inputs = package.signature.inputs.iter().zip(package.code.iter().flatten()).zip(shapes);
    for ((input, code), shape) in inputs {
        if code.dims.iter().zip(shape).any(|(dim, size)| !dim.bounds.allows(*size)) {
            return Err(PluginFault::invalid(format!(
                "input '{}' of shape {} is outside of the sizes that the model was compiled for",
                input.name,
                shape_text(shape)
            )));
        }
    }
    Ok(())
}
