//! Heads that clients repeat: what the JSON of a request with binary tensors said is kept by the
//! thread, for the next request with the same bytes to the same model.
//!
//! Clients send one head for all requests of a shape. To compare it costs a tenth of reading it.
//! Heads that differ in each request, by an id or a sequence, are not kept.

use super::infer_request::ResponseSpec;
use crate::{RequestParameters, UncheckedRequest};
use bytes::Bytes;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

use trtserver_request::{InputTensor, ModelSignature, RequestedOutput, TensorData};

/// Heads of a thread, each in the place that its hash names.
const HEADS: usize = 16;
/// Longest head that is kept.
const MAX_HEAD: usize = 1 << 10;

struct RepeatedHead {
    /// The model that it was read for. As long as this exists no other signature has its address.
    signature: Weak<ModelSignature>,
    json: Box<[u8]>,
    /// Without data, and the length of each.
    inputs: SmallVec<[(InputTensor, usize); 2]>,
    outputs: SmallVec<[RequestedOutput; 2]>,
    spec: ResponseSpec,
}

thread_local! {
    static REPEATED_HEADS: RefCell<[Option<Box<RepeatedHead>>; HEADS]> = RefCell::default();
}

/// The request whose first `header` bytes are JSON, if this thread has read the same JSON for this
/// model before, and the tensors after it have the length that it says.
pub fn find_repeated(
    signature: &Arc<ModelSignature>,
    body: &Bytes,
    header: usize,
) -> Option<(UncheckedRequest, ResponseSpec)> {
    let json = &body[..header];
    let find = |heads: &RefCell<[Option<Box<RepeatedHead>>; HEADS]>| {
        let heads = heads.try_borrow().ok()?;
        let head = heads[place(json)].as_ref()?;
        let is_same = std::ptr::eq(head.signature.as_ptr(), Arc::as_ptr(signature))
            && *head.json == *json
            && head.inputs.iter().map(|(_, length)| length).sum::<usize>() == body.len() - header;
        is_same.then(|| head.request(body, header))
    };
    if header > MAX_HEAD { None } else { REPEATED_HEADS.try_with(find).ok()? }
}

/// Keeps what was read, if it is the same for every request with this JSON.
pub fn keep_head(
    signature: &Arc<ModelSignature>,
    body: &Bytes,
    header: usize,
    (request, spec): &(UncheckedRequest, ResponseSpec),
) {
    let sections = body.len() - header;
    if header > MAX_HEAD || sections == 0 || !is_repeatable(request, sections) {
        return;
    }
    let without_data = |input: &InputTensor| {
        let empty = TensorData::EMPTY;
        (InputTensor { data: empty, shape: input.shape.clone(), ..*input }, input.data.len())
    };
    let json = &body[..header];
    let head = RepeatedHead {
        signature: Arc::downgrade(signature),
        json: json.into(),
        inputs: request.inputs.iter().map(without_data).collect(),
        outputs: request.outputs.clone(),
        spec: spec.clone(),
    };
    let _ = REPEATED_HEADS.try_with(|heads| {
        if let Ok(mut heads) = heads.try_borrow_mut() {
            heads[place(json)] = Some(Box::new(head));
        }
    });
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

/// The place of a head, by a hash of its bytes.
fn place(json: &[u8]) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let mut words = json.chunks_exact(8);
    let hash = (&mut words).fold(json.len() as u64, |hash, word| {
        mix(hash, word.try_into().map_or(0, u64::from_le_bytes))
    });
    let hash = words.remainder().iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
    (hash >> 32) as usize % HEADS
}

#[cfg(test)]
#[path = "repeated_head_tests.rs"]
mod tests;
