//! Unit tests of gathering and scattering, through the host functions that backends call.

use super::frame::FrameHold;
use super::views::{TensorNames, ViewOptions};
use crate::error::Result;
use crate::plugin::host_api::table;
use crate::plugin::text::{c_text, take, view};
use crate::request::implicit_state::{StateSpec, StateTensor};
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

type Told = Arc<Mutex<Vec<Result<Option<InferResponse>>>>>;

struct Remember(Told);

impl ResponseSink for Remember {
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

/// A request for outputs of these indices.
fn request(
    signature: &Arc<Signature>,
    rows: u32,
    inputs: &[(usize, Bytes)],
    wants: &[usize],
) -> (InferRequest, Told) {
    let told = Told::default();
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
        outputs: wants.iter().map(|&index| RequestedOutput { index, classes: 0 }).collect(),
    };
    let request = InferRequest {
        inputs: inputs.iter().map(of).collect(),
        responder: Responder::new(context, Remember(Arc::clone(&told))),
        ..crate::request::testing::request("r").0
    };
    request.responder.queued(1);
    (request, told)
}

fn with_batch(requests: Vec<InferRequest>, work: impl FnOnce(*mut Batch)) {
    let signature = Arc::clone(&requests[0].context().signature);
    let names = Arc::new(TensorNames::new(&signature));
    let in_flight = Arc::new(OutstandingExecutions::default());
    let calls = requests.len() as u32;
    let execution = Arc::new(Execution::new(0, calls, 1, 0, &in_flight));
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
    // SAFETY: room for all of it, lent until the batch is sent.
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

fn reply_of(batch: *mut Batch, call: usize) -> *mut types::Responder {
    // SAFETY: the batch is being executed.
    unsafe { (**(*batch).requests.add(call)).responder }
}

fn answer(told: &Told) -> InferResponse {
    let mut told = told.lock();
    assert_eq!(told.len(), 1);
    told.pop().unwrap().unwrap().unwrap()
}

fn failure(told: &Told) -> String {
    told.lock()[0].as_ref().unwrap_err().message.clone()
}

#[test]
fn gather_of_one_request_does_not_copy() {
    for (model, shape) in [(signature(8), &[1, 2][..]), (signature(0), &[2])] {
        let data = floats(&[1.0, 2.0]);
        let (one, told) = request(&model, 1, &[(0, data.clone())], &[0]);
        with_batch(vec![one], |batch| {
            let (ptr, bytes) = gather(batch, 0).unwrap();
            assert_eq!((ptr, &bytes[..]), (data.as_ptr().addr(), &data[..]));
            assert!(gather(batch, 1).unwrap_err().contains("fewer inputs"));
            assert_eq!(scatter(batch, "O", dtype::FP32, shape, &data), Ok(true));
            send(batch);
        });
        assert_eq!(answer(&told).outputs[0].shape.as_slice(), shape);
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
        assert_eq!(gather(batch, 0).unwrap().0, ptr, "once");
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
            assert!(gather(batch, 0).is_ok(), "lives until the frame is over");
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
    let says = |requests, what: &str| {
        with_batch(requests, |batch| {
            let text = gather(batch, 0).unwrap_err();
            assert!(text.contains(what), "{text}");
        });
    };
    let two = floats(&[1.0; 2]);
    says(
        vec![one(&[(0, two.clone())]), wide],
        "model 'm': input 'I' cannot be gathered: shapes [1,2] and [1,3] differ",
    );
    says(
        vec![one(&[(0, two.clone())]), one(&[(1, texts(&["", ""]))])],
        "different inputs at this position",
    );
    let flat = signature(0);
    let flat = |()| request(&flat, 1, &[(0, two.clone())], &[]).0;
    says(vec![flat(()), flat(())], "no batch dimension");
    with_batch(vec![one(&[(0, two.clone())])], |batch| {
        // SAFETY: the call's own request.
        unsafe { (table().request_release)((**(*batch).requests).handle, null_mut()) };
        assert!(gather(batch, 0).unwrap_err().contains("released before"));
        let far = Memory { memory_type: types::memory_type::GPU, device_id: 0 };
        let gather = table().gather;
        // SAFETY: the batch is being executed.
        let text = |place, mode| unsafe {
            check(gather(batch, 0, place, mode, null_mut(), null_mut())).unwrap_err()
        };
        assert!(text(far, 0).contains("kind 2") && text(Memory::CPU, 7).contains("mode 7"));
    });
    assert!(gather(null_mut(), 0).is_err());
}

#[test]
fn scatter_gives_each_request_its_rows_by_reference() {
    let model = signature(8);
    let strings = |rows: usize| (1, texts(&vec!["x"; 2 * rows]));
    let (a, told_a) = request(&model, 2, &[strings(2)], &[1, 0]);
    let (b, told_b) = request(&model, 1, &[strings(1)], &[0]);
    let (c, told_c) = request(&model, 1, &[strings(1)], &[]);
    let words = texts(&["a", "", "ccc", "d", "e", "ff", "g", "hhhh"]);
    with_batch(vec![a, b, c], |batch| {
        assert_eq!(gather(batch, 0).unwrap().1, texts(&["x"; 8]));
        let numbers = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(scatter(batch, "O", dtype::FP32, &[4, 2], &numbers), Ok(true));
        assert_eq!(scatter(batch, "T", dtype::STRING, &[4, 2], &words), Ok(true));
        assert_eq!(scatter(batch, "N", dtype::FP32, &[4, 2], &numbers), Ok(false), "no sequence");
        assert_eq!(scatter(batch, "N", dtype::FP32, &[4, 2], &numbers), Ok(false), "and again");
        send(batch);
        send(batch);
    });
    let (a, b) = (answer(&told_a), answer(&told_b));
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
    assert!(answer(&told_c).outputs.is_empty());
}

#[test]
fn donated_block_is_released_with_its_last_slice() {
    let model = signature(8);
    let input = [(0, floats(&[0.0; 2]))];
    let (a, told_a) = request(&model, 1, &input, &[0]);
    let (b, told_b) = request(&model, 1, &input, &[0]);
    let before = RELEASED.load(Ordering::SeqCst);
    let released = || RELEASED.load(Ordering::SeqCst) - before;
    with_batch(vec![a, b], |batch| {
        assert!(donate(batch, "O", &[3, 2], floats(&[0.0; 6]).to_vec()).is_err());
        assert!(donate(batch, "O", &[2, 2], floats(&[0.0; 3]).to_vec()).is_err());
        donate(batch, "O", &[2, 2], floats(&[1.0, 2.0, 3.0, 4.0]).to_vec()).unwrap();
        assert!(donate(batch, "O", &[2, 2], floats(&[0.0; 4]).to_vec()).is_err(), "twice");
        donate(batch, "N", &[2, 2], floats(&[0.0; 4]).to_vec()).unwrap();
        assert_eq!(released(), 4, "all but the one that is wanted");
        send(batch);
    });
    drop(answer(&told_a));
    assert_eq!(released(), 4);
    assert_eq!(answer(&told_b).outputs[0].data, floats(&[3.0, 4.0]));
    assert_eq!(released(), 5);
}

#[test]
fn scattered_states_go_to_their_sequences() {
    let model = signature(8);
    let (a, told_a) = request(&model, 1, &[], &[]);
    let (b, _told_b) = request(&model, 1, &[], &[]);
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
        let call = unsafe { &**(*batch).requests };
        assert_eq!(call.n_requested_outputs, 1, "the state is wanted");
        assert!(scatter(batch, "N", dtype::INT32, &[2, 2], &[0; 16]).is_err());
        assert!(scatter(batch, "N", dtype::FP32, &[2, 3], &[0; 24]).is_err());
        let values = floats(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(scatter(batch, "N", dtype::FP32, &[2, 2], &values), Ok(true));
        // SAFETY: the second call's own reply.
        check(unsafe { (table().responder_finish)(reply_of(batch, 1), null()) }).unwrap();
        send(batch);
    });
    answer(&told_a);
    assert_eq!(kept(&memory_a), (vec![1, 2], floats(&[1.0, 2.0])));
    assert_eq!(kept(&memory_b).1, [0; 8][..], "its call had ended otherwise");
}

#[test]
fn response_can_carry_a_state() {
    let mut model = Arc::into_inner(signature(8)).unwrap();
    model.states[0].output = "O".into();
    let model = Arc::new(model);
    let memory = ImplicitState::default();
    let respond = |wants: &[usize], data: &Bytes, last| {
        let (one, told) = request(&model, 1, &[], wants);
        one.responder.set_implicit_state(memory.clone());
        with_batch(vec![one], |batch| {
            let (mut response, mut buf, name) = (null_mut(), NOTHING, c_text("O"));
            // SAFETY: the call's own reply and response; 8 bytes are asked for and written.
            unsafe {
                check((table().response_new)(reply_of(batch, 0), &raw mut response)).unwrap();
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
        told
    };
    let stored = || {
        let mut inputs = Vec::new();
        memory.inputs(&model, &mut inputs);
        inputs.remove(0).data
    };
    let (first, second) = (floats(&[1.0, 2.0]), floats(&[3.0, 4.0]));
    let told = respond(&[0], &first, 1);
    let sent = answer(&told).outputs[0].data.clone();
    assert_eq!((&sent, &stored()), (&first, &first));
    assert_eq!(sent.as_ptr(), stored().as_ptr(), "no copy");
    assert!(answer(&respond(&[], &second, 1)).outputs.is_empty());
    assert_eq!(stored(), second);
    respond(&[0], &first, 0);
    assert_eq!(stored(), second, "the answer was not complete");
}

#[test]
fn misuse_is_an_error_and_spares_other_requests() {
    let model = signature(8);
    let input = [(0, floats(&[0.0; 2]))];
    let (failed, told_failed) = request(&model, 1, &input, &[0]);
    let (released, told_released) = request(&model, 1, &input, &[0]);
    let (busy, told_busy) = request(&model, 1, &input, &[0]);
    let (good, told_good) = request(&model, 1, &input, &[0]);
    with_batch(vec![failed, released, busy, good], |batch| {
        let rows = floats(&[0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
        let refused = |name, dtype, shape: &[i64], data: &[u8], what: &str| {
            let text = scatter(batch, name, dtype, shape, data).unwrap_err();
            assert!(text.contains(what), "{text}");
        };
        refused("Q", dtype::FP32, &[4, 2], &rows, "does not declare");
        refused("O", dtype::INT32, &[4, 2], &rows, "TYPE_INT32");
        refused("O", dtype::FP32, &[3, 2], &rows[..24], "rows of all its requests: 4");
        refused("O", dtype::FP32, &[4, 2], &rows[..31], "31 bytes, 32 are right");
        refused("O", dtype::FP32, &[4, 3], &rows, "specifies shape [-1,2]");
        let mut response = null_mut();
        // SAFETY: handles of this batch's own calls.
        unsafe {
            check((table().response_new)(reply_of(batch, 2), &raw mut response)).unwrap();
            refused("O", dtype::FP32, &[4, 2], &rows, "while a response");
            (table().response_free)(response);
            assert_eq!(scatter(batch, "O", dtype::FP32, &[4, 2], &rows), Ok(true));
            refused("O", dtype::FP32, &[4, 2], &rows, "twice");
            check((table().response_new)(reply_of(batch, 2), &raw mut response)).unwrap();
            let error = (table().error_new)(3, 0, view(&c_text("mine")));
            check((table().responder_finish)(reply_of(batch, 0), error)).unwrap();
            (table().error_free)(error);
            (table().request_release)((**(*batch).requests.add(1)).handle, null_mut());
        }
        send(batch);
        assert_eq!(scatter(batch, "O", dtype::FP32, &[4, 2], &rows), Ok(false), "nobody is left");
    });
    assert_eq!(failure(&told_failed), "mine");
    assert!(failure(&told_released).contains("without answering"));
    assert!(failure(&told_busy).contains("without answering"));
    assert_eq!(answer(&told_good).outputs[0].data, floats(&[3.0, 3.0]));
}

#[test]
fn malformed_and_missing_outputs_fail_their_requests() {
    let model = signature(8);
    let (a, told_a) = request(&model, 1, &[], &[1]);
    let (b, told_b) = request(&model, 1, &[], &[0]);
    let (c, told_c) = request(&model, 1, &[], &[]);
    with_batch(vec![a, b, c], |batch| {
        assert_eq!(scatter(batch, "T", dtype::STRING, &[3, 2], &texts(&["a"; 5])), Ok(true));
        send(batch);
    });
    assert!(failure(&told_a).contains("malformed strings in output 'T' of shape [3,2]: TooFew"));
    assert!(failure(&told_b).contains("did not produce output 'O'"));
    assert!(answer(&told_c).outputs.is_empty());
}

#[test]
fn batch_error_discards_scattered_outputs() {
    let model = signature(8);
    let (a, told) = request(&model, 1, &[], &[0]);
    with_batch(vec![a], |batch| {
        assert_eq!(scatter(batch, "O", dtype::FP32, &[1, 2], &[0; 8]), Ok(true));
        // SAFETY: the batch is being executed; the error is freed once.
        unsafe {
            let error = (table().error_new)(3, 0, view(&c_text("all of it")));
            check((table().batch_finish)(batch, error, null_mut())).unwrap();
            (table().error_free)(error);
        }
    });
    assert_eq!(failure(&told), "all of it");
}
