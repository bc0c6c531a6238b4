//! Unit tests of gathering and scattering, through the host functions that backends call.

use super::frame::FrameHold;
use super::views::{TensorNames, ViewOptions};
use crate::error::Result;
use crate::plugin::host_api::table;
use crate::plugin::text::{c_text, take, view};
use crate::request::state_spec::{StateSpec, StateTensor};
use crate::request::{
    DType, ImplicitState, InferRequest, InferResponse, InputTensor, RequestContext,
    RequestedOutput, Responder, ResponseSink, Shape, Signature, TensorSpec, strings,
};
use crate::stats::{Execution, OutstandingExecutions, VersionStats};
use crate::sync::Mutex;
use bytes::Bytes;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{self, Buf, Memory, dtype};

type RecordedResponses = Arc<Mutex<Vec<Result<Option<InferResponse>>>>>;

struct RecordingSink(RecordedResponses);

impl ResponseSink for RecordingSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, _: bool) {
        self.0.lock().push(response);
    }
}

/// FP32 `I`, `O` and state `N` of two numbers, STRING `S` and `T` of two elements.
fn signature(max_batch_size: u32) -> Arc<Signature> {
    let spec = |name: &str, dtype| TensorSpec::new(name, dtype, &[2]);
    let state = StateSpec {
        input: 2,
        output: "N".into(),
        dtype: DType::Fp32,
        dims: vec![2],
        initial: StateTensor { shape: [1, 2][..].into(), data: Bytes::from_static(&[0; 8]) },
    };
    Arc::new(Signature {
        model: "m".into(),
        max_batch_size,
        inputs: vec![spec("I", DType::Fp32), spec("S", DType::String)],
        outputs: vec![spec("O", DType::Fp32), spec("T", DType::String)],
        hidden: vec![spec("P", DType::Fp32)],
        states: vec![state],
    })
}

fn floats(values: &[f32]) -> Bytes {
    values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into()
}

fn texts(texts: &[&str]) -> Bytes {
    let mut all = Vec::new();
    texts.iter().for_each(|t| strings::push(&mut all, t.as_bytes()));
    all.into()
}

/// A request for the outputs of these indices, and its responses.
fn request(
    signature: &Arc<Signature>,
    rows: u32,
    inputs: &[(usize, Bytes)],
    requested: &[usize],
) -> (InferRequest, RecordedResponses) {
    let responses = RecordedResponses::default();
    let shape: Shape =
        if signature.batching() { [i64::from(rows), 2][..].into() } else { [2][..].into() };
    let of = |(index, data): &(usize, Bytes)| InputTensor {
        index: *index,
        dtype: signature.input_spec(*index).dtype,
        shape: shape.clone(),
        data: data.clone(),
    };
    let context = RequestContext {
        signature: Arc::clone(signature),
        stats: Some(Arc::new(VersionStats::new(1))),
        received_ns: 1,
        batch: rows,
        outputs: requested.iter().map(|&index| RequestedOutput { index, classes: 0 }).collect(),
        stream: None,
    };
    let request = InferRequest {
        inputs: inputs.iter().map(of).collect(),
        responder: Responder::new(context, RecordingSink(Arc::clone(&responses))),
        ..crate::request::testing::request("r").0
    };
    request.responder.queued(1);
    (request, responses)
}

fn with_batch(requests: Vec<InferRequest>, work: impl FnOnce(*mut Batch)) {
    let signature = Arc::clone(&requests[0].context().signature);
    let names = Arc::new(TensorNames::new(&signature));
    let in_flight = Arc::new(OutstandingExecutions::default());
    let count = requests.len() as u32;
    let execution = Arc::new(Execution::new(0, count, 1, 0, &in_flight));
    let options = ViewOptions { signature: &signature, names: &names, align: 0 };
    let mut hold = FrameHold::new();
    hold.fill(1, &mut { requests }, &options, &execution);
    hold.enter(work);
    hold.recycle();
}

fn check(error: *mut types::Error) -> std::result::Result<(), String> {
    // SAFETY: just returned by a host function.
    unsafe { take(error) }.map_err(|e| e.to_error().message)
}

const NOTHING: Buf =
    Buf { ptr: null_mut(), bytes: 0, memory: Memory::CPU, ready: null_mut(), memory_handle: 0 };

fn gather(batch: *mut Batch, input: u32) -> std::result::Result<(usize, Vec<u8>), String> {
    let mut buf = NOTHING;
    // SAFETY: the batch is being executed, or the host function must detect that it is not.
    let error = unsafe { (table().gather)(batch, input, Memory::CPU, 0, null_mut(), &raw mut buf) };
    check(error)?;
    if buf.bytes == 0 {
        return Ok((buf.ptr.addr(), Vec::new()));
    }
    // SAFETY: the host's block.
    let bytes = unsafe { std::slice::from_raw_parts(buf.ptr, buf.bytes as usize) };
    Ok((buf.ptr.addr(), bytes.to_vec()))
}

/// Scatters `data` in memory of the host; returns whether it was requested.
fn scatter(
    batch: *mut Batch,
    name: &str,
    dtype: u32,
    shape: &[i64],
    data: &[u8],
) -> std::result::Result<bool, String> {
    let (name, mut buf) = (c_text(name), NOTHING);
    let (rank, bytes) = (shape.len() as u32, data.len() as u64);
    // SAFETY: as above.
    check(unsafe {
        let alloc = table().scatter_alloc;
        alloc(batch, view(&name), dtype, rank, shape.as_ptr(), bytes, Memory::CPU, &raw mut buf)
    })?;
    if buf.ptr.is_null() {
        assert_eq!(buf.bytes, 0);
        return Ok(false);
    }
    assert!(buf.bytes == bytes && buf.ptr.addr().is_multiple_of(64));
    // SAFETY: the block has this size and is writable until the batch is sent.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), buf.ptr, data.len()) };
    Ok(true)
}

static RELEASED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn release(ctx: *mut u8) {
    // SAFETY: the box that `donate` gave.
    drop(unsafe { Box::from_raw(ctx.cast::<Vec<u8>>()) });
    RELEASED.fetch_add(1, Ordering::SeqCst);
}

fn donate(
    batch: *mut Batch,
    name: &str,
    shape: &[i64],
    data: Vec<u8>,
) -> std::result::Result<(), String> {
    let name = c_text(name);
    let (ptr, bytes) = (data.as_ptr().cast_mut(), data.len() as u64);
    let (buf, ctx) = (Buf { ptr, bytes, ..NOTHING }, Box::into_raw(Box::new(data)).cast());
    let (rank, func) = (shape.len() as u32, Release { func: Some(release) });
    // SAFETY: as above; the memory lives until its release.
    check(unsafe {
        let adopt = table().scatter_adopt;
        adopt(batch, view(&name), dtype::FP32, rank, shape.as_ptr(), &raw const buf, func, ctx)
    })
}

fn send(batch: *mut Batch) {
    // SAFETY: as above.
    check(unsafe { (table().batch_finish)(batch, null(), null_mut()) }).unwrap();
}

fn responder_of(batch: *mut Batch, index: usize) -> *mut types::Responder {
    // SAFETY: the batch is being executed.
    unsafe { (**(*batch).requests.add(index)).responder }
}

fn single_response(responses: &RecordedResponses) -> InferResponse {
    let mut responses = responses.lock();
    assert_eq!(responses.len(), 1);
    responses.pop().unwrap().unwrap().unwrap()
}

fn failure(responses: &RecordedResponses) -> String {
    responses.lock()[0].as_ref().unwrap_err().message.clone()
}

#[test]
fn gather_of_one_request_does_not_copy() {
    for (model, shape) in [(signature(8), &[1, 2][..]), (signature(0), &[2])] {
        let data = floats(&[1.0, 2.0]);
        let (one, responses) = request(&model, 1, &[(0, data.clone())], &[0]);
        with_batch(vec![one], |batch| {
            let (ptr, bytes) = gather(batch, 0).unwrap();
            assert_eq!((ptr, &bytes[..]), (data.as_ptr().addr(), &data[..]));
            assert!(gather(batch, 1).unwrap_err().contains("fewer inputs"));
            assert_eq!(scatter(batch, "O", dtype::FP32, shape, &data), Ok(true));
            send(batch);
        });
        assert_eq!(single_response(&responses).outputs[0].shape.as_slice(), shape);
    }
}

#[test]
fn gather_copies_only_noncontiguous_inputs() {
    let model = signature(8);
    let all = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let of = |rows, data: Bytes| request(&model, rows, &[(0, data)], &[]).0;
    with_batch(vec![of(1, all.slice(..8)), of(0, Bytes::new()), of(2, all.slice(8..))], |batch| {
        let (ptr, bytes) = gather(batch, 0).unwrap();
        assert_eq!((ptr, &bytes[..]), (all.as_ptr().addr(), &all[..]));
    });
    with_batch(vec![of(2, all.slice(8..)), of(1, all.slice(..8))], |batch| {
        // SAFETY: the batch is being executed.
        assert_eq!(unsafe { (*batch).rows }, 3);
        let (ptr, bytes) = gather(batch, 0).unwrap();
        assert_eq!((ptr % 64, &bytes[..]), (0, &[&all[8..], &all[..8]].concat()[..]));
        assert_eq!(gather(batch, 0).unwrap().0, ptr, "gathered once");
    });
}

#[test]
fn gathered_block_is_reused_by_the_next_batch() {
    let model = signature(8);
    let names = Arc::new(TensorNames::new(&model));
    let options = ViewOptions { signature: &model, names: &names, align: 0 };
    let mut hold = FrameHold::new();
    let mut seen = Vec::new();
    for round in 0..3 {
        let of = |v: f32| request(&model, 1, &[(0, floats(&[v, v]))], &[]).0;
        let execution = Arc::new(Execution::new(0, 2, 2, 0, &Arc::default()));
        hold.fill(1, &mut vec![of(round as f32), of(9.0)], &options, &execution);
        hold.enter(|batch| {
            let (ptr, bytes) = gather(batch, 0).unwrap();
            assert_eq!(bytes, floats(&[round as f32, round as f32, 9.0, 9.0]));
            seen.push(ptr);
            send(batch);
            assert!(gather(batch, 0).is_ok(), "the block lives until the frame is recycled");
            assert!(gather(batch, 1).unwrap_err().contains("fewer inputs"));
        });
        hold.recycle();
    }
    assert_eq!(seen, vec![seen[0]; 3]);
}

#[test]
fn gather_refuses_incompatible_inputs() {
    let model = signature(8);
    let one = |inputs: &[(usize, Bytes)]| request(&model, 1, inputs, &[]).0;
    let mut wide = one(&[(0, floats(&[1.0; 3]))]);
    wide.inputs[0].shape = [1, 3][..].into();
    let refuses = |requests, what: &str| {
        with_batch(requests, |batch| {
            let text = gather(batch, 0).unwrap_err();
            assert!(text.contains(what), "{text}");
        });
    };
    let two = floats(&[1.0; 2]);
    refuses(
        vec![one(&[(0, two.clone())]), wide],
        "model 'm': input 'I' cannot be gathered: shapes [1,2] and [1,3] differ",
    );
    refuses(
        vec![one(&[(0, two.clone())]), one(&[(1, texts(&["", ""]))])],
        "different inputs at this position",
    );
    let flat = signature(0);
    let flat = |()| request(&flat, 1, &[(0, two.clone())], &[]).0;
    refuses(vec![flat(()), flat(())], "no batch dimension");
    with_batch(vec![one(&[(0, two.clone())])], |batch| {
        // SAFETY: a handle of this batch's request.
        unsafe { (table().request_release)((**(*batch).requests).handle, null_mut()) };
        assert!(gather(batch, 0).unwrap_err().contains("released before"));
        let gpu = Memory { memory_type: types::memory_type::GPU, device_id: 0 };
        let gather = table().gather;
        // SAFETY: the batch is being executed.
        let text = |memory, mode| unsafe {
            check(gather(batch, 0, memory, mode, null_mut(), null_mut())).unwrap_err()
        };
        assert!(text(gpu, 0).contains("type 2") && text(Memory::CPU, 7).contains("mode 7"));
    });
    assert!(gather(null_mut(), 0).is_err());
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
    assert_eq!(a.outputs[0].data, texts(&["a", "", "ccc", "d"]));
    assert_eq!(
        (a.outputs[1].shape.as_slice(), &a.outputs[1].data),
        (&[2, 2][..], &floats(&[0.0, 1.0, 2.0, 3.0]))
    );
    assert_eq!(
        (b.outputs[0].shape.as_slice(), &b.outputs[0].data),
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
    assert_eq!(single_response(&responses_b).outputs[0].data, floats(&[3.0, 4.0]));
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
        (inputs[0].shape.to_vec(), inputs[0].data.clone())
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
                    check(alloc(response, view(&name), dtype::FP32, 2, shape, 8, Memory::CPU, buf))
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
        inputs.remove(0).data
    };
    let (first, second) = (floats(&[1.0, 2.0]), floats(&[3.0, 4.0]));
    let responses = respond(&[0], &first, 1);
    let sent = single_response(&responses).outputs[0].data.clone();
    assert_eq!((&sent, &stored()), (&first, &first));
    assert_eq!(sent.as_ptr(), stored().as_ptr(), "no copy");
    assert!(single_response(&respond(&[], &second, 1)).outputs.is_empty());
    assert_eq!(stored(), second);
    respond(&[0], &first, 0);
    assert_eq!(stored(), second, "the response was not final");
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
        refused("O", dtype::FP32, &[3, 2], &rows[..24], "rows of all its requests: 4");
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
            let error = (table().error_new)(3, 0, view(&c_text("one request")));
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
    assert_eq!(single_response(&responses_good).outputs[0].data, floats(&[3.0, 3.0]));
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
            let error = (table().error_new)(3, 0, view(&c_text("whole batch")));
            check((table().batch_finish)(batch, error, null_mut())).unwrap();
            (table().error_free)(error);
        }
    });
    assert_eq!(failure(&responses), "whole batch");
}
