//! Finishes a request with a response that was not executed for it alone.

use trtserver_base::error::Result;
use trtserver_base::stats::FailureReason;
use trtserver_request::{InferResponse, RequestContext, Responder, TensorData};

/// How long a request was looked up, and since when it waits: for the result of another request, or
/// for nothing.
#[derive(Clone, Copy, Debug)]
pub struct HitTimes {
    pub lookup_ns: u64,
    pub since_ns: u64,
}

/// Answers a request of `responder` at `now_ns`, and counts it as a hit.
pub fn answer_hit(responder: &Responder, response: InferResponse, times: HitTimes, now_ns: u64) {
    let context = &responder.context;
    let result = delivered(context, response).map(Some);
    let _ = responder.finish_shared(result, |result| {
        let Some(stats) = &context.stats else { return };
        let request_ns = now_ns.saturating_sub(context.received_ns);
        match result {
            Ok(_) => {
                let queue_ns = now_ns.saturating_sub(times.since_ns);
                stats.cache_hit(context.batch, now_ns, [request_ns, queue_ns, times.lookup_ns]);
            }
            Err(_) => stats.failure(context.batch, request_ns, FailureReason::Other, false),
        }
    });
}

/// The response with each output where the request wants it.
///
/// # Errors
/// A destination is too small.
pub fn delivered(context: &RequestContext, mut response: InferResponse) -> Result<InferResponse> {
    if context.outputs.iter().all(|output| output.destination.is_none()) {
        return Ok(response);
    }
    for output in &mut response.outputs {
        let index = context.signature.output(&output.name);
        let Some(position) = index.and_then(|index| context.position(index)) else { continue };
        let data = std::mem::replace(&mut output.data, TensorData::EMPTY);
        output.data = context.deliver(position, data, &output.name)?;
    }
    Ok(response)
}
