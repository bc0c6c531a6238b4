//! Aligns the inputs of a batch as the backend requires, before the views are built.

use crate::error::Result;
use crate::request::{CorrelationId, InferRequest, InputTensor};

/// Copies inputs that are misaligned for their type or to `align` bytes (0 = any). A request without memory for its
/// copy is failed and removed; if it belongs to a sequence, so is the whole batch, because a backend may keep
/// the state of a sequence by position in the batch.
pub fn align_inputs(requests: &mut Vec<InferRequest>, align: usize) {
    align_with(requests, align, InputTensor::copy_aligned);
}

fn align_with(
    requests: &mut Vec<InferRequest>,
    align: usize,
    copy: impl Fn(&mut InputTensor, usize) -> Result<()>,
) {
    let mut at = 0;
    while let Some(request) = requests.get_mut(at) {
        let mut misaligned = request.inputs.iter_mut().filter(|input| !input.is_aligned(align));
        match misaligned.try_for_each(|input| copy(input, align)) {
            Ok(()) => at += 1,
            Err(e) if requests.iter().any(|r| r.sequence.id != CorrelationId::None) => {
                for request in requests.drain(..) {
                    let _ = request.responder.finish(Err(e.clone()));
                }
            }
            Err(e) => drop(requests.remove(at).responder.finish(Err(e))),
        }
    }
}

#[cfg(test)]
#[path = "alignment_tests.rs"]
mod tests;
