//! Runs a session with rows of zeros, to find out whether its first dimension is a batch.

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
use trtserver_framework::row_probe::{self, ProbedInput, ProbedOutput};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::{element_count, type_size};
use trtserver_plugin_api::abi::types::dtype;

/// # Errors
/// Why the first dimension is not a batch.
pub fn expect_rows(session: &GraphSession, signature: &Signature) -> Result<(), String> {
    let inputs = signature.inputs.iter().map(|input| ProbedInput {
        name: &input.name,
        dims: input.dims.as_deref().unwrap_or_default(),
        dim_names: &[],
    });
    row_probe::expect_rows(&inputs.collect::<Vec<_>>(), |shapes| {
        run_probe(session, signature, shapes)
    })
}

/// Runs the session with zeros of these shapes.
fn run_probe(
    session: &GraphSession,
    signature: &Signature,
    shapes: &[Vec<i64>],
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
    let zeros = |(input, shape): (&GraphTensor, &Vec<i64>)| zeros(session, input, shape);
    let values = signature.inputs.iter().zip(shapes).map(zeros).collect::<Result<Vec<_>, _>>()?;
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
    let shape_of = |(output, tensor): (&&GraphTensor, Result<OwnedTensor, PluginFault>)| {
        let mut buffer = [0; MAX_RANK];
        let (_, rank) = tensor?.describe(&mut buffer)?;
        Ok((output.name.clone(), buffer[..rank].to_vec()))
    };
    outputs.iter().zip(owned).map(shape_of).collect()
}

fn is_dense(tensor: &GraphTensor) -> bool {
    !matches!(tensor.element(), Element::NotDense(_))
}

/// Zeros, or empty strings: a string of zeros is a small one without contents.
fn zeros(
    session: &GraphSession,
    input: &GraphTensor,
    shape: &[i64],
) -> Result<OwnedTensor, PluginFault> {
    let size = match types::to_dtype(input.data_type) {
        dtype::STRING => SIZE,
        kind => type_size(kind),
    };
    let bytes = vec![0; element_count(shape).unwrap_or(0).saturating_mul(size)];
    OwnedTensor::copy_from(session.runtime, input.data_type, shape, &bytes)
}
