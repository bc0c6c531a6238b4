//! Requests without clients, created in this process.

use super::steps::step;
use bytes::Bytes;
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::stats::{BatchExecution, VersionStats};
use trtserver_request::{
    DType, DiscardResponses, InferRequest, InputTensor, ModelSignature, RequestContext,
    RequestedOutput, Responder, Sink, TensorSpec,
};

/// The signature of a model that echoes 64 bytes.
pub fn signature() -> Arc<ModelSignature> {
    let spec = |name| vec![TensorSpec::new(name, DType::Fp32, &[16])];
    let (inputs, outputs) = (spec("INPUT0"), spec("OUTPUT0"));
    Arc::new(ModelSignature {
        model: "queue".into(),
        max_batch_size: 16,
        inputs,
        outputs,
        ..ModelSignature::default()
    })
}

/// A request of one row for the first output.
pub fn request(
    signature: &Arc<ModelSignature>,
    stats: Option<&Arc<VersionStats>>,
    input: InputTensor,
    sink: impl Into<Sink>,
) -> InferRequest {
    let context = RequestContext {
        signature: Arc::clone(signature),
        stats: stats.cloned(),
        received_ns: now_ns(),
        batch: 1,
        outputs: [RequestedOutput::new(0, 0)].into_iter().collect(),
        stream: None,
        waits: false,
        wording: trtserver_request::context::ErrorWording::default(),
        used_memory: None,
    };
    InferRequest::new(Responder::new(context, sink), [input].into_iter().collect())
}

pub fn requests(signature: &Arc<ModelSignature>, count: usize) -> Vec<InferRequest> {
    let stats = Arc::new(VersionStats::new(1));
    let data = Bytes::from(vec![0; 64]);
    let request = |number| {
        let shape = [1, 16][..].into();
        let input = InputTensor { index: 0, dtype: DType::Fp32, shape, data: data.clone().into() };
        let request = self::request(signature, Some(&stats), input, DiscardResponses);
        InferRequest { sequence: step(number as u64), ..request }
    };
    (0..count).map(request).collect()
}

/// Finishes requests that were taken from a queue.
pub fn respond(taken: &mut Vec<InferRequest>) {
    let execution = Arc::new(BatchExecution::new(0, 1, 1, now_ns(), &Arc::default()));
    for request in taken.drain(..) {
        request.responder.executed_in(Arc::clone(&execution));
        let _ = request.responder.finish(Ok(None));
    }
}
