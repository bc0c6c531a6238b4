//! Unit tests of `alignment.rs`.

use super::*;
use crate::error::{Code, Error};
use crate::ledger::Holder;
use crate::request::buffer::AlignedBuf;
use crate::request::testing::{RecordedResponses, request};
use bytes::Bytes;

/// A request whose input begins at `offset` of a block that is aligned to 64 bytes.
fn request_at(offset: usize) -> (InferRequest, RecordedResponses) {
    let (mut request, _, responses) = request("");
    let block: Vec<u8> = (0..100).collect();
    request.inputs[0].data =
        AlignedBuf::copy_of(&[&block], Holder::Input).into_bytes().slice(offset..offset + 8).into();
    (request, responses)
}

fn without_memory(_: &mut InputTensor, _: usize) -> Result<()> {
    Err(Error::new(Code::ResourceExhausted, "out of memory"))
}

fn failures(responses: &RecordedResponses) -> Vec<String> {
    let responses = responses.lock();
    responses.iter().map(|(r, _)| r.as_ref().unwrap_err().message.clone()).collect()
}

#[test]
fn misaligned_input_is_copied() {
    for (offset, align, copied) in
        [(4, 0, false), (4, 64, true), (2, 0, true), (0, 64, false), (64, 64, false)]
    {
        let (request, responses) = request_at(offset);
        let before = request.inputs[0].data.as_ptr();
        let mut batch = vec![request];
        align_inputs(&mut batch, align);
        let data: &Bytes = batch[0].inputs[0].data.payload();
        assert_eq!(data.as_ptr() != before, copied, "{offset} {align}");
        assert!(data.as_ptr().addr().is_multiple_of(align.max(4)), "{offset} {align}");
        assert_eq!(data[..], (offset as u8..offset as u8 + 8).collect::<Vec<_>>());
        assert!(responses.lock().is_empty());
    }
}

#[test]
fn request_without_memory_for_its_copy_fails_alone() {
    let requests = [64, 4, 0, 8].map(request_at);
    let responses = requests.each_ref().map(|(_, responses)| responses.clone());
    let mut batch: Vec<_> = requests.into_iter().map(|(request, _)| request).collect();
    align_with(&mut batch, 64, without_memory);
    assert_eq!(batch.len(), 2);
    let failed = responses.each_ref().map(failures);
    assert_eq!(failed.each_ref().map(Vec::len), [0, 1, 0, 1]);
    assert_eq!(failed[1], ["out of memory"]);
}

#[test]
fn sequence_without_memory_for_a_copy_fails_the_batch() {
    let requests = [64, 4, 0].map(request_at);
    let responses = requests.each_ref().map(|(_, responses)| responses.clone());
    let mut batch: Vec<_> = requests.into_iter().map(|(request, _)| request).collect();
    for (request, id) in batch.iter_mut().zip(1..) {
        request.sequence.id = CorrelationId::Number(id);
    }
    align_with(&mut batch, 64, without_memory);
    assert!(batch.is_empty());
    assert_eq!(responses.each_ref().map(failures), [["out of memory"]; 3]);
}
