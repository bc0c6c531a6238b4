//! Requests for unit tests: a signature with one input and one output, and a sink that records responses.

use super::signature::{Signature, TensorSpec};
use super::tensor::{InputTensor, RequestedOutput};
use super::{DType, InferRequest, InferResponse, RequestContext, Responder, ResponseSink};
use crate::clock::now_ns;
use crate::error::Result;
use crate::stats::VersionStats;
use crate::sync::Mutex;
use bytes::Bytes;
use std::sync::Arc;

/// The responses that a sink received, in order, each with whether it was final.
pub type RecordedResponses = Arc<Mutex<Vec<(Result<Option<InferResponse>>, bool)>>>;

struct RecordingSink(RecordedResponses);

impl ResponseSink for RecordingSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        self.0.lock().push((response, last));
    }
}

/// FP32 `I` and `O` of `dims`.
pub fn signature(dims: &[i64], max_batch_size: u32) -> Arc<Signature> {
    let spec = |name: &str| TensorSpec::new(name, DType::Fp32, dims);
    let (inputs, outputs) = (vec![spec("I")], vec![spec("O")]);
    let model = "m".into();
    Arc::new(Signature { model, max_batch_size, inputs, outputs, ..Default::default() })
}

/// A request of two floats, its statistics, and its responses.
pub fn request(id: &str) -> (InferRequest, Arc<VersionStats>, RecordedResponses) {
    request_for(&signature(&[2], 0), id, 1)
}

/// As [`request`] for a model of this signature, with this many rows.
pub fn request_for(
    signature: &Arc<Signature>,
    id: &str,
    rows: u32,
) -> (InferRequest, Arc<VersionStats>, RecordedResponses) {
    let stats = Arc::new(VersionStats::new(1));
    let context = RequestContext {
        signature: Arc::clone(signature),
        stats: Some(Arc::clone(&stats)),
        received_ns: now_ns(),
        batch: rows,
        outputs: [RequestedOutput { index: 0, classes: 0 }].into_iter().collect(),
        stream: None,
    };
    let data = Bytes::from(vec![0; 8 * rows as usize]);
    let shape = signature.batching().then_some(i64::from(rows)).into_iter().chain([2]).collect();
    let input = InputTensor { index: 0, dtype: DType::Fp32, shape, data };
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
