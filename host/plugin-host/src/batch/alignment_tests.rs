//! Unit tests of `alignment.rs`.

use super::*;
use bytes::Bytes;
use trtserver_base::error::{Code, Error};
use trtserver_base::ledger::LedgerHolder;
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::memory::{MemoryLocation, PlacedSlice};
use trtserver_request::testing::{RecordedResponses, placed, request};

/// A request whose input begins at `offset` of a block that is aligned to 64 bytes.
fn request_at(offset: usize) -> (InferRequest, RecordedResponses) {
    let (mut request, _, responses) = request("");
    let block: Vec<u8> = (0..100).collect();
    request.inputs[0].data = AlignedBuf::copy_parts(&[&block], LedgerHolder::Input)
        .into_bytes()
        .slice(offset..offset + 8)
        .into();
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

#[test]
fn inputs_in_gpu_memory_are_copied_to_the_cpu() {
    let (mut request, responses) = request_at(0);
    let memory = placed(&[9; 8], MemoryLocation::gpu(0), false);
    request.inputs[0].data = PlacedSlice::new(&memory, 0, 8).unwrap().into();
    let mut batch = vec![request];
    align_inputs(&mut batch, 64);
    assert_eq!(batch[0].inputs[0].data.cpu().unwrap(), &[9; 8][..]);
    assert!(batch[0].inputs[0].is_aligned(64) && responses.lock().is_empty());
}

#[test]
fn malformed_strings_in_gpu_memory_fail_their_request_alone() {
    let of = |bytes: &[u8]| {
        let signature = crate::batch::testing::signature(8);
        let memory = placed(bytes, MemoryLocation::gpu(0), false);
        let data = PlacedSlice::new(&memory, 0, bytes.len()).unwrap().into();
        let (mut request, responses) =
            crate::batch::testing::placed_request(&signature, 1, &[(1, data)], []);
        request.sequence.id = CorrelationId::Number(1);
        (request, responses)
    };
    let (good, bad) = ([1, 0, 0, 0, b'x', 0, 0, 0, 0], [1, 0, 0, 0, b'x', 9, 0, 0, 0]);
    let (requests, responses): (Vec<_>, Vec<_>) =
        [&good, &bad, &good].map(|b| of(b)).into_iter().unzip();
    let mut batch = requests;
    align_inputs(&mut batch, 0);
    assert_eq!(batch.len(), 3, "the others keep their positions");
    assert_eq!(batch[2].inputs[0].data.cpu().unwrap(), &good[..]);
    assert_eq!(batch[1].inputs[0].data.cpu().unwrap(), &[0; 8][..], "empty strings");
    let failed = crate::batch::testing::failure(&responses[1]);
    assert!(failed.contains("expecting string of length 9"), "{failed}");
    assert!(responses[0].lock().is_empty() && responses[2].lock().is_empty());
}
