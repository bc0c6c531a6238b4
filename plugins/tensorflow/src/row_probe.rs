//! Runs a session with a few rows, to find out whether its first dimension is a batch.

use crate::api::TfOutput;
use crate::session::GraphSession;
use crate::signature::{GraphTensor, Signature};
use crate::status::Status;
use crate::strings::SIZE;
use crate::tensor::OwnedTensor;
use crate::types;
use std::ptr;
use trtserver_framework::check::{Element, TensorDeclaration};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::row_probe::{self, ProbeRun, ProbedInput, ProbedOutput};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::{element_count, type_size};
use trtserver_plugin_api::abi::types::dtype;

/// # Errors
/// Why the first dimension is not a batch.
pub fn expect_batch(session: &GraphSession, signature: &Signature) -> Result<(), String> {
    let inputs = signature.inputs.iter().map(|input| ProbedInput {
        name: &input.name,
        dims: input.dims.as_deref().unwrap_or_default(),
        dim_names: &[],
    });
    row_probe::expect_batch(&inputs.collect::<Vec<_>>(), |run| run_probe(session, signature, run))
}

fn run_probe(
    session: &GraphSession,
    signature: &Signature,
    run: &ProbeRun<'_>,
) -> Result<Vec<ProbedOutput>, PluginFault> {
    let outputs: Vec<&GraphTensor> = signature.outputs.iter().filter(|it| is_dense(it)).collect();
    let find = |tensor: &GraphTensor| -> Result<TfOutput, PluginFault> {
        session.tensor(&tensor.operation, tensor.index).ok_or_else(|| {
            PluginFault::invalid(format!(
                "the graph has no tensor '{}:{}' for '{}'",
                tensor.operation, tensor.index, tensor.name
            ))
        })
    };
    let fed = signature.inputs.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let fetched = outputs.iter().map(|output| find(output)).collect::<Result<Vec<_>, _>>()?;
    let make = |(input, shape): (&GraphTensor, &Vec<i64>)| make_input(session, input, shape, run);
    let values =
        signature.inputs.iter().zip(run.shapes).map(make).collect::<Result<Vec<_>, _>>()?;
    let raw: Vec<_> = values.iter().map(OwnedTensor::as_ptr).collect();
    let mut results = vec![ptr::null_mut(); outputs.len()];
    let mut status = Status::new(session.runtime);
    // SAFETY: the tensors belong to the session's graph, the values are alive, and the lists have
    // equal lengths.
    unsafe { session.run(&fed, &raw, &fetched, &mut results, &mut status)? };
    // SAFETY: results of the run, without another owner. All become owned before the first error is
    // returned.
    let owned =
        results.into_iter().map(|raw| unsafe { OwnedTensor::from_raw(session.runtime, raw) });
    let owned: Vec<Result<OwnedTensor, PluginFault>> = owned.collect();
    let read = |(output, tensor): (&&GraphTensor, Result<OwnedTensor, PluginFault>)| {
        read_output(&output.name, &tensor?, run)
    };
    outputs.iter().zip(owned).map(read).collect()
}

fn read_output(
    name: &str,
    tensor: &OwnedTensor,
    run: &ProbeRun<'_>,
) -> Result<ProbedOutput, PluginFault> {
    let mut buffer = [0; MAX_RANK];
    let (data_type, rank) = tensor.describe(&mut buffer)?;
    let (shape, dtype) = (buffer[..rank].to_vec(), types::to_dtype(data_type));
    let bytes = run.compared_bytes(dtype, &shape);
    let elements = match bytes > 0 && bytes <= tensor.byte_size() {
        // SAFETY: the tensor has this many bytes at least, and is alive during the copy.
        true => unsafe { std::slice::from_raw_parts(tensor.data(), bytes) }.to_vec(),
        false => Vec::new(),
    };
    Ok(ProbedOutput { name: name.to_owned(), shape, dtype, elements })
}

fn is_dense(tensor: &GraphTensor) -> bool {
    !matches!(tensor.element(), Element::NotDense(_))
}

/// An input of the run. Strings are empty: one of zeros is a small one without contents.
fn make_input(
    session: &GraphSession,
    input: &GraphTensor,
    shape: &[i64],
    run: &ProbeRun<'_>,
) -> Result<OwnedTensor, PluginFault> {
    let kind = types::to_dtype(input.data_type);
    let size = if kind == dtype::STRING { SIZE } else { type_size(kind) };
    let mut bytes = vec![0; element_count(shape).unwrap_or(0).saturating_mul(size)];
    if kind != dtype::STRING {
        run.write_input(kind, &mut bytes);
    }
    OwnedTensor::copy_from(session.runtime, input.data_type, shape, &bytes)
}
