//! Aligns the inputs of a batch as the backend requires, and copies those to the CPU that it cannot
//! access, before the views are built.

use trtserver_base::error::Result;
use trtserver_request::tensor::element_count;
use trtserver_request::{CorrelationId, DType, InferRequest, InputTensor, check};

/// Copies inputs that are misaligned for their type or to `align` bytes (0 = any), or in GPU
/// memory; waits for copies from a GPU. A request without memory for its copy is failed and
/// removed; if it belongs to a sequence, so is the whole batch, because a backend may keep the
/// state of a sequence by position in the batch; so is one with batch inputs, which describe all
/// requests.
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
        let mut from_device = false;
        let mut copy_unsuitable = |input: &mut InputTensor| {
            let accessible = input.data.location().is_cpu_accessible();
            from_device |= !accessible;
            if accessible && input.is_aligned(align) { Ok(()) } else { copy(input, align) }
        };
        match request.inputs.iter_mut().try_for_each(&mut copy_unsuitable) {
            Ok(()) => {
                if from_device {
                    check_strings(request);
                }
                at += 1;
            }
            Err(e) if keeps_batch(requests) => {
                for request in requests.drain(..) {
                    let _ = request.responder.finish(Err(e.clone()));
                }
            }
            Err(e) => drop(requests.remove(at).responder.finish(Err(e))),
        }
    }
}

/// The requests are executed together or not at all.
pub fn keeps_batch(requests: &[InferRequest]) -> bool {
    requests.iter().any(|r| r.sequence.id != CorrelationId::None)
        || requests.first().is_some_and(|r| r.context().signature.keeps_batches())
}

/// Checks strings that could not be checked before, because they were in GPU memory. A request with
/// malformed strings is failed, and executed all the same with empty strings, so that the other
/// requests keep their positions in the batch.
pub fn check_strings(request: &mut InferRequest) {
    let signature = &request.responder.context.signature;
    for input in request.inputs.iter_mut().filter(|input| input.dtype == DType::String) {
        let bytes = input.data.readable().unwrap_or_default();
        if let Err(e) = check::check_string_input(signature, &request.id, input, bytes) {
            let _ = request.responder.finish(Err(e));
            // No more bytes than the client gave: `check::check_inputs` has compared the sizes.
            input.data = vec![0; 4 * element_count(&input.shape).unwrap_or(0)].into();
        }
    }
}

#[cfg(test)]
#[path = "alignment_tests.rs"]
mod tests;
