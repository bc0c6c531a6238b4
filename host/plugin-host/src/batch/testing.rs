//! Set-up of the unit tests of gathering and scattering, through the host functions that backends
//! call.

use super::frame::FrameHold;
use super::gpu::GpuInstance;
use super::views::{TensorNames, ViewOptions};
use crate::host_api::table;
use crate::text::{c_text, str_view, take_error};
use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_base::error::Result;
use trtserver_base::stats::{BatchExecution, OutstandingExecutions, VersionStats};
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{self, Buf, Memory, dtype};
use trtserver_request::state_spec::{StateSpec, StateTensor};
use trtserver_request::{
    DType, InferRequest, InferResponse, InputTensor, ModelSignature, RequestContext,
    RequestedOutput, Responder, ResponseSink, Shape, TensorData, TensorSpec, UsedMemory, strings,
};

pub type RecordedResponses = Arc<Mutex<Vec<Result<Option<InferResponse>>>>>;

struct RecordingSink(RecordedResponses);

impl ResponseSink for RecordingSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, _: bool) {
        self.0.lock().push(response);
    }
}

/// FP32 `I`, `O` and state `N` of two numbers, STRING `S` and `T` of two elements.
pub fn signature(max_batch_size: u32) -> Arc<ModelSignature> {
    let spec = |name: &str, dtype| TensorSpec::new(name, dtype, &[2]);
    let state = StateSpec {
        input: 2,
        output: "N".into(),
        dtype: DType::Fp32,
        dims: vec![2],
        initial: StateTensor { shape: [1, 2][..].into(), data: Bytes::from_static(&[0; 8]).into() },
    };
    Arc::new(ModelSignature {
        model: "m".into(),
        max_batch_size,
        inputs: vec![spec("I", DType::Fp32), spec("S", DType::String)],
        outputs: vec![spec("O", DType::Fp32), spec("T", DType::String)],
        hidden: vec![spec("P", DType::Fp32)],
        states: vec![state],
        ..ModelSignature::default()
    })
}

pub fn floats(values: &[f32]) -> Bytes {
    values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into()
}

pub fn texts(texts: &[&str]) -> Bytes {
    let mut all = Vec::new();
    texts.iter().for_each(|t| strings::push_string(&mut all, t.as_bytes()));
    all.into()
}

/// A request for the outputs of these indices, and its responses.
pub fn request(
    signature: &Arc<ModelSignature>,
    rows: u32,
    inputs: &[(usize, Bytes)],
    requested: &[usize],
) -> (InferRequest, RecordedResponses) {
    let inputs: Vec<_> =
        inputs.iter().map(|(index, data)| (*index, TensorData::from(data.clone()))).collect();
    let outputs = requested.iter().map(|&index| RequestedOutput::new(index, 0));
    placed_request(signature, rows, &inputs, outputs)
}

/// The same with data and destinations anywhere.
pub fn placed_request(
    signature: &Arc<ModelSignature>,
    rows: u32,
    inputs: &[(usize, TensorData)],
    outputs: impl IntoIterator<Item = RequestedOutput>,
) -> (InferRequest, RecordedResponses) {
    let responses = RecordedResponses::default();
    let shape: Shape =
        if signature.batching() { [i64::from(rows), 2][..].into() } else { [2][..].into() };
    let of = |(index, data): &(usize, TensorData)| InputTensor {
        index: *index,
        dtype: signature.input_spec(*index).dtype,
        shape: shape.clone(),
        data: data.clone(),
    };
    let inputs: SmallVec<[InputTensor; 2]> = inputs.iter().map(of).collect();
    let outputs: SmallVec<[RequestedOutput; 2]> = outputs.into_iter().collect();
    let context = RequestContext {
        signature: Arc::clone(signature),
        stats: Some(Arc::new(VersionStats::new(1))),
        received_ns: 1,
        batch: rows,
        wording: trtserver_request::context::ErrorWording::default(),
        used_memory: UsedMemory::from_tensors(&inputs, &outputs),
        outputs,
        stream: None,
        waits: false,
    };
    let request = InferRequest {
        inputs,
        responder: Responder::new(context, RecordingSink(Arc::clone(&responses))),
        ..trtserver_request::testing::request("r").0
    };
    request.responder.queued(1);
    (request, responses)
}

pub fn with_batch(requests: Vec<InferRequest>, work: impl FnOnce(*mut Batch)) {
    with_batch_on(None, requests, work);
}

/// As [`with_batch`], on a GPU, where the inputs are.
pub fn with_batch_on(
    gpu: Option<&Arc<GpuInstance>>,
    mut requests: Vec<InferRequest>,
    work: impl FnOnce(*mut Batch),
) {
    let signature = Arc::clone(&requests[0].context().signature);
    let names = Arc::new(TensorNames::new(&signature));
    let in_flight = Arc::new(OutstandingExecutions::default());
    let count = requests.len() as u32;
    let execution = Arc::new(BatchExecution::new(0, count, 1, 0, &in_flight));
    let options = ViewOptions { signature: &signature, names: &names, gpu };
    if let Some(gpu) = gpu.filter(|gpu| gpu.takes_inputs()) {
        gpu.place_inputs(&mut requests, &signature, 0);
    }
    for request in &requests {
        request.responder.executed_in(Arc::clone(&execution));
    }
    let mut hold = FrameHold::new();
    hold.fill(1, &mut requests, &options, &execution);
    hold.enter(work);
    hold.recycle();
}

pub fn check(error: *mut types::Error) -> std::result::Result<(), String> {
    // SAFETY: just returned by a host function.
    unsafe { take_error(error) }.map_err(|e| e.to_error().message)
}

pub const NOTHING: Buf =
    Buf { ptr: null_mut(), bytes: 0, memory: Memory::CPU, ready: null_mut(), memory_handle: 0 };

pub fn gather(batch: *mut Batch, input: u32) -> std::result::Result<(usize, Vec<u8>), String> {
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
pub fn scatter(
    batch: *mut Batch,
    name: &str,
    dtype: u32,
    shape: &[i64],
    data: &[u8],
) -> std::result::Result<bool, String> {
    let (name, mut buf) = (c_text(name), NOTHING);
    let (rank, bytes) = (shape.len() as u32, data.len() as u64);
    // SAFETY: the batch is being executed; name, shape and result are locals that outlive the call.
    check(unsafe {
        let alloc = table().scatter_alloc;
        alloc(batch, str_view(&name), dtype, rank, shape.as_ptr(), bytes, Memory::CPU, &raw mut buf)
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

pub static RELEASED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn release(ctx: *mut u8) {
    // SAFETY: the box that `donate` gave.
    drop(unsafe { Box::from_raw(ctx.cast::<Vec<u8>>()) });
    RELEASED.fetch_add(1, Ordering::SeqCst);
}

/// Memory that a backend donates, with its release.
pub fn donation(data: Vec<u8>) -> (Buf, Release, *mut u8) {
    let (ptr, bytes) = (data.as_ptr().cast_mut(), data.len() as u64);
    let ctx = Box::into_raw(Box::new(data)).cast();
    (Buf { ptr, bytes, ..NOTHING }, Release { func: Some(release) }, ctx)
}

pub fn donate(
    batch: *mut Batch,
    name: &str,
    shape: &[i64],
    data: Vec<u8>,
) -> std::result::Result<(), String> {
    let (name, rank) = (c_text(name), shape.len() as u32);
    let (buf, func, ctx) = donation(data);
    // SAFETY: the batch is being executed, and the texts outlive the call; the donated memory lives
    // until its release.
    check(unsafe {
        let adopt = table().scatter_adopt;
        adopt(batch, str_view(&name), dtype::FP32, rank, shape.as_ptr(), &raw const buf, func, ctx)
    })
}

pub fn send(batch: *mut Batch) {
    // SAFETY: the batch is being executed, and its caller finishes it once.
    check(unsafe { (table().batch_finish)(batch, null(), null_mut()) }).unwrap();
}

pub fn responder_of(batch: *mut Batch, index: usize) -> *mut types::Responder {
    // SAFETY: the batch is being executed.
    unsafe { (**(*batch).requests.add(index)).responder }
}

pub fn single_response(responses: &RecordedResponses) -> InferResponse {
    let mut responses = responses.lock();
    assert_eq!(responses.len(), 1);
    responses.pop().unwrap().unwrap().unwrap()
}

pub fn failure(responses: &RecordedResponses) -> String {
    responses.lock()[0].as_ref().unwrap_err().message.clone()
}
