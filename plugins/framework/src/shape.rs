//! Shapes of single requests: inputs as the model takes them, and outputs that are known before the
//! run.

use crate::slot::TensorSlot;
use crate::types::{element_count, type_size};
use trtserver_plugin_api::abi::types::dtype;

/// Maximum rank of a tensor. Frameworks have higher limits or none, but models stay below ten; the
/// limit keeps shapes on the stack.
pub const MAX_RANK: usize = 32;

/// The model's shape for an input of the request's shape `given` (batch dimension included); `None`
/// if they do not match. The configuration's reshape is applied if the host has not done so.
pub fn for_model<'a, H>(
    slot: &TensorSlot<H>,
    batching: bool,
    given: &'a [i64],
    buffer: &'a mut [i64; MAX_RANK],
) -> Option<&'a [i64]> {
    if slot.scalar && given == [1] {
        return Some(&[]);
    }
    let lead = usize::from(batching);
    let shape = match &slot.reshape {
        Some((dims, model_dims)) => {
            let own = given.get(lead..)?;
            if shape_fits(model_dims, own) {
                given
            } else {
                reshape_dims(dims, model_dims, lead, given, buffer)?
            }
        }
        None => given,
    };
    if shape.len() > MAX_RANK || shape.iter().any(|&dim| dim < 0) {
        return None;
    }
    (slot.unranked || shape_fits(&slot.dims, shape)).then_some(shape)
}

/// Shape and size of an output if its shape is fixed in the file except for the batch dimension.
/// `rows`: of the request, if the model batches.
pub fn before_run<'a, H>(
    slot: &TensorSlot<H>,
    rows: Option<usize>,
    buffer: &'a mut [i64; MAX_RANK],
) -> Option<(&'a [i64], usize)> {
    if slot.unranked || slot.passed || slot.flat || slot.dtype == dtype::STRING {
        return None;
    }
    // The framework checks blocks against the file's shape, too.
    if slot.configured.as_ref().is_some_and(|configured| configured.contradicts.is_some()) {
        return None;
    }
    let shape = buffer.get_mut(..slot.dims.len())?;
    shape.copy_from_slice(&slot.dims);
    if let Some(rows) = rows {
        *shape.first_mut()? = i64::try_from(rows).ok()?;
    }
    let bytes = element_count(shape)?.checked_mul(type_size(slot.dtype))?;
    Some((shape, bytes))
}

/// Whether `shape` matches `dims`, where -1 matches any dimension.
pub fn shape_fits(dims: &[i64], shape: &[i64]) -> bool {
    dims.len() == shape.len() && dims.iter().zip(shape).all(|(&dim, &own)| dim == -1 || dim == own)
}

/// Converts a client's shape to the model's: variable dimensions correspond by order.
fn reshape_dims<'a>(
    dims: &[i64],
    model_dims: &[i64],
    lead: usize,
    given: &[i64],
    buffer: &'a mut [i64; MAX_RANK],
) -> Option<&'a [i64]> {
    let own = given.get(lead..).filter(|own| shape_fits(dims, own))?;
    let mut variable = dims.iter().zip(own).filter(|(dim, _)| **dim == -1).map(|(_, own)| *own);
    let shape = buffer.get_mut(..lead + model_dims.len())?;
    shape[..lead].copy_from_slice(&given[..lead]);
    for (to, &dim) in shape[lead..].iter_mut().zip(model_dims) {
        *to = if dim == -1 { variable.next()? } else { dim };
    }
    Some(shape)
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
