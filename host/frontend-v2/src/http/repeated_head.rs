//! Heads that clients repeat: what the JSON of a request with binary tensors said is kept by the
//! thread, for the next request with the same bytes to the same model.
//!
//! Heads that differ in each request, by an id or a sequence, are not kept.

use super::infer_request::ResponseSpec;
use crate::{RequestParameters, UncheckedRequest};
use bytes::Bytes;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::{Arc, Weak};
use trtserver_request::{InputTensor, ModelSignature, RequestedOutput, TensorData};
use trtserver_wire::repeated_texts::RepeatedTexts;

struct RepeatedHead {
    /// The model that it was read for. As long as this exists no other signature has its address.
    signature: Weak<ModelSignature>,
    /// Without data, and the length of each.
    inputs: SmallVec<[(InputTensor, usize); 2]>,
    outputs: SmallVec<[RequestedOutput; 2]>,
    spec: ResponseSpec,
}

thread_local! {
    static REPEATED_HEADS: RefCell<RepeatedTexts<RepeatedHead>> = RefCell::default();
}

/// The request whose first `header` bytes are JSON, if this thread has read the same JSON for this
/// model before, and the tensors after it have the length that it says.
pub fn find_repeated(
    signature: &Arc<ModelSignature>,
    body: &Bytes,
    header: usize,
) -> Option<(UncheckedRequest, ResponseSpec)> {
    REPEATED_HEADS.with_borrow(|heads| {
        let head = heads.get(&body[..header])?;
        let is_same = std::ptr::eq(head.signature.as_ptr(), Arc::as_ptr(signature))
            && head.inputs.iter().map(|(_, length)| length).sum::<usize>() == body.len() - header;
        is_same.then(|| head.request(body, header))
    })
}

/// Keeps what was read, if it is the same for every request with this JSON.
pub fn keep_head(
    signature: &Arc<ModelSignature>,
    body: &Bytes,
    header: usize,
    (request, spec): &(UncheckedRequest, ResponseSpec),
) {
    let sections = body.len() - header;
    if sections == 0 || !is_repeatable(request, sections) {
        return;
    }
    let without_data = |input: &InputTensor| {
        let empty = TensorData::EMPTY;
        (InputTensor { data: empty, shape: input.shape.clone(), ..*input }, input.data.len())
    };
    let head = RepeatedHead {
        signature: Arc::downgrade(signature),
        inputs: request.inputs.iter().map(without_data).collect(),
        outputs: request.outputs.clone(),
        spec: spec.clone(),
    };
    REPEATED_HEADS.with_borrow_mut(|heads| heads.keep(&body[..header], head));
}

/// Whether the request is all in its JSON and in `sections` bytes of binary tensors. Tensors in
/// JSON or in shared memory make the lengths differ; empty ones may be either.
fn is_repeatable(request: &UncheckedRequest, sections: usize) -> bool {
    let binary_output = request.parameters.binary_output;
    let usual = RequestParameters { binary_output, ..Default::default() };
    let data = || request.inputs.iter().map(|input| &input.data);
    request.id.is_empty()
        && request.parameters == usual
        && request.outputs.iter().all(|output| output.destination.is_none())
        && data().all(|data| data.cpu().is_some_and(|data| !data.is_empty()))
        && data().map(TensorData::len).sum::<usize>() == sections
}

impl RepeatedHead {
    fn request(&self, body: &Bytes, header: usize) -> (UncheckedRequest, ResponseSpec) {
        let mut unchecked = UncheckedRequest::default();
        unchecked.parameters.binary_output = self.spec.binary;
        let mut at = header;
        for (input, length) in &self.inputs {
            let data = body.slice(at..at + length).into();
            unchecked.inputs.push(InputTensor { data, shape: input.shape.clone(), ..*input });
            at += length;
        }
        unchecked.outputs.clone_from(&self.outputs);
        (unchecked, self.spec.clone())
    }
}

#[cfg(test)]
#[path = "repeated_head_tests.rs"]
mod tests;
