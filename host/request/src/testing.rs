//! Requests for unit tests: a signature with one input and one output, a sink that records
//! responses, placed memory.

use super::buffer::ALIGN;
use super::memory::{MemoryLocation, MemoryOwner, PlacedMemory, PlacedSlice};
use super::signature::{ModelSignature, TensorSpec};
use super::tensor::{InputTensor, RequestedOutput};
use super::{DType, InferRequest, InferResponse, RequestContext, Responder, ResponseSink};
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::VersionStats;

/// The responses that a sink received, in order, each with whether it was final.
pub type RecordedResponses = Arc<Mutex<Vec<(Result<Option<InferResponse>>, bool)>>>;

struct RecordingSink(RecordedResponses);

impl ResponseSink for RecordingSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        self.0.lock().push((response, last));
    }
}

/// FP32 `I` and `O` of `dims`.
pub fn signature(dims: &[i64], max_batch_size: u32) -> Arc<ModelSignature> {
    let spec = |name: &str| TensorSpec::new(name, DType::Fp32, dims);
    let (inputs, outputs) = (vec![spec("I")], vec![spec("O")]);
    let model = "m".into();
    Arc::new(ModelSignature { model, max_batch_size, inputs, outputs, ..Default::default() })
}

/// A request of two floats, its statistics, and its responses.
pub fn request(id: &str) -> (InferRequest, Arc<VersionStats>, RecordedResponses) {
    request_for(&signature(&[2], 0), id, 1)
}

/// As [`request`] for a model of this signature, with this many rows.
pub fn request_for(
    signature: &Arc<ModelSignature>,
    id: &str,
    rows: u32,
) -> (InferRequest, Arc<VersionStats>, RecordedResponses) {
    let stats = Arc::new(VersionStats::new(1));
    let context = RequestContext {
        signature: Arc::clone(signature),
        stats: Some(Arc::clone(&stats)),
        received_ns: now_ns(),
        batch: rows,
        outputs: [RequestedOutput::new(0, 0)].into_iter().collect(),
        stream: None,
        waits: false,
        wording: crate::context::ErrorWording::default(),
        used_memory: None,
    };
    let data = Bytes::from(vec![0; 8 * rows as usize]);
    let shape = signature.batching().then_some(i64::from(rows)).into_iter().chain([2]).collect();
    let input = InputTensor { index: 0, dtype: DType::Fp32, shape, data: data.into() };
    let (request, responses) = request_with(context, id, [input]);
    (request, stats, responses)
}

/// A request of this context, and its responses.
pub fn request_with(
    context: RequestContext,
    id: &str,
    inputs: impl IntoIterator<Item = InputTensor>,
) -> (InferRequest, RecordedResponses) {
    let responses = RecordedResponses::default();
    let responder = Responder::new(context, RecordingSink(Arc::clone(&responses)));
    let request = InferRequest::new(responder, inputs.into_iter().collect());
    (InferRequest { id: id.into(), ..request }, responses)
}

/// Memory that a test places anywhere; CPU memory in fact.
pub struct TestMemory {
    bytes: Mutex<Box<[u8]>>,
    fault: Mutex<Option<String>>,
}

impl TestMemory {
    pub fn new(bytes: &[u8]) -> Arc<Self> {
        Arc::new(Self { bytes: Mutex::new(bytes.into()), fault: Mutex::default() })
    }

    pub fn place(self: &Arc<Self>, location: MemoryLocation, shared: bool) -> Arc<PlacedMemory> {
        let (ptr, len) = {
            let mut bytes = self.bytes.lock();
            (bytes.as_mut_ptr(), bytes.len())
        };
        let owner = Arc::clone(self) as Arc<dyn MemoryOwner>;
        // SAFETY: the boxed bytes stay in place as long as their owner.
        unsafe { PlacedMemory::new(ptr, len, location, shared, owner) }
    }

    /// Sets a fault.
    pub fn fail(&self, why: &str) {
        *self.fault.lock() = Some(why.to_owned());
    }
}

impl MemoryOwner for TestMemory {
    fn fault(&self) -> Option<Error> {
        self.fault.lock().as_ref().map(Error::invalid)
    }

    fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        to.copy_from_slice(&self.bytes.lock()[offset..offset + to.len()]);
        self.fault().map_or(Ok(()), Err)
    }

    fn write(&self, offset: usize, from: &[u8]) -> Result<()> {
        self.bytes.lock()[offset..offset + from.len()].copy_from_slice(from);
        self.fault().map_or(Ok(()), Err)
    }
}

/// `len` bytes from `at` behind the first address that is aligned to 64 bytes.
#[allow(clippy::unwrap_used, reason = "not part of the server")]
pub fn aligned_slice(memory: &Arc<PlacedMemory>, at: usize, len: usize) -> PlacedSlice {
    let whole = PlacedSlice::new(memory, 0, memory.len());
    let begin = whole.map_or(0, |whole| whole.as_ptr().align_offset(ALIGN));
    PlacedSlice::new(memory, begin + at, len).unwrap()
}

/// Placed memory with these bytes.
pub fn placed(bytes: &[u8], location: MemoryLocation, shared: bool) -> Arc<PlacedMemory> {
    TestMemory::new(bytes).place(location, shared)
}
