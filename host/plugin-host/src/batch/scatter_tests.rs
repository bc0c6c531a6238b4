//! Unit tests of `scatter.rs`.

use super::*;
use crate::batch::testing::{
    RELEASED, check, donate, failure, floats, gather, placed_request, request, responder_of,
    scatter, send, signature, single_response, texts, with_batch,
};
use crate::host_api::table;
use crate::text::{c_text, str_view};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_request::memory::{MemoryLocation, OutputMemory, PlacedSlice};
use trtserver_request::testing::{aligned_slice, placed};
use trtserver_request::{ImplicitState, RequestedOutput};

#[test]
fn strings_are_split_by_their_lengths() {
    let mut data = Vec::new();
    for s in ["", "ab", "xyz"] {
        strings::push_string(&mut data, s.as_bytes());
    }
    let cut = |data: &[u8], counts: &[usize]| split_strings(data, counts.iter().copied());
    assert_eq!(cut(&data, &[1, 0, 2]), Ok(vec![0..4, 4..4, 4..17]));
    data.push(9);
    assert_eq!(cut(&data, &[2, 1]), Ok(vec![0..10, 10..17]));
    assert_eq!(cut(&data, &[2, 2]), Err(StringFault::NoLength { available: 1 }));
    assert_eq!(cut(&data, &[1, 1]), Err(StringFault::TooMany { found: 3 }));
    assert_eq!(split_elements([2, 0, 1].into_iter(), 4), [0..8, 8..8, 8..12]);
}

#[test]
fn scatter_gives_each_request_its_rows_by_reference() {
    let model = signature(8);
    let two_strings = |rows: usize| (1, texts(&vec!["x"; 2 * rows]));
    let (a, responses_a) = request(&model, 2, &[two_strings(2)], &[1, 0]);
    let (b, responses_b) = request(&model, 1, &[two_strings(1)], &[0]);
    let (c, responses_c) = request(&model, 1, &[two_strings(1)], &[]);
    let strings = texts(&["a", "", "ccc", "d", "e", "ff", "g", "hhhh"]);
    with_batch(vec![a, b, c], |batch| {
        assert_eq!(gather(batch, 0).unwrap().1, texts(&["x"; 8]));
        let numbers = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(scatter(batch, "O", dtype::FP32, &[4, 2], &numbers), Ok(true));
        assert_eq!(scatter(batch, "T", dtype::STRING, &[4, 2], &strings), Ok(true));
        assert_eq!(scatter(batch, "N", dtype::FP32, &[4, 2], &numbers), Ok(false), "no sequence");
        assert_eq!(scatter(batch, "N", dtype::FP32, &[4, 2], &numbers), Ok(false), "a second time");
        send(batch);
        send(batch);
    });
    let (a, b) = (single_response(&responses_a), single_response(&responses_b));
    let names: Vec<&str> = a.outputs.iter().map(|o| &*o.name).collect();
    assert_eq!(names, ["T", "O"]);
    assert_eq!(*a.outputs[0].data.payload(), texts(&["a", "", "ccc", "d"]));
    assert_eq!(
        (a.outputs[1].shape.as_slice(), a.outputs[1].data.payload()),
        (&[2, 2][..], &floats(&[0.0, 1.0, 2.0, 3.0]))
    );
    assert_eq!(
        (b.outputs[0].shape.as_slice(), b.outputs[0].data.payload()),
        (&[1, 2][..], &floats(&[4.0, 5.0]))
    );
    assert_eq!(a.outputs[1].data.as_ptr().addr() + 16, b.outputs[0].data.as_ptr().addr());
    assert!(single_response(&responses_c).outputs.is_empty());
}

#[test]
fn donated_block_is_released_with_its_last_slice() {
    let model = signature(8);
    let input = [(0, floats(&[0.0; 2]))];
    let (a, responses_a) = request(&model, 1, &input, &[0]);
    let (b, responses_b) = request(&model, 1, &input, &[0]);
    let before = RELEASED.load(Ordering::SeqCst);
    let released = || RELEASED.load(Ordering::SeqCst) - before;
    with_batch(vec![a, b], |batch| {
        assert!(donate(batch, "O", &[3, 2], floats(&[0.0; 6]).to_vec()).is_err());
        assert!(donate(batch, "O", &[2, 2], floats(&[0.0; 3]).to_vec()).is_err());
        donate(batch, "O", &[2, 2], floats(&[1.0, 2.0, 3.0, 4.0]).to_vec()).unwrap();
        assert!(donate(batch, "O", &[2, 2], floats(&[0.0; 4]).to_vec()).is_err(), "twice");
        donate(batch, "N", &[2, 2], floats(&[0.0; 4]).to_vec()).unwrap();
        assert_eq!(released(), 4, "all but the requested one");
        send(batch);
    });
    drop(single_response(&responses_a));
    assert_eq!(released(), 4);
    assert_eq!(*single_response(&responses_b).outputs[0].data.payload(), floats(&[3.0, 4.0]));
    assert_eq!(released(), 5);
}

#[test]
fn scattered_states_go_to_their_sequences() {
    let model = signature(8);
    let (a, responses_a) = request(&model, 1, &[], &[]);
    let (b, _responses_b) = request(&model, 1, &[], &[]);
    let (memory_a, memory_b) = (ImplicitState::default(), ImplicitState::default());
    a.responder.set_implicit_state(memory_a.clone());
    b.responder.set_implicit_state(memory_b.clone());
    let kept = |memory: &ImplicitState| {
        let mut inputs = Vec::new();
        memory.inputs(&model, &mut inputs);
        (inputs[0].shape.to_vec(), inputs[0].data.payload().clone())
    };
    with_batch(vec![a, b], |batch| {
        // SAFETY: the batch is being executed.
        let view = unsafe { &**(*batch).requests };
        assert_eq!(view.n_requested_outputs, 1, "the state is requested");
        assert!(scatter(batch, "N", dtype::INT32, &[2, 2], &[0; 16]).is_err());
        assert!(scatter(batch, "N", dtype::FP32, &[2, 3], &[0; 24]).is_err());
        let values = floats(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(scatter(batch, "N", dtype::FP32, &[2, 2], &values), Ok(true));
        // SAFETY: the responder of this batch's second request.
        check(unsafe { (table().responder_finish)(responder_of(batch, 1), null()) }).unwrap();
        send(batch);
    });
    single_response(&responses_a);
    assert_eq!(kept(&memory_a), (vec![1, 2], floats(&[1.0, 2.0])));
    assert_eq!(kept(&memory_b).1, [0; 8][..], "its request was finished before");
}

#[test]
fn misuse_is_an_error_and_does_not_affect_other_requests() {
    let model = signature(8);
    let input = [(0, floats(&[0.0; 2]))];
    let (failed, responses_failed) = request(&model, 1, &input, &[0]);
    let (released, responses_released) = request(&model, 1, &input, &[0]);
    let (busy, responses_busy) = request(&model, 1, &input, &[0]);
    let (good, responses_good) = request(&model, 1, &input, &[0]);
    with_batch(vec![failed, released, busy, good], |batch| {
        let rows = floats(&[0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
        let refused = |name, dtype, shape: &[i64], data: &[u8], what: &str| {
            let text = scatter(batch, name, dtype, shape, data).unwrap_err();
            assert!(text.contains(what), "{text}");
        };
        refused("Q", dtype::FP32, &[4, 2], &rows, "does not declare");
        refused("O", dtype::INT32, &[4, 2], &rows, "TYPE_INT32");
        refused(
            "O",
            dtype::FP32,
            &[3, 2],
            &rows[..24],
            "with shape [3,2], expected a first dimension of 4",
        );
        refused("O", dtype::FP32, &[4, 2], &rows[..31], "31 bytes, expected 32");
        refused("O", dtype::FP32, &[4, 3], &rows, "specifies shape [-1,2]");
        let mut response = null_mut();
        // SAFETY: handles of this batch.
        unsafe {
            check((table().response_new)(responder_of(batch, 2), &raw mut response)).unwrap();
            refused("O", dtype::FP32, &[4, 2], &rows, "while a response");
            (table().response_free)(response);
            assert_eq!(scatter(batch, "O", dtype::FP32, &[4, 2], &rows), Ok(true));
            refused("O", dtype::FP32, &[4, 2], &rows, "twice");
            check((table().response_new)(responder_of(batch, 2), &raw mut response)).unwrap();
            let error = (table().error_new)(3, 0, str_view(&c_text("one request")));
            check((table().responder_finish)(responder_of(batch, 0), error)).unwrap();
            (table().error_free)(error);
            (table().request_release)((**(*batch).requests.add(1)).handle, null_mut());
        }
        send(batch);
        assert_eq!(
            scatter(batch, "O", dtype::FP32, &[4, 2], &rows),
            Ok(false),
            "no request is left"
        );
    });
    assert_eq!(failure(&responses_failed), "one request");
    assert!(failure(&responses_released).contains("without responding"));
    assert!(failure(&responses_busy).contains("without responding"));
    assert_eq!(*single_response(&responses_good).outputs[0].data.payload(), floats(&[3.0, 3.0]));
}

#[test]
fn malformed_and_missing_outputs_fail_their_requests() {
    let model = signature(8);
    let (a, responses_a) = request(&model, 1, &[], &[1]);
    let (b, responses_b) = request(&model, 1, &[], &[0]);
    let (c, responses_c) = request(&model, 1, &[], &[]);
    with_batch(vec![a, b, c], |batch| {
        assert_eq!(scatter(batch, "T", dtype::STRING, &[3, 2], &texts(&["a"; 5])), Ok(true));
        send(batch);
    });
    assert!(
        failure(&responses_a).contains("malformed strings in output 'T' of shape [3,2]: TooFew")
    );
    assert!(failure(&responses_b).contains("did not produce output 'O'"));
    assert!(single_response(&responses_c).outputs.is_empty());
}

#[test]
fn batch_error_discards_scattered_outputs() {
    let model = signature(8);
    let (a, responses) = request(&model, 1, &[], &[0]);
    with_batch(vec![a], |batch| {
        assert_eq!(scatter(batch, "O", dtype::FP32, &[1, 2], &[0; 8]), Ok(true));
        // SAFETY: the batch is being executed; the error is freed once.
        unsafe {
            let error = (table().error_new)(3, 0, str_view(&c_text("whole batch")));
            check((table().batch_finish)(batch, error, null_mut())).unwrap();
            (table().error_free)(error);
        }
    });
    assert_eq!(failure(&responses), "whole batch");
}

#[test]
fn rows_are_delivered_to_the_destination_of_each_request() {
    let model = signature(8);
    let memory = placed(&[7; 256], MemoryLocation::CPU, true);
    let to = |at, len| {
        let destination = Some(Arc::new(OutputMemory::new(aligned_slice(&memory, at, len))));
        RequestedOutput::new(0, 0).written_to(destination)
    };
    let (a, responses_a) = placed_request(&model, 2, &[], [to(0, 16)]);
    let (b, responses_b) = request(&model, 1, &[], &[0]);
    let (c, responses_c) = placed_request(&model, 1, &[], [to(64, 7)]);
    let (d, responses_d) = placed_request(&model, 1, &[], [to(80, 12)]);
    let rows = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    with_batch(vec![a, b, c, d], |batch| {
        assert_eq!(scatter(batch, "O", dtype::FP32, &[5, 2], &rows), Ok(true));
        send(batch);
    });
    let output = |responses| single_response(responses).outputs.remove(0).data;
    assert_eq!(output(&responses_a), aligned_slice(&memory, 0, 16).into());
    assert_eq!(output(&responses_b).cpu().unwrap(), &rows[16..24]);
    assert!(failure(&responses_c).contains("output 'O' (7 bytes) should be at least 8 bytes"));
    assert_eq!(output(&responses_d), aligned_slice(&memory, 80, 8).into());
    let read = |at, len| aligned_slice(&memory, at, len).to_cpu().unwrap();
    assert_eq!((read(0, 16), read(80, 8)), (rows.slice(..16), rows.slice(32..)));
    assert_eq!((read(16, 64), read(88, 40)), (vec![7; 64].into(), vec![7; 40].into()));
}

#[test]
fn batch_of_one_is_scattered_into_its_destination() {
    let model = signature(8);
    for (at, index, sequence, direct) in
        [(0, 0, false, true), (4, 0, false, false), (0, 1, false, false), (0, 0, true, true)]
    {
        let memory = placed(&[7; 256], MemoryLocation::CPU, true);
        let slice = aligned_slice(&memory, at, 20);
        let destination = Some(Arc::new(OutputMemory::new(slice.clone())));
        let requested = RequestedOutput::new(index, 0).written_to(destination);
        let (one, responses) = placed_request(&model, 1, &[], [requested]);
        if sequence {
            one.responder.set_implicit_state(ImplicitState::default());
        }
        let data = if index == 0 { floats(&[1.0, 2.0]) } else { texts(&["a", "bcd"]) };
        let dtype = [dtype::FP32, dtype::STRING][index];
        with_batch(vec![one], |batch| {
            assert_eq!(scatter(batch, ["O", "T"][index], dtype, &[1, 2], &data), Ok(true));
            let written = slice.slice(0..data.len()).to_cpu().unwrap();
            assert_eq!(written == data, direct, "{at} {index}");
            send(batch);
        });
        let sent = single_response(&responses).outputs.remove(0).data;
        assert_eq!(sent, slice.slice(0..data.len()).into());
        assert_eq!(sent.to_cpu().unwrap(), data);
        let all = PlacedSlice::new(&memory, 0, 256).unwrap().to_cpu().unwrap();
        assert_eq!(all.iter().filter(|byte| **byte == 7).count(), 256 - data.len());
    }
}
