//! Unit tests of `outputs.rs`.

use crate::batch::testing::{
    NOTHING, check, donation, failure, floats, placed_request, request, responder_of, signature,
    single_response, texts, with_batch,
};
use crate::host_api::table;
use crate::text::{c_text, str_view};
use bytes::Bytes;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{Memory, dtype};
use trtserver_request::memory::{MemoryLocation, OutputMemory, PlacedSlice};
use trtserver_request::testing::{TestMemory, aligned_slice};
use trtserver_request::{ImplicitState, RequestedOutput};

#[test]
fn response_can_carry_a_state() {
    let mut model = Arc::into_inner(signature(8)).unwrap();
    model.states[0].output = "O".into();
    let model = Arc::new(model);
    let memory = ImplicitState::default();
    let respond = |requested: &[usize], data: &Bytes, last| {
        let (one, responses) = request(&model, 1, &[], requested);
        one.responder.set_implicit_state(memory.clone());
        with_batch(vec![one], |batch| {
            let (mut response, mut buf, name) = (null_mut(), NOTHING, c_text("O"));
            // SAFETY: handles of this batch; 8 bytes are allocated and written.
            unsafe {
                check((table().response_new)(responder_of(batch, 0), &raw mut response)).unwrap();
                let alloc = table().output_alloc;
                let alloc = |buf| {
                    let shape = [1, 2].as_ptr();
                    check(alloc(
                        response,
                        str_view(&name),
                        dtype::FP32,
                        2,
                        shape,
                        8,
                        Memory::CPU,
                        buf,
                    ))
                };
                alloc(&raw mut buf).unwrap();
                assert!(alloc(&raw mut buf).unwrap_err().contains("twice"));
                std::ptr::copy_nonoverlapping(data.as_ptr(), buf.ptr, 8);
                check((table().response_send)(response, last, null(), null_mut())).unwrap();
            }
        });
        responses
    };
    let stored = || {
        let mut inputs = Vec::new();
        memory.inputs(&model, &mut inputs);
        inputs.remove(0).data.payload().clone()
    };
    let (first, second) = (floats(&[1.0, 2.0]), floats(&[3.0, 4.0]));
    let responses = respond(&[0], &first, 1);
    let sent = single_response(&responses).outputs[0].data.payload().clone();
    assert_eq!((&sent, &stored()), (&first, &first));
    assert_eq!(sent.as_ptr(), stored().as_ptr(), "no copy");
    assert!(single_response(&respond(&[], &second, 1)).outputs.is_empty());
    assert_eq!(stored(), second);
    respond(&[0], &first, 0);
    assert_eq!(stored(), second, "the response was not final");
}

/// Responds with output `name` of shape [1, 2], allocated by the host or donated. Returns the
/// address that was written to.
fn produce(batch: *mut Batch, name: &str, data: &[u8], donated: bool) -> usize {
    let (mut response, mut buf, name) = (null_mut(), NOTHING, c_text(name));
    let dtype = if data.len() == 8 { dtype::FP32 } else { dtype::STRING };
    let (shape, bytes) = ([1, 2].as_ptr(), data.len() as u64);
    // SAFETY: handles of this batch; the bytes are allocated and written.
    unsafe {
        check((table().response_new)(responder_of(batch, 0), &raw mut response)).unwrap();
        if donated {
            let (part, release, ctx) = donation(data.to_vec());
            let adopt = table().output_adopt;
            let name = str_view(&name);
            let error = adopt(response, name, dtype, 2, shape, &raw const part, 1, release, ctx);
            check(error).unwrap();
        } else {
            let alloc = table().output_alloc;
            let (name, out) = (str_view(&name), &raw mut buf);
            check(alloc(response, name, dtype, 2, shape, bytes, Memory::CPU, out)).unwrap();
            assert!(buf.ptr.addr().is_multiple_of(64));
            std::ptr::copy_nonoverlapping(data.as_ptr(), buf.ptr, data.len());
        }
        check((table().response_send)(response, 1, null(), null_mut())).unwrap();
    }
    buf.ptr.addr()
}

#[test]
fn output_is_delivered_to_its_destination() {
    let numbers = floats(&[1.0, 2.0]);
    let strings = texts(&["ab", ""]);
    let gpu = MemoryLocation::gpu(0);
    for (what, location, at, len, output, donated, direct) in [
        ("fits", MemoryLocation::CPU, 0, 8, &numbers, false, true),
        ("is larger", MemoryLocation::PINNED, 64, 64, &numbers, false, true),
        ("is misaligned", MemoryLocation::CPU, 4, 8, &numbers, false, false),
        ("is on a device", gpu, 0, 8, &numbers, false, false),
        ("the memory is donated", MemoryLocation::CPU, 0, 8, &numbers, true, false),
        ("donated for a device", gpu, 3, 9, &numbers, true, false),
        ("strings are checked first", MemoryLocation::CPU, 0, 10, &strings, false, false),
    ] {
        let (owner, index) = (TestMemory::new(&[7; 256]), usize::from(output.len() != 8));
        let memory = owner.place(location, true);
        let slice = aligned_slice(&memory, at, len);
        let destination = Some(Arc::new(OutputMemory::new(slice.clone())));
        let requested = RequestedOutput::new(index, 0).written_to(destination);
        let (one, responses) = placed_request(&signature(8), 1, &[], [requested]);
        with_batch(vec![one], |batch| {
            let name = ["O", "T"][index];
            let written = produce(batch, name, output, donated);
            assert_eq!(written == slice.as_ptr().addr(), direct, "{what}");
        });
        let sent = single_response(&responses).outputs.remove(0);
        assert_eq!(sent.data.placed(), Some(&slice.slice(0..output.len())), "{what}");
        assert_eq!((sent.data.payload().len(), sent.shape.as_slice()), (0, &[1, 2][..]), "{what}");
        assert_eq!(sent.data.to_cpu().unwrap(), output, "{what}");
        let all = PlacedSlice::new(&memory, 0, 256).unwrap().to_cpu().unwrap();
        let untouched = all.iter().filter(|byte| **byte == 7).count();
        assert_eq!(untouched, 256 - output.len(), "{what}");
    }
}

#[test]
fn output_that_exceeds_its_destination_is_an_error() {
    for donated in [false, true] {
        let memory = TestMemory::new(&[7; 128]).place(MemoryLocation::CPU, true);
        let slice = aligned_slice(&memory, 0, 7);
        let destination = Some(Arc::new(OutputMemory::new(slice)));
        let requested = RequestedOutput::new(0, 0).written_to(destination);
        let (one, responses) = placed_request(&signature(8), 1, &[], [requested]);
        with_batch(vec![one], |batch| {
            produce(batch, "O", &floats(&[1.0, 2.0]), donated);
        });
        assert_eq!(
            failure(&responses),
            "shared memory size specified with the request for output 'O' (7 bytes) should be at least 8 bytes to hold the results"
        );
        let all = PlacedSlice::new(&memory, 0, 128).unwrap().to_cpu().unwrap();
        assert_eq!(all, [7; 128][..]);
    }
}

#[test]
fn destination_that_overlaps_an_input_is_written_at_the_end() {
    let memory = TestMemory::new(&[7; 128]).place(MemoryLocation::CPU, true);
    for (input_at, direct) in [(0, false), (4, false), (64, true)] {
        let slice = aligned_slice(&memory, 0, 8);
        let input = aligned_slice(&memory, input_at, 8).into();
        let destination = Some(Arc::new(OutputMemory::new(slice.clone())));
        let requested = RequestedOutput::new(0, 0).written_to(destination);
        let (one, responses) = placed_request(&signature(8), 1, &[(0, input)], [requested]);
        with_batch(vec![one], |batch| {
            let written = produce(batch, "O", &floats(&[1.0, 2.0]), false);
            assert_eq!(written == slice.as_ptr().addr(), direct, "{input_at}");
        });
        assert_eq!(single_response(&responses).outputs[0].data, slice.into());
    }
}

#[test]
fn state_is_kept_in_memory_that_the_client_cannot_change() {
    let mut model = Arc::into_inner(signature(8)).unwrap();
    model.states[0].output = "O".into();
    let model = Arc::new(model);
    let owner = TestMemory::new(&[7; 128]);
    let slice = aligned_slice(&owner.place(MemoryLocation::CPU, true), 0, 8);
    let kept = ImplicitState::default();
    let respond = || {
        let destination = Some(Arc::new(OutputMemory::new(slice.clone())));
        let requested = RequestedOutput::new(0, 0).written_to(destination);
        let (one, responses) = placed_request(&model, 1, &[], [requested]);
        one.responder.set_implicit_state(kept.clone());
        with_batch(vec![one], |batch| {
            produce(batch, "O", &floats(&[1.0, 2.0]), false);
        });
        responses
    };
    let stored = || {
        let mut inputs = Vec::new();
        kept.inputs(&model, &mut inputs);
        inputs.remove(0).data
    };
    single_response(&respond());
    slice.write(&[&[0; 8]]).unwrap();
    assert_eq!(stored().cpu().unwrap(), &floats(&[1.0, 2.0]));
    kept.reset();
    owner.fail("the region was truncated");
    assert_eq!(failure(&respond()), "the region was truncated");
    assert_eq!(stored().cpu().unwrap(), &[0; 8][..], "a failed request writes no state");
}

#[test]
fn free_outputs_are_the_backends() {
    let mut model = Arc::into_inner(signature(8)).unwrap();
    model.free_outputs = true;
    let model = Arc::new(model);
    // "O" is configured as FP32 of shape [2], "N" is a state.
    let adopt = |name: &str, dtype: u32, shape: &[i64], bytes: usize| {
        let (one, responses) = request(&model, 1, &[], &[0]);
        let mut error = None;
        with_batch(vec![one], |batch| {
            let (mut response, name) = (null_mut(), c_text(name));
            let (part, release, ctx) = donation(vec![0; bytes]);
            let (rank, at) = (shape.len() as u32, shape.as_ptr());
            // SAFETY: handles of this batch; the memory lives until its release.
            unsafe {
                check((table().response_new)(responder_of(batch, 0), &raw mut response)).unwrap();
                let adopt = table().output_adopt;
                let name = str_view(&name);
                error =
                    check(adopt(response, name, dtype, rank, at, &raw const part, 1, release, ctx))
                        .err();
                check((table().response_send)(response, 1, null(), null_mut())).unwrap();
            }
        });
        match error {
            Some(error) => Err(error),
            None => Ok(single_response(&responses)),
        }
    };
    for (kind, shape, bytes) in [
        (dtype::INT64, &[1, 2][..], 16),
        (dtype::FP32, &[3], 12),
        (dtype::INT8, &[], 1),
        (dtype::STRING, &[4, 0], 0),
    ] {
        let response = adopt("O", kind, shape, bytes).unwrap();
        assert_eq!(response.outputs[0].dtype.number(), kind);
        assert_eq!(response.outputs[0].shape.as_slice(), shape);
    }
    for (name, kind, shape, bytes, says) in [
        ("O", dtype::INT64, &[1, 2][..], 8, "of shape [1,2] with 8 bytes, expected 16"),
        ("O", dtype::STRING, &[-1], 0, "with the impossible shape [-1]"),
        ("O", dtype::STRING, &[i64::MAX, i64::MAX], 0, "with the impossible shape"),
        (
            "O",
            77,
            &[1, 2],
            8,
            "with data type an unknown type, the model configuration specifies TYPE_FP32",
        ),
        (
            "N",
            dtype::INT64,
            &[1, 2],
            16,
            "with data type TYPE_INT64, the model configuration specifies TYPE_FP32",
        ),
    ] {
        let error = adopt(name, kind, shape, bytes).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    // None at all.
    let (one, responses) = request(&model, 1, &[], &[0]);
    with_batch(vec![one], |batch| {
        let mut response = null_mut();
        // SAFETY: handles of this batch.
        unsafe {
            check((table().response_new)(responder_of(batch, 0), &raw mut response)).unwrap();
            check((table().response_send)(response, 1, null(), null_mut())).unwrap();
        }
    });
    assert!(single_response(&responses).outputs.is_empty());
}
