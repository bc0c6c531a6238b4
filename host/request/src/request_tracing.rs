//! What a traced request records on its way: its submission, its batch, its responses and its end.
//! The callers look first whether the request is traced, so nothing here is called for others.

use super::responder::Responder;
use super::response::InferResponse;
use super::tensor::Shape;
use super::{InferRequest, ModelSignature, TensorData};
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::Result;
use trtserver_base::request_id::RequestId;
use trtserver_base::stats::CLOSE_REASONS;
use trtserver_request_trace::current::{TraceScope, enter_trace};
use trtserver_request_trace::request_trace::MAX_MATES;
use trtserver_request_trace::{ActiveTrace, BatchFacts, TensorActivity, TraceEnd};

/// Longest request id in the list of a batch.
const MAX_MATE_ID: usize = 64;

/// A checked request goes to `version` of its model.
#[cold]
pub fn trace_submission(trace: &ActiveTrace, request: &InferRequest, version: i64) {
    let bytes = request.inputs.iter().map(|input| input.data.len() as u64).sum();
    trace.submitted(version, &request.id, request.context().batch, bytes);
    trace_inputs(trace, request, TensorActivity::QueueInput);
}

/// Requests go to an instance as one batch. Until the result is dropped, what this thread makes for
/// it belongs to the only traced request of the batch, if it has one alone.
#[cold]
pub fn trace_batch(
    requests: &[InferRequest],
    number: u64,
    instance: &Arc<str>,
    close_reason: Option<usize>,
) -> Option<TraceScope> {
    let clients = || requests.iter().filter(|request| request.context().is_counted());
    let id = |request: &InferRequest| {
        request.id[..request.id.floor_char_boundary(MAX_MATE_ID)].to_owned()
    };
    let count = clients().count();
    let facts = BatchFacts {
        number,
        instance: Arc::clone(instance),
        requests: count as u32,
        rows: clients().map(|request| request.context().batch).sum(),
        close_reason: close_reason.and_then(|i| CLOSE_REASONS.get(i).copied()).unwrap_or_default(),
        request_ids: (count > 1).then(|| clients().take(MAX_MATES).map(id).collect()),
    };
    for request in requests {
        if let Some(trace) = request.responder.trace() {
            trace.executed_in(facts.clone());
            trace_inputs(trace, request, TensorActivity::BackendInput);
        }
    }
    let mut traces = requests.iter().filter_map(|request| request.responder.trace());
    let only = traces.next()?;
    traces.next().is_none().then(|| enter_trace(only))
}

/// A response that others follow, at `now`.
#[cold]
pub fn trace_response(trace: &ActiveTrace, response: &InferResponse, now: u64) {
    trace.responded(response.byte_size() as u64, now);
    trace_outputs(trace, response);
}

fn trace_outputs(trace: &ActiveTrace, response: &InferResponse) {
    if trace.wants_tensors() {
        for output in &response.outputs {
            let (name, dtype) = (&output.name, output.dtype.v2_name());
            record(trace, TensorActivity::BackendOutput, name, dtype, &output.shape, &output.data);
        }
    }
}

/// The final response, or the error. Returns the time that is recorded.
#[cold]
pub fn trace_end(
    trace: &ActiveTrace,
    responder: &Responder,
    result: &Result<Option<InferResponse>>,
) -> u64 {
    let now = now_ns();
    let response = result.as_ref().ok().and_then(Option::as_ref);
    let execution = responder.counted_execution();
    let end = TraceEnd {
        error: result.as_ref().err(),
        response_bytes: response.map(|response| response.byte_size() as u64),
        queued_ns: responder.queued_ns(),
        execution: execution.as_deref().map(|e| &**e),
    };
    trace.finished(&end, now);
    if let Some(response) = response {
        trace_outputs(trace, response);
    }
    now
}

fn trace_inputs(trace: &ActiveTrace, request: &InferRequest, activity: TensorActivity) {
    if !trace.wants_tensors() {
        return;
    }
    let signature: &ModelSignature = &request.context().signature;
    for input in &request.inputs {
        // Those that the host adds are not the client's.
        let Some(spec) = signature.inputs.get(input.index) else { continue };
        let (name, dtype) = (&spec.name, input.dtype.v2_name());
        record(trace, activity, name, dtype, &input.shape, &input.data);
    }
}

/// Data that the CPU cannot access is left out.
fn record(
    trace: &ActiveTrace,
    activity: TensorActivity,
    name: &str,
    dtype: &'static str,
    shape: &Shape,
    data: &TensorData,
) {
    trace.tensor(activity, name, dtype, shape, data.readable().unwrap_or_default());
}

/// Ids of a batch for log lines.
pub fn log_ids(requests: &[InferRequest]) -> impl Iterator<Item = &RequestId> {
    requests.iter().filter_map(|request| request.responder.request_id())
}
