//! Runs of a model with inputs of zeros, which show types and shapes of its outputs: the package
//! does not say them.

use crate::loaded::LoadedPackage;
use crate::tensor::OwnedTensor;
use std::ptr;
use trtserver_framework::check::Element;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::InputBlocks;
use trtserver_framework::row_probe::{ProbedInput, ProbedOutput, expect_rows};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::{element_count, shape_text, type_size};

/// Rows of the first run and of the second.
const ROWS: [i64; 2] = [2, 3];

/// Sizes of other dynamic dimensions in the two runs. A size may have to be a multiple of a power
/// of two.
const SIZES: [i64; 2] = [16, 32];

/// Type and shape of an output of a run.
type FoundOutput = (Element, Vec<i64>);

/// Types and shapes of all outputs: a dimension is dynamic where two runs with other sizes differ.
///
/// # Errors
/// No run succeeds, or the package does not describe the inputs.
pub fn find_outputs(package: &LoadedPackage) -> Result<Vec<FoundOutput>, PluginFault> {
    let first = run_zeros(package, &zero_shapes(package, 0)?)?;
    let second = run_zeros(package, &zero_shapes(package, 1)?)?;
    let merged = first.into_iter().zip(second).map(|((element, dims), (_, other))| {
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
    expect_rows(&inputs, |shapes| {
        let outputs = run_zeros(package, shapes)?;
        let named = package.signature.outputs.iter().zip(outputs);
        Ok(named.map(|(own, (_, shape))| (own.name.clone(), shape)).collect::<Vec<ProbedOutput>>())
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

/// Runs the model with zeros of these shapes.
fn run_zeros(
    package: &LoadedPackage,
    shapes: &[Vec<i64>],
) -> Result<Vec<FoundOutput>, PluginFault> {
    let (compiled, torch) = (&package.compiled, &*package.compiled.torch);
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
        tensors.push(unsafe { OwnedTensor::over(torch, number, shape, data)? });
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
    let mut buffer = [0; MAX_RANK];
    let describe = |tensor: &OwnedTensor<'_>| {
        let (number, rank) = tensor.describe(&mut buffer)?;
        let element = torch.dtypes.dtype(number);
        let element =
            element.map_or(Element::Foreign(format!("torch type {number}")), Element::Known);
        Ok((element, buffer[..rank].to_vec()))
    };
    owned.iter().map(describe).collect()
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
