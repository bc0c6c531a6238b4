//! Whether the requests of a batch can be executed in one run.

use crate::strings::{self, count_elements};
use crate::types::{element_count, type_size};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{Batch, Request, Tensor};

/// Whether the requests have the same inputs, each of the size of its shape.
pub fn have_equal_inputs(batch: &Batch<'_>) -> bool {
    let Some(first) = batch.requests().next() else { return false };
    batch.requests().all(|request| {
        first.inputs().len() == request.inputs().len()
            && first
                .inputs()
                .zip(request.inputs())
                .all(|(a, b)| same(a, b) && size_matches_shape(request, b))
    })
}

fn same(a: Tensor<'_>, b: Tensor<'_>) -> bool {
    a.dtype() == b.dtype()
        && a.shape().get(1..) == b.shape().get(1..)
        && (a.index().is_some() && a.index() == b.index() || a.name() == b.name())
}

fn size_matches_shape(request: Request<'_>, tensor: Tensor<'_>) -> bool {
    let rows = tensor.shape().first().and_then(|&rows| usize::try_from(rows).ok());
    let Some(expected) = element_count(tensor.shape()) else { return false };
    rows == Some(request.batch_size())
        && match tensor.dtype().to_abi() {
            // A surplus string in one request and a missing one in the next cancel out in the
            // gathered input.
            dtype::STRING => tensor.contiguous().is_some_and(|data| {
                count_elements(strings::split_elements(data)) == Some(expected)
            }),
            kind => expected.checked_mul(type_size(kind)) == Some(tensor.byte_size()),
        }
}
