//! Responder: the response side of a request. One allocation holds the request context, the cancel
//! token, the response channel, and what the statistics need.
//!
//! A request finishes exactly once: finishing it again returns an error and sends nothing. If the
//! last reference is dropped before that, the client gets an error instead of silence.

use super::cancel::CancelToken;
use super::context::RequestContext;
use super::implicit_state::ImplicitState;
use super::observed::ObservedInference;
use super::request_tracing;
use super::response::InferResponse;
use super::response_channel::ResponseChannel;
use super::sink::Sink;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::request_id::RequestId;
use trtserver_base::request_observer::ExecutionTimes;
use trtserver_base::stats::{BatchExecution, FailureReason};
use trtserver_request_trace::ActiveTrace;

/// The response side of one request: sends its responses and finishes it exactly once.
pub struct Responder {
    pub context: RequestContext,
    pub cancel_token: CancelToken,
    channel: ResponseChannel,
    /// When the request entered its queue; 0 = not yet.
    queued_ns: AtomicU64,
    /// The batch that it is part of.
    execution: OnceLock<Arc<BatchExecution>>,
    /// The implicit state of its sequence.
    implicit_state: OnceLock<ImplicitState>,
    /// What most requests do not have.
    tags: Option<Box<RequestTags>>,
}

/// Who else is told of a request. One allocation, which most requests do without.
struct RequestTags {
    /// Request id for log lines.
    request_id: Option<RequestId>,
    trace: Option<Arc<ActiveTrace>>,
    /// Somebody wants to know how the inference ends.
    observed: Option<Box<ObservedInference>>,
}

impl Responder {
    pub fn new(context: RequestContext, sink: impl Into<Sink>) -> Arc<Self> {
        Self::observed(context, sink, None, None)
    }

    /// The same for a request that may be traced.
    pub fn traced(
        context: RequestContext,
        sink: impl Into<Sink>,
        trace: Option<Arc<ActiveTrace>>,
    ) -> Arc<Self> {
        Self::observed(context, sink, trace, None)
    }

    /// The same for a request whose end may be reported.
    pub fn observed(
        context: RequestContext,
        sink: impl Into<Sink>,
        trace: Option<Arc<ActiveTrace>>,
        observed: Option<Box<ObservedInference>>,
    ) -> Arc<Self> {
        let request_id = RequestId::current().map(|id| *id);
        let is_alone = request_id.is_none() && trace.is_none() && observed.is_none();
        let tags = (!is_alone).then(|| Box::new(RequestTags { request_id, trace, observed }));
        Self::with_tags(context, sink, tags)
    }

    fn with_tags(
        context: RequestContext,
        sink: impl Into<Sink>,
        tags: Option<Box<RequestTags>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            context,
            cancel_token: CancelToken::default(),
            channel: ResponseChannel::new(sink.into()),
            queued_ns: AtomicU64::new(0),
            execution: OnceLock::new(),
            implicit_state: OnceLock::new(),
            tags,
        })
    }

    /// Request id for log lines.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.tags.as_ref()?.request_id.as_ref()
    }

    /// The trace of the request, if it is traced.
    pub fn trace(&self) -> Option<&Arc<ActiveTrace>> {
        self.tags.as_ref()?.trace.as_ref()
    }

    fn observed_inference(&self) -> Option<&ObservedInference> {
        self.tags.as_ref()?.observed.as_deref()
    }

    /// The request entered a queue.
    pub fn queued(&self, at_ns: u64) {
        self.queued_ns.store(at_ns, Ordering::Relaxed);
    }

    pub fn queued_ns(&self) -> u64 {
        self.queued_ns.load(Ordering::Relaxed)
    }

    /// The request is executed as part of `execution`. Set once.
    pub fn executed_in(&self, execution: Arc<BatchExecution>) {
        let first = self.execution.set(execution).is_ok();
        debug_assert!(first, "a request is executed once");
    }

    /// The batch, in which the request is outstanding.
    pub fn execution(&self) -> Option<&Arc<BatchExecution>> {
        self.execution.get()
    }

    /// The backend executes the request with `part`, which is [`BatchExecution::part`] of its batch
    /// at position `first`. No effect if the request is in a part already.
    pub fn executed_in_part(&self, first: u32, part: &Arc<BatchExecution>) {
        if self.channel.begin_part(first) {
            self.channel.wrap(|mut sink| {
                sink.executed_in_part(first, part);
                sink
            });
        }
    }

    pub fn is_in_part(&self) -> bool {
        self.channel.part().is_some()
    }

    /// What the statistics count: the part of the batch, if there are parts, else the batch.
    pub fn counted_execution(&self) -> Option<Cow<'_, Arc<BatchExecution>>> {
        let execution = self.execution.get()?;
        let part = self.channel.part().and_then(|first| execution.part_at(first));
        Some(part.map_or(Cow::Borrowed(execution), Cow::Owned))
    }

    /// The request continues a sequence whose states the response may write. Set once.
    pub fn set_implicit_state(&self, state: ImplicitState) {
        let first = self.implicit_state.set(state).is_ok();
        debug_assert!(first, "a request belongs to one sequence");
    }

    pub fn implicit_state(&self) -> Option<&ImplicitState> {
        self.implicit_state.get()
    }

    /// See [`ResponseChannel::wrap`].
    pub fn wrap_sink(&self, wrapper: impl FnOnce(Sink) -> Sink) {
        self.channel.wrap(wrapper);
    }

    pub fn is_finished(&self) -> bool {
        self.channel.is_finished()
    }

    /// Sends a response that others follow. If the request's placed memory has a fault, the request
    /// ends with it.
    pub fn send(&self, response: InferResponse) -> Result<()> {
        if let Some(fault) = self.context.fault() {
            let _ = self.fail(fault.clone(), FailureReason::Other);
            return Err(fault);
        }
        if let Some(trace) = self.trace() {
            request_tracing::trace_response(trace, &response, now_ns());
        }
        self.channel.send(response)
    }

    /// Finishes the request with its final response, an error, or (`Ok(None)`) the end of its
    /// stream. A response is replaced by the fault of the request's placed memory, if it has one.
    pub fn finish(&self, result: Result<Option<InferResponse>>) -> Result<()> {
        if matches!(result, Ok(Some(_)))
            && let Some(fault) = self.context.fault()
        {
            return self.fail(fault, FailureReason::Other);
        }
        let reason = match &result {
            Err(e) if e.code == Code::Cancelled => FailureReason::Canceled,
            Err(_) => FailureReason::Backend,
            Ok(_) => FailureReason::Other,
        };
        self.finish_as(result, reason)
    }

    /// Finishes the request with an error that is not the backend's, e.g. a full queue.
    pub fn fail(&self, error: Error, reason: FailureReason) -> Result<()> {
        self.finish_as(Err(error), reason)
    }

    /// Finishes the request with the outcome of something that was not executed for it alone: a
    /// response of the response cache, or of the execution of an equal request. `count` enters the
    /// outcome in the statistics, unless the request has ended before.
    pub fn finish_shared(
        &self,
        result: Result<Option<InferResponse>>,
        count: impl FnOnce(&Result<Option<InferResponse>>),
    ) -> Result<()> {
        let fault = if result.is_ok() { self.context.fault() } else { None };
        let result = fault.map_or(result, Err);
        self.channel.finish()?;
        if let Some(trace) = self.trace() {
            request_tracing::trace_end(trace, self, &result);
        }
        count(&result);
        if let Some(observed) = self.observed_inference() {
            self.report_end(observed, result.as_ref().err());
        }
        self.channel.send_final(result, None);
        Ok(())
    }

    fn finish_as(
        &self,
        result: Result<Option<InferResponse>>,
        reason: FailureReason,
    ) -> Result<()> {
        self.channel.finish()?;
        if let Err(error) = &result
            && error.model_broken
            && let Some(execution) = self.execution()
        {
            execution.report_broken(&error.message);
        }
        let traced_ns = self.trace().map(|trace| request_tracing::trace_end(trace, self, &result));
        // Before the response: a client that has it finds it in the statistics.
        self.count(result.is_ok(), reason, traced_ns);
        if let Some(observed) = self.observed_inference() {
            self.report_end(observed, result.as_ref().err());
        }
        self.channel.send_final(result, self.execution().cloned());
        Ok(())
    }

    #[cold]
    fn report_end(&self, observed: &ObservedInference, error: Option<&Error>) {
        let RequestContext { received_ns, batch, .. } = self.context;
        let execution = self.counted_execution().map(|execution| ExecutionTimes {
            rows: execution.rows,
            queue_ns: execution.start_ns.saturating_sub(self.queued_ns()),
            compute_ns: now_ns().saturating_sub(execution.start_ns),
        });
        observed.ended(batch, received_ns, execution, error);
    }

    /// `ended_ns`: the present time, if it is known.
    fn count(&self, success: bool, reason: FailureReason, ended_ns: Option<u64>) {
        let RequestContext { stats: Some(stats), received_ns, batch, .. } = &self.context else {
            return;
        };
        let (now, execution) = (ended_ns.unwrap_or_else(now_ns), self.counted_execution());
        let executed = execution.is_some();
        match (success, execution) {
            (true, Some(execution)) => {
                stats.success(*batch, *received_ns, self.queued_ns(), now, &execution);
            }
            (true, None) => {}
            (false, _) => {
                let ns = now.saturating_sub(*received_ns);
                stats.failure(*batch, ns, reason, executed);
            }
        }
        if self.cancel_token.is_cancelled() {
            stats.cancelled(executed);
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.is_finished() {
            let _ = self.finish(Err(Error::internal(
                "the request was dropped without a response; this is a fault of the server or of the model's backend",
            )));
        }
    }
}

#[cfg(test)]
#[path = "responder_tests.rs"]
mod tests;
