//! Which requests the cache answers, and which of them share an execution.

use trtserver_request::{CorrelationId, InferRequest, RequestedOutput};

/// A request of a client whose tensors the CPU reads and writes, and that belongs to no sequence.
pub fn is_cacheable(request: &InferRequest) -> bool {
    let (context, sequence) = (request.context(), &request.sequence);
    let in_sequence = sequence.start || sequence.end || sequence.id != CorrelationId::None;
    context.is_counted()
        && !request.warmup
        && !in_sequence
        && !context.waits
        && !context.waits_for_device()
        && !context.outputs.iter().any(RequestedOutput::stays_on_device)
}

/// It may wait for the execution of an equal request. One with a queue timeout of its own may not:
/// the timeout of the other request would count.
pub fn may_follow(request: &InferRequest, ordered: bool) -> bool {
    request.timeout_us == 0 && !ordered
}

/// Outputs go to memory of the client. The client can change it at any time, so that what is cached
/// must not be read there.
pub fn has_destinations(request: &InferRequest) -> bool {
    request.context().outputs.iter().any(|output| output.destination.is_some())
}
